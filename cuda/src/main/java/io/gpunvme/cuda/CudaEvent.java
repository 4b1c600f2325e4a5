package io.gpunvme.cuda;

/**
 * A point in a stream that others can wait for. One that was never recorded counts as done. Safe
 * for all threads.
 */
public final class CudaEvent extends ContextResource {
  private final long handle;
  private final boolean owned;

  /**
   * @param owned whether closing it destroys it
   */
  CudaEvent(CudaContext context, long handle, boolean owned) {
    super(context, "CUDA event " + Driver.hex(handle));
    this.handle = handle;
    this.owned = owned;
  }

  long handle() {
    return handle;
  }

  /**
   * Whether everything before it in its stream has ended; never waits.
   *
   * @throws CudaException if the work, or earlier work of the context, failed
   */
  public boolean isDone() {
    begin();
    try {
      return api().streams().isDone(handle);
    } finally {
      end();
    }
  }

  /** Waits, without a limit, until {@link #isDone}. */
  public void synchronize() {
    begin();
    try {
      api().streams().synchronizeEvent(handle);
    } finally {
      end();
    }
  }

  /**
   * Time on the GPU from {@code start} to this event in milliseconds, with a resolution of about
   * 0.5 microseconds; both are {@link CudaContext#timingEvent}s and done.
   */
  public float millisecondsSince(CudaEvent start) {
    begin();
    try {
      start.begin();
      try {
        return api().streams().elapsed(start.handle, handle);
      } finally {
        start.end();
      }
    } finally {
      end();
    }
  }

  @Override
  void free() {
    if (owned) {
      api().streams().destroyEvent(handle);
    }
  }
}
