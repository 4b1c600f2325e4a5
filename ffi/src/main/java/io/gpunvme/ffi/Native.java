package io.gpunvme.ffi;

import java.lang.foreign.Arena;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout.PathElement;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import java.lang.invoke.VarHandle;
import java.util.function.Supplier;

/** Runs functions of the C library with their error number captured. */
final class Native {
  private static final StructLayout CALL_STATE = Linker.Option.captureStateLayout();
  private static final VarHandle ERRNO =
      CALL_STATE.varHandle(PathElement.groupElement("errno")).withInvokeExactBehavior();

  /**
   * Where a thread's calls leave their error number. One of all threads would mix up those of two;
   * a call inside another (C asks something) ends before the outer one writes.
   */
  private static final ThreadLocal<MemorySegment> STATE =
      ThreadLocal.withInitial(() -> Arena.ofAuto().allocate(CALL_STATE));

  /** For a thread that cannot have one and gives something back; one thread at a time. */
  private static final MemorySegment RESERVE = Arena.global().allocate(CALL_STATE);

  /** One call of a {@link CFunction}; negative is failure. */
  @FunctionalInterface
  interface Call {
    /** Runs it, with {@code state} as its first argument. */
    long run(MemorySegment state) throws Throwable;
  }

  private Native() {}

  /** Where this thread's calls leave their error number. */
  static MemorySegment state() {
    return STATE.get();
  }

  /** Runs {@code call} once. */
  static long once(String name, Supplier<String> subject, Call call) {
    long result = errnoNegated(call);
    if (result < 0) {
      throw new PosixException(name, subject.get(), (int) -result);
    }
    return result;
  }

  /**
   * Runs {@code call} once, which gives something back: that must not fail for want of memory, not
   * even in a thread that has called nothing before.
   */
  static void giveBack(String name, Supplier<String> subject, Call call) {
    try {
      STATE.get();
    } catch (Error e) { // OutOfMemoryError, as a rule
      giveBackWithReserve(name, subject, call);
      return;
    }
    once(name, subject, call);
  }

  private static synchronized void giveBackWithReserve(
      String name, Supplier<String> subject, Call call) {
    STATE.set(RESERVE);
    try {
      once(name, subject, call);
    } finally {
      STATE.remove();
    }
  }

  /** Runs {@code call} again for as long as signals interrupt it. */
  static long restarting(String name, Supplier<String> subject, Call call) {
    long result;
    do {
      result = errnoNegated(call);
    } while (result == -Errno.EINTR);
    if (result < 0) {
      throw new PosixException(name, subject.get(), (int) -result);
    }
    return result;
  }

  /** Runs {@code call} once; its error number negated if it fails. */
  static long errnoNegated(Call call) {
    try {
      MemorySegment state = STATE.get();
      long result = call.run(state);
      return result >= 0 ? result : -(int) ERRNO.get(state, 0L);
    } catch (Throwable t) {
      throw unexpected(t);
    }
  }

  /** For the {@code Throwable} of {@code invokeExact}: what is unchecked passes unchanged. */
  static RuntimeException unexpected(Throwable t) {
    switch (t) {
      case RuntimeException e -> throw e;
      case Error e -> throw e;
      default -> throw new AssertionError(t);
    }
  }
}
