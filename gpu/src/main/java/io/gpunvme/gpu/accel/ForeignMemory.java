package io.gpunvme.gpu.accel;

/**
 * Memory of an accelerator that others allocated. Its owner must keep it until this is closed and
 * the transfers that use it are over. Closing this frees nothing.
 *
 * @param buffer whole pages; transfers inside the requested range never touch the rest of them
 * @param offset where the requested range begins in the buffer, bytes
 */
public record ForeignMemory(DeviceBuffer buffer, long offset) implements AutoCloseable {
  /** Takes the memory away from every controller and library that knows it by the buffer. */
  @Override
  public void close() {
    buffer.close();
  }
}
