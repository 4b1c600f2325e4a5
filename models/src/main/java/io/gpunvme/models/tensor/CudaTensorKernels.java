package io.gpunvme.models.tensor;

import io.gpunvme.base.CloseAll;
import io.gpunvme.cuda.CudaAttribute;
import io.gpunvme.cuda.CudaFunction;
import io.gpunvme.cuda.CudaStream;
import io.gpunvme.cuda.KernelArguments;
import io.gpunvme.cuda.LaunchShape;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.queue.GpuModule;
import java.lang.foreign.MemorySegment;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** {@link TensorKernels} on a CUDA GPU: {@code tensors.cu}, in a stream of their own. */
final class CudaTensorKernels implements TensorKernels {
  private static final int WARP = 32;
  private static final int THREADS = 256;
  private static final int BLOCKS_PER_MULTIPROCESSOR = 8;

  /** Vectors that a thread copies in one go. */
  private static final int AT_ONCE = 4;

  private static final int WIDEST = 16;

  // Of a launch: at most 1 GiB and less than 1.2 MiB of pinned memory.
  private static final int MOST_PIECES = 4096;
  private static final int MOST_CHUNKS = 1 << 18;

  private final GpuAccelerator accelerator;
  private final GpuModule module;
  private final CudaStream stream;
  private final Map<Integer, CudaFunction> copies = new HashMap<>();
  private final CudaFunction checksum;
  private final DeviceBuffer memory;
  private final ChecksumRound round;
  private final int multiprocessors;
  private boolean closed;

  private CudaTensorKernels(
      GpuAccelerator accelerator, GpuModule module, CudaStream stream, DeviceBuffer memory) {
    this.accelerator = accelerator;
    this.module = module;
    this.stream = stream;
    this.memory = memory;
    // All of them now: loading one may wait for a kernel that runs.
    for (int bytes = 1; bytes <= WIDEST; bytes *= 2) {
      copies.put(bytes, module.function("gpunvme_copy_rows_" + bytes));
    }
    checksum = module.function("gpunvme_crc32c");
    round = new ChecksumRound(memory.segment(), MOST_PIECES, MOST_CHUNKS);
    multiprocessors = accelerator.context().device().attribute(CudaAttribute.MULTIPROCESSOR_COUNT);
  }

  /** See {@link TensorKernels#open}. */
  static CudaTensorKernels load(GpuAccelerator accelerator) {
    GpuModule module = GpuModule.resource(accelerator, "tensors");
    CudaStream stream = null;
    DeviceBuffer memory = null;
    try {
      stream = accelerator.betweenKernels(accelerator.context()::stream);
      memory = accelerator.allocatePinned(ChecksumRound.bytes(MOST_PIECES, MOST_CHUNKS));
      return new CudaTensorKernels(accelerator, module, stream, memory);
    } catch (RuntimeException | Error e) {
      if (memory != null) {
        CloseAll.after(e, memory::close);
      }
      if (stream != null) {
        CloseAll.after(e, stream::close);
      }
      CloseAll.after(e, module::close);
      throw e;
    }
  }

  // ---- rows

  @Override
  public void stridedCopy(
      DeviceBuffer source,
      long sourceOffset,
      long sourcePitch,
      DeviceBuffer target,
      long targetOffset,
      long targetPitch,
      long width,
      long rows) {
    requireOpen();
    requireOwn(source);
    requireOwn(target);
    StridedRows all =
        new StridedRows(
            source, sourceOffset, sourcePitch, target, targetOffset, targetPitch, width, rows);
    if (all.isEmpty()) {
      return;
    }
    if (all.isContiguous() && !(source.isHost() && target.isHost())) {
      copyAtOnce(all);
    } else {
      copyRows(all);
    }
  }

  /** The copy engines do this best, of whatever alignment. */
  private void copyAtOnce(StridedRows all) {
    long from = all.source().deviceAddress() + all.sourceOffset();
    long to = all.target().deviceAddress() + all.targetOffset();
    long bytes = all.bytes();
    if (all.source().isHost()) {
      stream.copyToDeviceAsync(to, all.source().segment().asSlice(all.sourceOffset(), bytes));
    } else if (all.target().isHost()) {
      stream.copyToHostAsync(all.target().segment().asSlice(all.targetOffset(), bytes), from);
    } else {
      stream.copyOnDeviceAsync(to, from, bytes);
    }
  }

  private void copyRows(StridedRows all) {
    int vector = all.alignment();
    long vectors = all.width() / vector;
    CudaFunction function = copies.get(vector);
    if (function == null) {
      throw new IllegalStateException("no kernel copies by " + vector + " bytes");
    }
    stream.launch(
        function,
        LaunchShape.of(blocks(vectors * all.rows(), THREADS * AT_ONCE), THREADS),
        new KernelArguments().addStruct(arguments(all, vectors)));
  }

  private static MemorySegment arguments(StridedRows all, long vectors) {
    return MemorySegment.ofArray(
        new long[] {
          all.source().deviceAddress() + all.sourceOffset(),
          all.target().deviceAddress() + all.targetOffset(),
          all.sourcePitch(),
          all.targetPitch(),
          vectors,
          all.rows()
        });
  }

  /** As many as there is work for, and no more than run at the same time. */
  private int blocks(long work, int perBlock) {
    long most = (long) multiprocessors * BLOCKS_PER_MULTIPROCESSOR;
    return Math.toIntExact(Math.min(Math.ceilDiv(work, perBlock), most));
  }

  @Override
  public void await() {
    requireOpen();
    stream.synchronize();
  }

  // ---- checksums

  @Override
  public int[] crc32c(List<Piece> pieces) {
    requireOpen();
    PieceChecks.require(pieces);
    pieces.forEach(piece -> requireOwn(piece.buffer()));
    // A call that failed may have left something.
    round.clear();
    int[] crcs = new int[pieces.size()];
    for (int i = 0; i < pieces.size(); i++) {
      Piece piece = pieces.get(i);
      long done = 0;
      while (done < piece.length()) {
        long address = piece.buffer().deviceAddress() + piece.offset() + done;
        long taken = round.add(i, address, piece.length() - done);
        if (taken == 0) {
          run(crcs);
        }
        done += taken;
      }
    }
    run(crcs);
    return crcs;
  }

  private void run(int[] crcs) {
    if (round.chunks() > 0) {
      // Few chunks on many multiprocessors are done sooner than many on few.
      int threads =
          Math.clamp(Math.ceilDiv(round.chunks(), multiprocessors * WARP), 1, THREADS / WARP)
              * WARP;
      stream.launch(
          checksum,
          LaunchShape.of(blocks(round.chunks(), threads), threads),
          new KernelArguments()
              .addLong(memory.deviceAddress())
              .addInt(round.pieces())
              .addInt(round.chunks())
              .addLong(memory.deviceAddress() + ChecksumRound.checksums(MOST_PIECES)));
    }
    stream.synchronize();
    round.collect(crcs);
  }

  // ---- life

  private void requireOpen() {
    if (closed) {
      throw new IllegalStateException("these tensor kernels are closed");
    }
  }

  private void requireOwn(DeviceBuffer buffer) {
    OwnBuffers.require(accelerator, buffer);
  }

  @Override
  public void close() {
    closed = true;
    try {
      stream.synchronize();
    } catch (IllegalStateException e) {
      // Closed before, or with the accelerator: nothing runs any more.
    } finally {
      CloseAll.all(memory, stream, module);
    }
  }
}
