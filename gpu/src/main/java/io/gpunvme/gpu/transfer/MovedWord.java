package io.gpunvme.gpu.transfer;

import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.queue.DeviceLayout;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * Where the warps of a long plan count the blocks that they have moved, in the accelerator's
 * memory. It counts on from plan to plan: setting it back would be a copy to wait for. For one
 * thread.
 */
final class MovedWord implements AutoCloseable {
  private final DeviceBuffer word;
  private final MemorySegment copy = Arena.ofAuto().allocate(Long.BYTES, Long.BYTES);

  /** What it was when it was last copied. */
  private long seen;

  MovedWord(Accelerator accelerator) {
    word = accelerator.allocate(Long.BYTES);
  }

  long deviceAddress() {
    return word.deviceAddress();
  }

  /** Tells the listener how many bytes have arrived since the last call, and returns that. */
  long passOn(TransferJob job) {
    word.copyToHost(0, copy);
    long now = DeviceLayout.getLong(copy, 0);
    long blocks = now - seen;
    seen = now;
    long bytes = blocks * job.plan().blockSize();
    if (bytes > 0) {
      job.moved(bytes);
    }
    return bytes;
  }

  /** No kernel counts there any more. */
  @Override
  public void close() {
    word.close();
  }
}
