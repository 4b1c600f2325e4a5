package io.gpunvme.cuda;

/**
 * A resource of another library in a context: the context closes it before older resources of its
 * own. {@link #hold} keeps it open during a call and makes the context current in this thread.
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
