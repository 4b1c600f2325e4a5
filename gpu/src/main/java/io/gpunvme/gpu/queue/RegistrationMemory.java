package io.gpunvme.gpu.queue;

import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.nvme.memory.BusMapper;
import io.gpunvme.nvme.memory.DmaBuffer;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.function.ToLongFunction;
import org.jspecify.annotations.Nullable;

/**
 * Memory of descriptions, kept for the next ones: taking and giving back GPU memory and mapped host
 * memory makes the driver and embedded controllers wait. Safe for all threads.
 */
final class RegistrationMemory implements AutoCloseable {
  private static final long LEAST = 64 << 10;

  /** What is kept is used for what is at least this part of it. */
  private static final int WASTE = 4;

  private final BusMapper controller;
  private final Accelerator accelerator;
  private final long most;
  private final List<DmaBuffer> lists = new ArrayList<>();
  private final List<DeviceBuffer> descriptions = new ArrayList<>();

  /**
   * @param most bytes of each kind that are kept; 0: none
   */
  RegistrationMemory(BusMapper controller, Accelerator accelerator, long most) {
    this.controller = controller;
    this.accelerator = accelerator;
    this.most = most;
  }

  /** Host memory that the controller reaches, for PRP lists; any contents. */
  DmaBuffer lists(long bytes) {
    DmaBuffer there = take(lists, DmaBuffer::size, bytes);
    return there == null ? DmaBuffer.allocate(controller, up(bytes)) : there;
  }

  /** Takes it back. */
  void give(DmaBuffer memory) {
    if (!keep(lists, DmaBuffer::size, memory)) {
      memory.close();
    }
  }

  /** Memory of the accelerator; any contents. */
  DeviceBuffer description(long bytes) {
    DeviceBuffer there = take(descriptions, DeviceBuffer::size, bytes);
    return there == null ? accelerator.allocateUncleared(up(bytes)) : there;
  }

  /** Takes it back. */
  void give(DeviceBuffer memory) {
    if (!keep(descriptions, DeviceBuffer::size, memory)) {
      memory.close();
    }
  }

  private static long up(long bytes) {
    return Math.max(LEAST, Long.highestOneBit(Math.max(1, bytes - 1)) << 1);
  }

  private synchronized <T> @Nullable T take(List<T> kept, ToLongFunction<T> size, long bytes) {
    Iterator<T> all = kept.iterator();
    while (all.hasNext()) {
      T one = all.next();
      long has = size.applyAsLong(one);
      if (has >= bytes && has <= WASTE * up(bytes)) {
        all.remove();
        return one;
      }
    }
    return null;
  }

  private synchronized <T> boolean keep(List<T> kept, ToLongFunction<T> size, T memory) {
    long bytes = kept.stream().mapToLong(size).sum() + size.applyAsLong(memory);
    return bytes <= most && kept.add(memory);
  }

  /** Frees what is kept. */
  @Override
  public synchronized void close() {
    lists.forEach(DmaBuffer::close);
    lists.clear();
    descriptions.forEach(DeviceBuffer::close);
    descriptions.clear();
  }
}
