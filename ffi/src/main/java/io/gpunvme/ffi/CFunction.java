package io.gpunvme.ffi;

import static java.lang.foreign.MemorySegment.NULL;
import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/**
 * A function of the C library, whose arguments are integers and pointers.
 *
 * <p>To link a type of function takes the virtual machine milliseconds, and a program that reads a
 * file calls functions of ten types. So all are called as the same type, which is linked once. By
 * the conventions of Linux on x86-64 and arm64, a function finds its arguments where they are
 * without others behind them, narrow integers in the lower half of a register, and variadic
 * arguments where named ones would be.
 *
 * <p>A call takes the segment first that receives its error number, and the function's own
 * arguments behind it. No segment among them can be freed during the call.
 *
 * @param address of its code
 * @param returnsInt whether only the lower half of what it leaves is its result
 */
record CFunction(MemorySegment address, boolean returnsInt) {
  private static final Linker LINKER = Linker.nativeLinker();

  /**
   * As many integers as syscall(2) takes. Behind them, where no function looks, the segments that
   * two of them are the addresses of: the linker keeps the memory of its arguments alive.
   */
  private static final MethodHandle CALL = link();

  @SuppressWarnings("restricted")
  private static MethodHandle link() {
    return LINKER.downcallHandle(
        FunctionDescriptor.of(
            JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG,
            ADDRESS, ADDRESS),
        Linker.Option.captureCallState("errno"));
  }

  /** A function that returns an {@code int}. */
  static CFunction ofInt(String name) {
    return new CFunction(LINKER.defaultLookup().findOrThrow(name), true);
  }

  /** A function that returns a {@code long}, {@code ssize_t}, {@code off_t} or a pointer. */
  static CFunction ofLong(String name) {
    return new CFunction(LINKER.defaultLookup().findOrThrow(name), false);
  }

  private long call(
      MemorySegment state,
      long a,
      long b,
      long c,
      long d,
      long e,
      long f,
      MemorySegment held,
      MemorySegment alsoHeld)
      throws Throwable {
    long result = (long) CALL.invokeExact(address, state, a, b, c, d, e, f, 0L, held, alsoHeld);
    return returnsInt ? (int) result : result;
  }

  /** With numbers only; those that it does not take are 0. */
  long call(MemorySegment state, long a, long b, long c, long d, long e, long f) throws Throwable {
    return call(state, a, b, c, d, e, f, NULL, NULL);
  }

  long call(MemorySegment state, long a) throws Throwable {
    return call(state, a, 0, 0, 0, 0, 0);
  }

  long call(MemorySegment state, long a, long b) throws Throwable {
    return call(state, a, b, 0, 0, 0, 0);
  }

  long call(MemorySegment state, long a, long b, long c) throws Throwable {
    return call(state, a, b, c, 0, 0, 0);
  }

  long call(MemorySegment state, long a, long b, long c, long d) throws Throwable {
    return call(state, a, b, c, d, 0, 0);
  }

  long call(MemorySegment state, MemorySegment a, long b) throws Throwable {
    return call(state, a, b, 0);
  }

  long call(MemorySegment state, MemorySegment a, long b, long c) throws Throwable {
    return call(state, a.address(), b, c, 0, 0, 0, a, NULL);
  }

  long call(MemorySegment state, MemorySegment a, long b, MemorySegment c) throws Throwable {
    return call(state, a.address(), b, c.address(), 0, 0, 0, a, c);
  }

  long call(MemorySegment state, long a, MemorySegment b) throws Throwable {
    return call(state, a, b, 0, 0);
  }

  long call(MemorySegment state, long a, MemorySegment b, long c) throws Throwable {
    return call(state, a, b, c, 0);
  }

  long call(MemorySegment state, long a, MemorySegment b, long c, long d) throws Throwable {
    return call(state, a, b.address(), c, d, 0, 0, b, NULL);
  }

  long call(MemorySegment state, long a, MemorySegment b, long c, long d, MemorySegment e)
      throws Throwable {
    return call(state, a, b.address(), c, d, e.address(), 0, b, e);
  }

  long call(MemorySegment state, long a, long b, MemorySegment c) throws Throwable {
    return call(state, a, b, c, 0);
  }

  long call(MemorySegment state, long a, long b, MemorySegment c, long d) throws Throwable {
    return call(state, a, b, c.address(), d, 0, 0, c, NULL);
  }

  long call(MemorySegment state, long a, long b, long c, MemorySegment d, long e) throws Throwable {
    return call(state, a, b, c, d.address(), e, 0, d, NULL);
  }
}
