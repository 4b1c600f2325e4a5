package io.gpunvme.gpu.accel;

/**
 * Memory of an accelerator that somebody else allocated. Its owner keeps it until this is closed,
 * and closing this frees nothing.
 *
 * @param buffer whole pages; what of them is not the owner's is never touched by transfers inside
 *     the range that was asked for
 * @param offset where in the buffer that range begins, bytes
 */
public record ForeignMemory(DeviceBuffer buffer, long offset) implements AutoCloseable {
  /** Takes the memory away from every controller and library that knows it by the buffer. */
  @Override
  public void close() {
    buffer.close();
  }
}
