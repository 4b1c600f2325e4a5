package io.gpunvme.gpu.queue;

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
 * The real transfer kernel, compiled by g++ with warps of one lane: a thread plays each warp. It
 * works on addresses, so everything that it is given must be host memory.
 */
public final class TwinKernel implements TransferKernel {
  private static final String SOURCE =
      """
      struct Dim { unsigned x; };
      static thread_local Dim blockIdx;
      #define __device__
      #define __global__
      #define __launch_bounds__(n)
      #include "kernels/transfer.cu"
      extern "C" void twin_transfer(const TransferArgs* args, unsigned shift, unsigned block) {
        blockIdx.x = block;
        gpunvme_transfer(*args, shift);
      }
      """;

  private final Arena arena = Arena.ofShared();
  private final MethodHandle transfer;

  private TwinKernel(Path library) {
    transfer =
        Linker.nativeLinker()
            .downcallHandle(
                SymbolLookup.libraryLookup(library, arena).findOrThrow("twin_transfer"),
                FunctionDescriptor.ofVoid(
                    ValueLayout.ADDRESS, ValueLayout.JAVA_INT, ValueLayout.JAVA_INT));
  }

  /** Compiles it into {@code folder}; the test is skipped without g++. */
  public static Path compile(Path folder) throws IOException, InterruptedException {
    return NativeCompiler.compile(
        folder, "twin.so", SOURCE, "-O1", "-shared", "-fPIC", "-Wno-missing-field-initializers");
  }

  /**
   * Compiles it into the folder that is named, in the module's folder: for machines without g++.
   */
  public static void main(String[] arguments) throws IOException, InterruptedException {
    compile(Path.of(arguments[0]));
  }

  /** Loads what {@link #compile} made. */
  public static TwinKernel load(Path library) {
    return new TwinKernel(library);
  }

  @Override
  public RunningKernel start(MemorySegment args, int blockShift, int queuePairs) {
    MemorySegment copy = arena.allocate(args.byteSize(), 16);
    copy.copyFrom(args);
    List<Thread> warps = new ArrayList<>();
    for (int i = 0; i < queuePairs; i++) {
      int block = i;
      warps.add(Thread.ofPlatform().daemon().start(() -> run(copy, blockShift, block)));
    }
    return () -> warps.stream().noneMatch(Thread::isAlive);
  }

  private void run(MemorySegment args, int blockShift, int block) {
    try {
      transfer.invokeExact(args, blockShift, block);
    } catch (Throwable e) {
      throw new AssertionError(e);
    }
  }

  @Override
  public void close() {
    arena.close();
  }
}
