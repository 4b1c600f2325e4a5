package io.gpunvme.cuda;

/**
 * The context that was current in a thread before calls of this module, because these calls leave
 * another context current. For libraries that run in programs with contexts of their own. The
 * thread that opened it closes it.
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
