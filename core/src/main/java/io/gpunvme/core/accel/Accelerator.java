package io.gpunvme.core.accel;

/**
 * A device that works on the data, with memory of its own.
 *
 * <p>Safe for all threads. Closing it closes every buffer still allocated on it.
 */
public interface Accelerator extends AutoCloseable {
  /** What it is, e.g. {@code CPU stand-in (host memory)}. */
  String name();

  /** Whether this is a GPU; false for the CPU stand-in. */
  boolean gpu();

  /**
   * Allocates memory on this accelerator, zeroed, aligned to at least 4096 bytes.
   *
   * @param bytes &gt; 0; rounded up to a multiple of the page size
   */
  DeviceBuffer allocate(long bytes);

  @Override
  void close();
}
