package io.gpunvme.ffi;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * Waiting for a word of memory to change, also between processes that share the memory (futex(2)).
 * Safe for all threads.
 */
public final class Futex {
  /** The same words in all processes: no private flag. */
  private static final int FUTEX_WAIT = 0;

  private static final int FUTEX_WAKE = 1;
  private static final long SYS_FUTEX = System.getProperty("os.arch").equals("aarch64") ? 98 : 202;
  private static final long NANOS_PER_SECOND = 1_000_000_000;

  private Futex() {}

  /**
   * Waits until somebody calls {@link #wake} for the word; not at all if it is not {@code
   * expected}.
   *
   * @param word native, 4 bytes, aligned to 4
   * @param nanos how long at most, &gt;= 0
   * @return false if the time is over; may be true without a reason
   */
  public static boolean await(MemorySegment word, int expected, long nanos) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment time = arena.allocate(JAVA_LONG, 2);
      time.setAtIndex(JAVA_LONG, 0, nanos / NANOS_PER_SECOND);
      time.setAtIndex(JAVA_LONG, 1, nanos % NANOS_PER_SECOND);
      long result = Native.errnoNegated(s -> call(s, word, FUTEX_WAIT, expected, time));
      if (result < 0
          && result != -Errno.ETIMEDOUT
          && result != -Errno.EAGAIN
          && result != -Errno.EINTR) {
        throw new PosixException("futex", "wait", (int) -result);
      }
      return result != -Errno.ETIMEDOUT;
    }
  }

  /**
   * Wakes one that waits for the word, if there is one.
   *
   * @param word native, 4 bytes, aligned to 4
   */
  public static void wake(MemorySegment word) {
    Native.once("futex", () -> "wake", s -> call(s, word, FUTEX_WAKE, 1, MemorySegment.NULL));
  }

  private static long call(
      MemorySegment state, MemorySegment word, int operation, int value, MemorySegment time)
      throws Throwable {
    return LibC.SYSCALL.call(state, SYS_FUTEX, word, operation, value, time);
  }
}
