package io.gpunvme.core.path.pinned;

import io.gpunvme.core.accel.DeviceBuffer;
import io.gpunvme.cuda.CopyBatch;
import io.gpunvme.cuda.CudaEvent;
import io.gpunvme.cuda.CudaException;
import io.gpunvme.cuda.CudaStream;
import java.lang.foreign.MemorySegment;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Copies in a stream, shared with others. Many copies of a slot are given to the driver as one
 * batch, where it takes batches.
 */
final class GpuCopies implements Copies {
  /** Fewer copies than this cost less one by one. */
  private static final int LEAST_BATCH = 3;

  private static final int CAPACITY = 1024;

  private final CudaStream stream;
  private final boolean batches;
  private @Nullable CopyBatch batch;

  // Copies not started yet. Of one direction: a transfer has only one.
  private final long[] device = new long[CAPACITY];
  private final MemorySegment[] host = new MemorySegment[CAPACITY];
  private int count;
  private boolean toDevice;

  GpuCopies(CudaStream stream, boolean batches) {
    this.stream = stream;
    this.batches = batches;
  }

  @Override
  public void toBuffer(DeviceBuffer buffer, long bufferOffset, MemorySegment from) {
    if (buffer.isHost()) {
      buffer.copyFromHost(from, bufferOffset);
    } else {
      add(buffer.deviceAddress() + bufferOffset, from, true);
    }
  }

  @Override
  public void toSlot(MemorySegment to, DeviceBuffer buffer, long bufferOffset) {
    if (buffer.isHost()) {
      buffer.copyToHost(bufferOffset, to);
    } else {
      add(buffer.deviceAddress() + bufferOffset, to, false);
    }
  }

  private void add(long address, MemorySegment memory, boolean in) {
    if (memory.byteSize() == 0) {
      return;
    }
    if (count == CAPACITY) {
      start();
    }
    device[count] = address;
    host[count] = memory;
    count++;
    toDevice = in;
  }

  @Override
  public void seal(Slot slot) {
    start();
    stream.record(event(slot));
  }

  private static CudaEvent event(Slot slot) {
    return Objects.requireNonNull(slot.copied());
  }

  private void start() {
    if (batches && count >= LEAST_BATCH) {
      startBatch();
    } else {
      for (int i = 0; i < count; i++) {
        if (toDevice) {
          stream.copyToDeviceAsync(device[i], host[i]);
        } else {
          stream.copyToHostAsync(host[i], device[i]);
        }
      }
    }
    count = 0;
  }

  private void startBatch() {
    if (batch == null) {
      batch = new CopyBatch(CAPACITY);
    }
    batch.clear();
    for (int i = 0; i < count; i++) {
      long address = host[i].address();
      batch.add(toDevice ? device[i] : address, toDevice ? address : device[i], host[i].byteSize());
    }
    stream.copyBatchAsync(batch);
  }

  @Override
  public boolean isDone(Slot slot) {
    return event(slot).isDone();
  }

  @Override
  public void await(Slot slot) {
    event(slot).synchronize();
  }

  @Override
  public void abandon() {
    count = 0;
    try {
      stream.synchronize();
    } catch (CudaException | IllegalStateException e) {
      // A context that failed copies nothing any more.
    }
  }
}
