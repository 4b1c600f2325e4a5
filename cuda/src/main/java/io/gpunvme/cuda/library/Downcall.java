package io.gpunvme.cuda.library;

import static java.lang.foreign.ValueLayout.JAVA_INT;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemoryLayout.PathElement;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SegmentAllocator;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.VarHandle;

/**
 * Handles that call C functions. The function's address is their first argument, so that they can
 * be {@code static final} although the libraries come later.
 *
 * <p>Sizes ({@code size_t}), device addresses and CUDA's handles are {@code JAVA_LONG}, host memory
 * is {@code ADDRESS}: a segment's owner then cannot free it during the call. No call is critical:
 * any of them may wait for the GPU.
 */
public final class Downcall {
  private static final Linker LINKER = Linker.nativeLinker();

  private static final VarHandle ERRNO =
      Linker.Option.captureStateLayout()
          .varHandle(PathElement.groupElement("errno"))
          .withInvokeExactBehavior();

  private Downcall() {}

  /** For functions with these arguments that return a status code. */
  public static MethodHandle status(MemoryLayout... arguments) {
    return of(FunctionDescriptor.of(JAVA_INT, arguments));
  }

  /** For functions of this type. */
  @SuppressWarnings("restricted")
  public static MethodHandle of(FunctionDescriptor type) {
    return LINKER.downcallHandle(type);
  }

  /** Like {@link #of}, with {@code errno} left in the segment that is the second argument. */
  @SuppressWarnings("restricted")
  public static MethodHandle capturing(FunctionDescriptor type) {
    return LINKER.downcallHandle(type, Linker.Option.captureCallState("errno"));
  }

  /** Memory for {@link #capturing}. */
  public static MemorySegment callState(SegmentAllocator allocator) {
    return allocator.allocate(Linker.Option.captureStateLayout());
  }

  /** What {@link #capturing} left. */
  public static int errno(MemorySegment callState) {
    return (int) ERRNO.get(callState, 0L);
  }

  /** For the {@code Throwable} of {@code invokeExact}: what is unchecked passes unchanged. */
  public static RuntimeException unexpected(Throwable t) {
    switch (t) {
      case RuntimeException e -> throw e;
      case Error e -> throw e;
      default -> throw new AssertionError(t);
    }
  }
}
