package io.gpunvme.capi;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.ffi.AddressSpace;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/** How C has numbers, and reading what it points to. */
final class CTypes {
  static final ValueLayout.OfByte BYTE = ValueLayout.JAVA_BYTE;
  static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT;
  static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG;

  /** Longer texts than this are a mistake of the caller. */
  private static final long LONGEST_TEXT = 1 << 20;

  private CTypes() {}

  /** Bytes that a pointer points to. */
  static MemorySegment at(MemorySegment pointer, long bytes) {
    return at(pointer.address(), bytes);
  }

  /** Bytes at an address. */
  static MemorySegment at(long address, long bytes) {
    requireAddress(address, bytes);
    return AddressSpace.at(address, bytes);
  }

  /** Programs have the lower half of the addresses. */
  static void requireAddress(long address, long bytes) {
    if (address < 0 || bytes < 0 || bytes > Long.MAX_VALUE - address) {
      throw new InvalidRequestException(
          "%s bytes at %Xh are not memory of a program"
              .formatted(Long.toUnsignedString(bytes), address));
    }
  }

  /** An array that a pointer points to; its length was given by C, so it is checked first. */
  static MemorySegment array(MemorySegment pointer, long count, long element) {
    if (count < 0 || count > Integer.MAX_VALUE / 64) {
      throw new InvalidRequestException(
          Long.toUnsignedString(count) + " elements are too many for one call: split it");
    }
    return at(pointer, count * element);
  }

  /** A text that a pointer points to. */
  static String text(MemorySegment pointer) {
    try {
      return at(pointer, LONGEST_TEXT).getString(0);
    } catch (IndexOutOfBoundsException e) {
      throw new InvalidRequestException(
          "a text has no terminating zero within " + LONGEST_TEXT + " bytes");
    }
  }

  /**
   * A function {@code int (*)(void *data)} that says yes by other numbers than 0.
   *
   * @return null if the pointer is null
   */
  static @Nullable BooleanSupplier question(MemorySegment function, MemorySegment data) {
    if (function.address() == 0) {
      return null;
    }
    return () -> {
      try {
        return (int) Question.CALL.invokeExact(function, data) != 0;
      } catch (Throwable e) {
        throw new IllegalStateException("a function of C does not throw", e);
      }
    };
  }

  /** Made when somebody asks, which most programs do not. */
  private static final class Question {
    @SuppressWarnings("restricted")
    static final MethodHandle CALL =
        Linker.nativeLinker().downcallHandle(FunctionDescriptor.of(INT, ValueLayout.ADDRESS));
  }

  static void setLong(MemorySegment out, long value) {
    at(out, Long.BYTES).set(LONG, 0, value);
  }

  /** A number of bytes or such: what has the sign bit is larger than anything there is. */
  static long count(long value, String what) {
    if (value < 0) {
      throw new InvalidRequestException(
          what + " " + Long.toUnsignedString(value) + " is too large");
    }
    return value;
  }
}
