package io.gpunvme.cuda;

import static java.lang.foreign.ValueLayout.JAVA_INT;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.invoke.MethodHandle;

/**
 * Handles that call C functions. The function's address is their first argument, so that they can
 * be {@code static final} although the libraries come later.
 *
 * <p>Sizes ({@code size_t}), device addresses and CUDA's handles are {@code JAVA_LONG}, host memory
 * is {@code ADDRESS}: a segment's owner then cannot free it during the call. No call is critical:
 * any of them may wait for the GPU.
 */
final class Downcall {
  private static final Linker LINKER = Linker.nativeLinker();

  private Downcall() {}

  /** For functions with these arguments that return a status code. */
  static MethodHandle status(MemoryLayout... arguments) {
    return of(FunctionDescriptor.of(JAVA_INT, arguments));
  }

  @SuppressWarnings("restricted")
  static MethodHandle of(FunctionDescriptor type) {
    return LINKER.downcallHandle(type);
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
