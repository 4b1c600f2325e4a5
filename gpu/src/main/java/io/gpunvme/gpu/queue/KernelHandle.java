package io.gpunvme.gpu.queue;

import io.gpunvme.base.CloseAll;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.queue.DeviceLayout.Storage;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.List;

/**
 * A {@link KernelStorage} as one of several kernels is given it: the same queues and buffers, and a
 * stop of its own. Made by {@link KernelStorage#handle}. Safe for all threads.
 */
public final class KernelHandle implements AutoCloseable {
  private final KernelStorage storage;
  private final StopWord stop;
  private final DeviceBuffer struct;

  /**
   * @param header the storage's own {@code struct Storage}
   */
  KernelHandle(KernelStorage storage, Accelerator accelerator, MemorySegment header) {
    this.storage = storage;
    stop = new StopWord(accelerator);
    struct = CloseAll.orClose(() -> accelerator.allocate(Storage.SIZE), stop::close);
    DeviceLayout.setLong(header, Storage.STOP, stop.deviceAddress());
    try {
      struct.copyFromHost(header, 0);
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, this::free);
      throw e;
    }
  }

  /** As {@link KernelStorage#deviceHandle}, for this kernel. */
  public long deviceHandle() {
    storage.requireOpen();
    return struct.deviceAddress();
  }

  /** As {@link KernelStorage#await}; if the kernel is told to stop, no other is. */
  public boolean await(RunningKernel kernel, Duration limit) {
    return storage.await(kernel, limit, List.of(stop));
  }

  /**
   * Tells this kernel to end its waits, or cancels that: not after a kernel hung, as {@link
   * KernelStorage#stop}.
   */
  public void stop(boolean value) {
    storage.requireOpen();
    stop.stop(value);
  }

  StopWord stopWord() {
    return stop;
  }

  /** There are so many buffers from now on. */
  void tellBuffers(int count) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment word = arena.allocate(Integer.BYTES, Integer.BYTES);
      DeviceLayout.setInt(word, 0, count);
      struct.copyFromHost(word, Storage.BUFFER_COUNT);
    }
  }

  void free() {
    CloseAll.all(struct, stop);
  }

  /** The kernel is over. Closing the storage closes this, too. */
  @Override
  public void close() {
    storage.close(this);
  }
}
