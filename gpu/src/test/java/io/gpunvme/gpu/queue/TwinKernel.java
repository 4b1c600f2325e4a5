package io.gpunvme.gpu.queue;

import io.gpunvme.testing.CLibrary;
import io.gpunvme.testing.NativeCompiler;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
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
      DeviceSources.CUDA_WORDS
          + """
          #include "kernels/transfer.cu"
          extern "C" void twin_transfer(const TransferArgs* args, unsigned shift, unsigned block, unsigned blocks) {
            blockIdx.x = block;
            gridDim.x = blocks;
            gpunvme_transfer(*args, shift);
          }
          """;

  private static final String[] OPTIONS = {
    "-O1", "-Wno-missing-field-initializers", DeviceSources.INCLUDE
  };

  private final Arena arena = Arena.ofShared();
  private final MethodHandle transfer;

  private TwinKernel(Path library) {
    transfer =
        new CLibrary(library)
            .function(
                "twin_transfer", void.class, MemorySegment.class, int.class, int.class, int.class);
  }

  /** Compiles it, once for all; the test is skipped without g++. */
  public static Path compile() {
    return NativeCompiler.CPP.library("twin", SOURCE, OPTIONS);
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
      warps.add(Thread.ofPlatform().daemon().start(() -> run(copy, blockShift, block, queuePairs)));
    }
    return () -> warps.stream().noneMatch(Thread::isAlive);
  }

  private void run(MemorySegment args, int blockShift, int block, int blocks) {
    try {
      transfer.invokeExact(args, blockShift, block, blocks);
    } catch (Throwable e) {
      throw new AssertionError(e);
    }
  }

  @Override
  public void close() {
    arena.close();
  }
}
