package io.gpunvme.cuda;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.gpunvme.cuda.library.Downcall;
import io.gpunvme.cuda.library.NativeFunction;
import io.gpunvme.cuda.library.NativeLibrary;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.util.function.Supplier;

/** Runs functions of the driver library and turns their status codes into exceptions. */
final class Driver {
  private static final MethodHandle GET_ERROR = Downcall.status(JAVA_INT, ADDRESS);
  private static final int SUCCESS = 0;
  private static final long MAX_TEXT = 1024;

  /** One call of a function. */
  @FunctionalInterface
  interface Call {
    /** Runs it, with {@code function} as the handle's first argument. */
    int run(MemorySegment function) throws Throwable;
  }

  /** One call of a function that leaves a result in memory. */
  @FunctionalInterface
  interface ResultCall {
    /** Runs it; {@code result} has 8 zeroed bytes. */
    int run(MemorySegment function, MemorySegment result) throws Throwable;
  }

  private final NativeLibrary library;
  private final NativeFunction getErrorName;
  private final NativeFunction getErrorString;

  Driver(NativeLibrary library) {
    this.library = library;
    getErrorName = library.function("cuGetErrorName");
    getErrorString = library.function("cuGetErrorString");
  }

  NativeLibrary library() {
    return library;
  }

  NativeFunction function(String... names) {
    return library.function(names);
  }

  /** Runs a call and hands over its status, for calls that have more than one good one. */
  int status(NativeFunction function, Call call) {
    try {
      return call.run(function.address());
    } catch (Throwable t) {
      throw Downcall.unexpected(t);
    }
  }

  /** Runs a call; {@code subject} says what it is about if it fails. */
  void run(NativeFunction function, Supplier<String> subject, Call call) {
    int code = status(function, call);
    if (code != SUCCESS) {
      throw failure(function, subject.get(), code);
    }
  }

  /** Runs a call that leaves a {@code size_t}, an address or a handle. */
  long getLong(NativeFunction function, Supplier<String> subject, ResultCall call) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment result = arena.allocate(JAVA_LONG);
      run(function, subject, f -> call.run(f, result));
      return result.get(JAVA_LONG, 0);
    }
  }

  /** Runs a call that leaves an {@code int}. */
  int getInt(NativeFunction function, Supplier<String> subject, ResultCall call) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment result = arena.allocate(JAVA_LONG);
      run(function, subject, f -> call.run(f, result));
      return result.get(JAVA_INT, 0);
    }
  }

  CudaException failure(NativeFunction function, String subject, int code) {
    return new CudaException(
        describe(function, subject),
        code,
        text(getErrorName, code, "CUDA error " + code),
        text(getErrorString, code, "no description"));
  }

  /** Like {@link #failure}, for a module that could not be loaded. */
  CudaModuleException moduleFailure(NativeFunction function, String subject, int code, String log) {
    CudaException e = failure(function, subject, code);
    return new CudaModuleException(e.call(), code, e.name(), e.text(), log);
  }

  private static String describe(NativeFunction function, String subject) {
    return subject.isEmpty() ? function.name() : function.name() + " " + subject;
  }

  /** The driver's text; codes that are newer than the driver have none. */
  @SuppressWarnings("restricted")
  private String text(NativeFunction function, int code, String otherwise) {
    if (!function.isPresent()) {
      return otherwise;
    }
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment pointer = arena.allocate(ADDRESS);
      int status = (int) GET_ERROR.invokeExact(function.address(), code, pointer);
      MemorySegment text = pointer.get(ADDRESS, 0);
      return status != SUCCESS || text.address() == 0
          ? otherwise
          : text.reinterpret(MAX_TEXT).getString(0);
    } catch (Throwable t) {
      throw Downcall.unexpected(t);
    }
  }

  /** How errors write addresses and handles. */
  static String hex(long address) {
    return "0x" + Long.toHexString(address);
  }
}
