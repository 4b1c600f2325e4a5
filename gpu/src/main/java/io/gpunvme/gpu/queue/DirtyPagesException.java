package io.gpunvme.gpu.queue;

/**
 * Not all that kernels stored to arrays is known to be on the SSDs: {@link #status} says why, and
 * the message whether the pages are still in the cache and can be flushed again.
 */
public final class DirtyPagesException extends RuntimeException {
  private static final long serialVersionUID = 1;

  private final int status;

  private DirtyPagesException(String message, int status) {
    super(message);
    this.status = status;
  }

  /** Of the SSDs' writes. */
  static DirtyPagesException unwritten(int status) {
    return new DirtyPagesException(
        "a write of a cache's pages failed: %s; they are still in the cache. The storage's errors()"
                .formatted(DeviceStatus.describe(status))
            + " have the blocks; recover() it if a command timed out, then flush again",
        status);
  }

  /** Of an SSD's flush: nothing is left to be written once more. */
  static DirtyPagesException notDurable(int status) {
    return new DirtyPagesException(
        "a cache's pages were written, but an SSD's flush failed: %s; what it had not stored yet"
                .formatted(DeviceStatus.describe(status))
            + " may be lost, also if another flush succeeds",
        status);
  }

  /** As in {@link DeviceStatus}. */
  public int status() {
    return status;
  }
}
