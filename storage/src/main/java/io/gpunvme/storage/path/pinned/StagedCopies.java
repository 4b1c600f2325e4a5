package io.gpunvme.storage.path.pinned;

import io.gpunvme.cuda.CopyBatch;
import io.gpunvme.cuda.CudaEvent;
import io.gpunvme.cuda.CudaException;
import io.gpunvme.cuda.CudaStream;
import io.gpunvme.gpu.accel.DeviceBuffer;
import java.lang.foreign.MemorySegment;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Copies in a stream, shared with others. Many copies of a slot are given to the driver as one
 * batch, where it takes batches.
 */
final class StagedCopies implements Copies {
  /** Fewer copies than this cost less one by one. */
  private static final int LEAST_BATCH = 3;

  private static final int CAPACITY = 1024;

  private final CudaStream stream;
  private final boolean batches;
  private @Nullable CopyBatch batch;

  // Copies not started yet: of one slot and, as a transfer has only one, one direction.
  private final long[] device = new long[CAPACITY];
  private final long[] place = new long[CAPACITY];
  private final long[] length = new long[CAPACITY];
  private int count;
  private boolean toDevice;

  /** Whether copies were started since the last {@link #seal}. */
  private boolean started;

  /** Of the last copy: copies never go on from one allocation into another. */
  private @Nullable DeviceBuffer last;

  StagedCopies(CudaStream stream, boolean batches) {
    this.stream = stream;
    this.batches = batches;
  }

  @Override
  public void toBuffer(
      DeviceBuffer buffer, long bufferOffset, PinnedSlot slot, long at, long bytes) {
    if (buffer.isHost()) {
      buffer.copyFromHost(slot.segment().asSlice(at, bytes), bufferOffset);
    } else {
      add(buffer, bufferOffset, slot, at, bytes, true);
    }
  }

  @Override
  public void toSlot(PinnedSlot slot, long at, long bytes, DeviceBuffer buffer, long bufferOffset) {
    if (buffer.isHost()) {
      buffer.copyToHost(bufferOffset, slot.segment().asSlice(at, bytes));
    } else {
      add(buffer, bufferOffset, slot, at, bytes, false);
    }
  }

  private void add(
      DeviceBuffer buffer, long bufferOffset, PinnedSlot slot, long at, long bytes, boolean in) {
    if (bytes == 0) {
      return;
    }
    long address = buffer.deviceAddress() + bufferOffset;
    int before = count - 1;
    if (count > 0
        && buffer.equals(last)
        && place[before] + length[before] == at
        && device[before] + length[before] == address) {
      length[before] += bytes;
      return;
    }
    if (count == CAPACITY) {
      start(slot);
    }
    device[count] = address;
    place[count] = at;
    length[count] = bytes;
    count++;
    last = buffer;
    toDevice = in;
  }

  @Override
  public void seal(PinnedSlot slot) {
    start(slot);
    // An event of nothing would wait behind whatever shares this stream's hardware queue.
    if (started) {
      stream.record(event(slot));
      started = false;
    }
  }

  private static CudaEvent event(PinnedSlot slot) {
    return Objects.requireNonNull(slot.copied());
  }

  private void start(PinnedSlot slot) {
    started |= count > 0;
    if (batches && count >= LEAST_BATCH) {
      startBatch(slot.segment().address());
    } else {
      for (int i = 0; i < count; i++) {
        MemorySegment part = slot.segment().asSlice(place[i], length[i]);
        if (toDevice) {
          stream.copyToDeviceAsync(device[i], part);
        } else {
          stream.copyToHostAsync(part, device[i]);
        }
      }
    }
    count = 0;
    last = null;
  }

  private void startBatch(long slot) {
    if (batch == null) {
      batch = new CopyBatch(CAPACITY);
    }
    batch.clear();
    for (int i = 0; i < count; i++) {
      long address = slot + place[i];
      batch.add(toDevice ? device[i] : address, toDevice ? address : device[i], length[i]);
    }
    stream.copyBatchAsync(batch);
  }

  @Override
  public boolean isDone(PinnedSlot slot) {
    return event(slot).isDone();
  }

  @Override
  public void await(PinnedSlot slot) {
    event(slot).synchronize();
  }

  @Override
  public void abandon() {
    count = 0;
    last = null;
    started = false;
    try {
      stream.synchronize();
    } catch (CudaException | IllegalStateException e) {
      // A context that failed copies nothing any more.
    }
  }
}
