package io.gpunvme.tools.bench;

import io.gpunvme.cuda.KernelArguments;
import io.gpunvme.gpu.queue.NativeCompiler;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * The real benchmark kernels, compiled by g++ with warps of one lane: a thread plays each warp, so
 * everything that they are given must be host memory.
 */
final class TwinKernels implements BenchKernels {
  private static final int WARP = 32;

  /** Room for what the warps of a block share. */
  private static final int BLOCK_BYTES = 8192;

  private static final String SOURCE =
      """
      #include <new>
      struct Dim { unsigned x; };
      static thread_local Dim blockIdx, blockDim, threadIdx, gridDim;
      #define __device__
      #define __global__
      #define __launch_bounds__(n)
      #include "kernels/FILE.cu"
      static void place(unsigned block, unsigned threads, unsigned thread) {
        blockIdx.x = block;
        blockDim.x = threads;
        threadIdx.x = thread;
        gridDim.x = 1;
      }
      #define TWIN(kernel, Args) \\
        extern "C" void twin_##kernel(const Args* args, unsigned block, unsigned threads, unsigned thread, void* twin) { \\
          place(block, threads, thread); \\
          gpunvme::block::Member member(*static_cast<gpunvme::block::Twin*>(twin), thread / 32); \\
          kernel(*args); \\
        }
      static_assert(sizeof(gpunvme::block::Twin) <= BLOCK_BYTES, "the block that Java makes room for");
      extern "C" void twin_block(void* memory, unsigned threads) { new (memory) gpunvme::block::Twin(threads / 32); }
      """;

  private final Arena arena = Arena.ofShared();
  private final SymbolLookup library;

  private TwinKernels(Path library) {
    this.library = SymbolLookup.libraryLookup(library, arena);
  }

  /** Compiles a file of kernels into {@code folder}; the test is skipped without g++. */
  static Path compile(Path folder, String file, String args, String... kernels)
      throws IOException, InterruptedException {
    StringBuilder text =
        new StringBuilder(
            SOURCE.replace("FILE", file).replace("BLOCK_BYTES", Integer.toString(BLOCK_BYTES)));
    for (String kernel : kernels) {
      text.append("TWIN(%s, %s)\n".formatted(kernel, args));
    }
    return NativeCompiler.compile(
        folder,
        file + ".so",
        text.toString(),
        "-O1",
        "-shared",
        "-fPIC",
        "-Wno-missing-field-initializers");
  }

  /** Loads what {@link #compile} made. */
  static TwinKernels load(Path library) {
    return new TwinKernels(library);
  }

  @Override
  public LaunchedKernel start(String kernel, int blocks, int threads, MemorySegment args) {
    MethodHandle handle =
        Linker.nativeLinker()
            .downcallHandle(
                library.findOrThrow("twin_" + kernel),
                FunctionDescriptor.ofVoid(
                    ValueLayout.ADDRESS,
                    ValueLayout.JAVA_INT,
                    ValueLayout.JAVA_INT,
                    ValueLayout.JAVA_INT,
                    ValueLayout.ADDRESS));
    MemorySegment copy = arena.allocate(args.byteSize(), 16);
    copy.copyFrom(args);
    List<Thread> warps = new ArrayList<>();
    for (int block = 0; block < blocks; block++) {
      MemorySegment twin = block(threads);
      for (int thread = 0; thread < threads; thread += WARP) {
        int b = block;
        int t = thread;
        warps.add(
            Thread.ofPlatform()
                .daemon()
                .start(
                    () -> {
                      try {
                        handle.invokeExact(copy, b, threads, t, twin);
                      } catch (Throwable e) {
                        throw new AssertionError(e);
                      }
                    }));
      }
    }
    long begin = System.nanoTime();
    return new LaunchedKernel() {
      @Override
      public boolean isOver() {
        return warps.stream().noneMatch(Thread::isAlive);
      }

      @Override
      public long nanos() {
        return System.nanoTime() - begin;
      }
    };
  }

  private MemorySegment block(int threads) {
    MemorySegment twin = arena.allocate(BLOCK_BYTES, 16);
    MethodHandle handle =
        Linker.nativeLinker()
            .downcallHandle(
                library.findOrThrow("twin_block"),
                FunctionDescriptor.ofVoid(ValueLayout.ADDRESS, ValueLayout.JAVA_INT));
    try {
      handle.invokeExact(twin, threads);
    } catch (Throwable e) {
      throw new AssertionError(e);
    }
    return twin;
  }

  @Override
  public LaunchedKernel start(String kernel, int blocks, int threads, KernelArguments args) {
    throw new UnsupportedOperationException("kernels with one structure only");
  }

  @Override
  public int registers(String kernel) {
    return 0;
  }

  @Override
  public void close() {
    arena.close();
  }
}
