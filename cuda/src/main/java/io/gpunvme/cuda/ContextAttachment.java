package io.gpunvme.cuda;

/**
 * What another library has in a context: the context lets it be closed before anything older of its
 * own goes. {@link #hold} keeps it open during a call and makes the context this thread's.
 *
 * <p>Safe for all threads.
 */
public final class ContextAttachment extends ContextResource {
  private final Runnable closing;

  ContextAttachment(CudaContext context, String what, Runnable closing) {
    super(context, what);
    this.closing = closing;
  }

  @Override
  void revoke() {
    context().enter();
    closing.run();
  }

  @Override
  void free() {}
}
