package io.gpunvme.gpu.queue;

import io.gpunvme.gpu.accel.DeviceBuffer;

/**
 * Elements on SSDs that kernels read, and may store, by their numbers through a {@link PageCache}:
 * {@link #deviceAddress} is the {@code const gpunvme::DeviceArray*} from which a kernel makes its
 * {@code gpunvme::Array<T>}. Safe for all threads.
 */
public final class DeviceArray extends DeviceTable {
  private final long count;
  private final int elementBytes;

  DeviceArray(KernelStorage storage, DeviceBuffer memory, long count, int elementBytes) {
    super(storage, memory);
    this.count = count;
    this.elementBytes = elementBytes;
  }

  /** Elements. */
  public long count() {
    return count;
  }

  /** {@code sizeof(T)}. */
  public int elementBytes() {
    return elementBytes;
  }

  @Override
  String noun() {
    return "array";
  }
}
