package io.gpunvme.cuda.cufile;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.gpunvme.cuda.library.Downcall;
import io.gpunvme.cuda.library.NativeFunction;
import io.gpunvme.cuda.library.NativeLibrary;
import io.gpunvme.ffi.PosixException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.util.function.Supplier;

/**
 * Runs functions of libcufile and turns what they return into exceptions.
 *
 * <p>{@code CUfileError_t}, two ints, is returned in one register by the x86-64 and the arm64
 * calling conventions, so it is taken as a long: cuFile's code in the low half, CUDA's in the high
 * one.
 */
final class CuFileCalls {
  private static final FunctionDescriptor TRANSFER =
      FunctionDescriptor.of(JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG);
  private static final FunctionDescriptor HOST_TRANSFER =
      FunctionDescriptor.of(JAVA_LONG, JAVA_LONG, ADDRESS, JAVA_LONG, JAVA_LONG, JAVA_LONG);
  private static final MethodHandle ON_DEVICE = Downcall.capturing(TRANSFER);
  private static final MethodHandle ON_HOST = Downcall.capturing(HOST_TRANSFER);

  /** One call of a function. */
  @FunctionalInterface
  interface Call {
    /** Runs it, with {@code function} as the handle's first argument. */
    long run(MemorySegment function) throws Throwable;
  }

  private final NativeLibrary library;
  private final NativeFunction read;
  private final NativeFunction write;

  CuFileCalls(NativeLibrary library) {
    this.library = library;
    read = library.function("cuFileRead");
    write = library.function("cuFileWrite");
  }

  NativeLibrary library() {
    return library;
  }

  NativeFunction function(String... names) {
    return library.function(names);
  }

  /** For functions that return a {@code CUfileError_t}. */
  static MethodHandle status(MemoryLayout... arguments) {
    return Downcall.of(FunctionDescriptor.of(JAVA_LONG, arguments));
  }

  /** Runs a call; {@code subject} says what it is about if it fails. */
  void run(NativeFunction function, Supplier<String> subject, Call call) {
    long status = status(function, call);
    if ((int) status != 0) {
      throw failure(function, subject.get(), status);
    }
  }

  /** Runs a call and hands over what it returned. */
  long status(NativeFunction function, Call call) {
    try {
      return call.run(function.address());
    } catch (Throwable t) {
      throw Downcall.unexpected(t);
    }
  }

  /** Runs a call that leaves a {@code size_t} or a handle. */
  long getLong(NativeFunction function, Supplier<String> subject, MethodHandle handle, int what) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment result = arena.allocate(JAVA_LONG);
      run(function, subject, f -> (long) handle.invokeExact(f, what, result));
      return result.get(JAVA_LONG, 0);
    }
  }

  /** Runs a call that leaves an {@code int}. */
  int getInt(NativeFunction function, MethodHandle handle) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment result = arena.allocate(JAVA_LONG);
      run(function, () -> "", f -> (long) handle.invokeExact(f, result));
      return result.get(JAVA_INT, 0);
    }
  }

  static CuFileException failure(NativeFunction function, String subject, long status) {
    String call = subject.isEmpty() ? function.name() : function.name() + " " + subject;
    return new CuFileException(call, (int) status, (int) (status >>> Integer.SIZE));
  }

  /** {@code cuFileRead} or {@code cuFileWrite} with device memory; returns bytes moved. */
  long transfer(boolean writing, String file, long handle, long base, CuFileRange range) {
    NativeFunction function = writing ? write : read;
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment state = Downcall.callState(arena);
      long result =
          (long)
              ON_DEVICE.invokeExact(
                  function.address(),
                  state,
                  handle,
                  base,
                  range.bytes(),
                  range.fileOffset(),
                  range.bufferOffset());
      return check(function, file, range, result, state);
    } catch (Throwable t) {
      throw Downcall.unexpected(t);
    }
  }

  /** The same with host memory, which its owner cannot free meanwhile. */
  long transfer(boolean writing, String file, long handle, MemorySegment base, CuFileRange range) {
    NativeFunction function = writing ? write : read;
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment state = Downcall.callState(arena);
      long result =
          (long)
              ON_HOST.invokeExact(
                  function.address(),
                  state,
                  handle,
                  base,
                  range.bytes(),
                  range.fileOffset(),
                  range.bufferOffset());
      return check(function, file, range, result, state);
    } catch (Throwable t) {
      throw Downcall.unexpected(t);
    }
  }

  private static long check(
      NativeFunction function, String file, CuFileRange range, long result, MemorySegment state) {
    if (result >= 0) {
      return result;
    }
    String subject = "%s, %s".formatted(file, range);
    if (result == -1) {
      throw new PosixException(function.name(), subject, Downcall.errno(state));
    }
    throw failure(function, subject, -result);
  }
}
