package io.gpunvme.gpu.queue;

import io.gpunvme.gpu.accel.DeviceBuffer;

/** Something that the host describes to kernels of a storage, in memory of the GPU. */
abstract class DeviceTable implements AutoCloseable {
  private final KernelStorage storage;
  private final DeviceBuffer memory;
  private volatile boolean closed;

  DeviceTable(KernelStorage storage, DeviceBuffer memory) {
    this.storage = storage;
    this.memory = memory;
  }

  /** The device address of the structure, for kernels. */
  public long deviceAddress() {
    storage.requireOpen();
    if (closed) {
      throw new IllegalStateException("this %s is closed".formatted(noun()));
    }
    return memory.deviceAddress();
  }

  /** What it is, in messages. */
  abstract String noun();

  void free() {
    memory.close();
  }

  /** No kernel uses it any more. Closing the storage closes it, too. */
  @Override
  public void close() {
    closed = true;
    storage.close(this);
  }
}
