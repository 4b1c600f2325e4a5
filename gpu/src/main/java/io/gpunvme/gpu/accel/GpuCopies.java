package io.gpunvme.gpu.accel;

import io.gpunvme.cuda.CopyBatch;
import io.gpunvme.cuda.CudaContext;
import io.gpunvme.cuda.CudaStream;
import io.gpunvme.cuda.StreamPriority;
import org.jspecify.annotations.Nullable;

/** Copies on a stream of their own; a batch is one call where the driver has it. */
final class GpuCopies implements BufferCopies {
  private static final int MOST = 4096;

  private final CudaStream stream;
  private final @Nullable CopyBatch batch;

  GpuCopies(CudaContext context) {
    batch = context.hasBatchCopies() ? new CopyBatch(MOST) : null;
    // Last: nobody would close it if something else failed.
    stream = context.stream(StreamPriority.HIGHEST);
  }

  @Override
  public void add(
      DeviceBuffer source, long sourceOffset, DeviceBuffer target, long targetOffset, long bytes) {
    CopyBatch many = batch;
    if (many == null) {
      copy(source, sourceOffset, target, targetOffset, bytes);
      return;
    }
    if (many.size() == many.capacity()) {
      start();
    }
    many.add(target.deviceAddress() + targetOffset, source.deviceAddress() + sourceOffset, bytes);
  }

  private void copy(
      DeviceBuffer source, long sourceOffset, DeviceBuffer target, long targetOffset, long bytes) {
    long from = source.deviceAddress() + sourceOffset;
    long to = target.deviceAddress() + targetOffset;
    if (source.isHost()) {
      stream.copyToDeviceAsync(to, source.segment().asSlice(sourceOffset, bytes));
    } else if (target.isHost()) {
      stream.copyToHostAsync(target.segment().asSlice(targetOffset, bytes), from);
    } else {
      stream.copyOnDeviceAsync(to, from, bytes);
    }
  }

  @Override
  public void start() {
    CopyBatch many = batch;
    if (many != null) {
      try {
        stream.copyBatchAsync(many);
      } finally {
        // What failed is not done later: by then the buffers may be somebody else's.
        many.clear();
      }
    }
  }

  @Override
  public void await() {
    start();
    stream.synchronize();
  }

  @Override
  public void close() {
    try {
      await();
    } finally {
      stream.close();
    }
  }
}
