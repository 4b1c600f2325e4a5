package io.gpunvme.tools.bench;

import io.gpunvme.cuda.KernelArguments;
import io.gpunvme.gpu.queue.DeviceSources;
import io.gpunvme.testing.CLibrary;
import io.gpunvme.testing.NativeCompiler;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
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
      WORDS
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
  private final CLibrary library;

  private TwinKernels(Path library) {
    this.library = new CLibrary(library);
  }

  /**
   * Loads a file of kernels, compiled once for all; the test is skipped without g++.
   *
   * @param args the structure that each of them takes
   */
  static TwinKernels load(String file, String args, String... kernels) {
    StringBuilder text =
        new StringBuilder(
            SOURCE
                .replace("WORDS", DeviceSources.CUDA_WORDS)
                .replace("FILE", file)
                .replace("BLOCK_BYTES", Integer.toString(BLOCK_BYTES)));
    for (String kernel : kernels) {
      text.append("TWIN(%s, %s)\n".formatted(kernel, args));
    }
    return new TwinKernels(
        NativeCompiler.CPP.library(
            file,
            text.toString(),
            "-O1",
            "-Wno-missing-field-initializers",
            DeviceSources.INCLUDE));
  }

  @Override
  public LaunchedKernel start(String kernel, int blocks, int threads, MemorySegment args) {
    MethodHandle handle =
        library.function(
            "twin_" + kernel,
            void.class,
            MemorySegment.class,
            int.class,
            int.class,
            int.class,
            MemorySegment.class);
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
        library.function("twin_block", void.class, MemorySegment.class, int.class);
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
