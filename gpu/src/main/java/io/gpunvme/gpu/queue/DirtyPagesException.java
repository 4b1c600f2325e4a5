package io.gpunvme.gpu.queue;

/**
 * Not all that kernels stored to arrays is on the SSDs: {@link #status} says why. The pages are
 * still in the cache, and can be flushed again.
 */
public final class DirtyPagesException extends RuntimeException {
  private static final long serialVersionUID = 1;

  private final int status;

  DirtyPagesException(String what, int status) {
    super(
        "a %s of a cache's pages failed: %s; they are still in the cache. The storage's errors() have"
                .formatted(what, DeviceStatus.describe(status))
            + " the blocks; recover() it if a command timed out, then flush again");
    this.status = status;
  }

  /** As in {@link DeviceStatus}. */
  public int status() {
    return status;
  }
}
