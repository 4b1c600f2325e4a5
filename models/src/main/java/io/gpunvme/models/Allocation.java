package io.gpunvme.models;

import io.gpunvme.gpu.accel.DeviceBuffer;

/** Memory that tensors share: freed when the last of them is closed. Safe for all threads. */
final class Allocation {
  private final DeviceBuffer memory;
  private int users = 1;

  /** One user: whoever makes it. */
  Allocation(DeviceBuffer memory) {
    this.memory = memory;
  }

  DeviceBuffer memory() {
    return memory;
  }

  synchronized void use() {
    if (users == 0) {
      throw new IllegalStateException("this memory is freed");
    }
    users++;
  }

  synchronized void leave() {
    users--;
    if (users == 0) {
      memory.close();
    }
  }
}
