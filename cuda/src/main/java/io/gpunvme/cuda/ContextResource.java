package io.gpunvme.cuda;

import io.gpunvme.base.CloseAll;

/**
 * Something that belongs to a context: the context knows it from its creation to its close, and
 * frees it if it is still open when the context is closed.
 */
abstract sealed class ContextResource implements AutoCloseable
    permits DeviceMemory,
        PinnedMemory,
        RegisteredMemory,
        CudaStream,
        CudaEvent,
        CudaModule,
        ContextAttachment {
  private final CudaContext context;
  private final Lifetime lifetime;

  /** {@code what} names it in errors. */
  ContextResource(CudaContext context, String what) {
    this.context = context;
    this.lifetime = new Lifetime(what);
  }

  final CudaContext context() {
    return context;
  }

  final DriverApi api() {
    return context.api();
  }

  /**
   * Comes before each use: keeps it open and makes its context this thread's.
   *
   * @throws IllegalStateException if it is closed
   */
  final void begin() {
    lifetime.acquire();
    try {
      context.enter();
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, () -> lifetime.release());
      throw e;
    }
  }

  final void end() {
    lifetime.release();
  }

  /**
   * For calls of other libraries: it cannot be closed before what this returns is, and its context
   * is this thread's now.
   *
   * @throws IllegalStateException if it is closed
   */
  public final Hold hold() {
    begin();
    return new Hold(this::end);
  }

  /** For values that need no call: throws if it is closed. */
  final void requireOpen() {
    lifetime.requireOpen();
  }

  /**
   * Takes from the users of this object what they could reach without it.
   *
   * @throws RuntimeException if one of them is using it or does not let go; it stays open then
   */
  void revoke() {}

  /** Bytes of the GPU's memory that it takes. */
  long deviceBytes() {
    return 0;
  }

  /** Bytes of host memory that it keeps pinned. */
  long pinnedBytes() {
    return 0;
  }

  /** Gives it back to the driver; the context is this thread's. */
  abstract void free();

  /**
   * Frees it; a second call, or one after the context's close, does nothing.
   *
   * @throws IllegalStateException if another thread is using it right now; nothing is freed then,
   *     and closing can be tried again
   * @throws CudaException if the driver could not free it; it is closed all the same
   */
  @Override
  public final void close() {
    if (!lifetime.end()) {
      return;
    }
    try {
      revoke();
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, lifetime::resume);
      throw e;
    }
    CloseAll steps = new CloseAll();
    steps.run(context::enter);
    steps.run(this::free);
    context.forget(this);
    CudaContext.endUnlessGone(steps);
  }
}
