package io.gpunvme.cuda;

/**
 * The context that was current in a thread before calls of this module, which leave their own
 * there. For libraries that are called by programs with contexts of their own. Closed by the thread
 * that opened it.
 */
public final class CallersContext implements AutoCloseable {
  private final ContextCalls calls;
  private final long before;

  CallersContext(ContextCalls calls) {
    this.calls = calls;
    before = calls.current();
  }

  /** Makes it current again, or none if there was none. */
  @Override
  public void close() {
    if (calls.current() != before) {
      calls.setCurrent(before);
    }
  }
}
