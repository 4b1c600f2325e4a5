package io.gpunvme.capi;

/** Memory of an accelerator that belongs to no storage, until it is closed. */
final class Allocation implements AutoCloseable {
  private final Memory memory;
  private final long address;

  Allocation(Memory memory, long bytes) {
    this.memory = memory;
    address = memory.allocate(bytes);
  }

  Memory memory() {
    return memory;
  }

  long address() {
    return address;
  }

  @Override
  public void close() {
    memory.free(address);
  }
}
