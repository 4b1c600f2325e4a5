package io.gpunvme.ffi;

import java.lang.foreign.MemorySegment;

/** io_uring as the kernel's header {@code linux/io_uring.h} defines it, and its three calls. */
final class UringAbi {
  // Operations.
  static final byte OP_READ = 22;
  static final byte OP_WRITE = 23;

  // struct io_uring_sqe.
  static final long SQE_BYTES = 64;
  static final long SQE_OPCODE = 0;
  static final long SQE_FD = 4;
  static final long SQE_OFFSET = 8;
  static final long SQE_ADDRESS = 16;
  static final long SQE_LENGTH = 24;
  static final long SQE_USER_DATA = 32;

  // struct io_uring_cqe.
  static final long CQE_BYTES = 16;
  static final long CQE_USER_DATA = 0;
  static final long CQE_RESULT = 8;

  // struct io_uring_params, with the offsets of the ring words that the kernel fills in.
  static final long PARAMS_BYTES = 120;
  static final long PARAMS_SQ_ENTRIES = 0;
  static final long PARAMS_CQ_ENTRIES = 4;
  static final long PARAMS_FLAGS = 8;
  static final long PARAMS_FEATURES = 20;
  static final long PARAMS_SQ_HEAD = 40;
  static final long PARAMS_SQ_TAIL = 44;
  static final long PARAMS_SQ_ARRAY = 64;
  static final long PARAMS_CQ_HEAD = 80;
  static final long PARAMS_CQ_TAIL = 84;
  static final long PARAMS_CQ_CQES = 100;

  /** More entries than the kernel's limit become that limit. */
  static final int SETUP_CLAMP = 1 << 4;

  /** Completions do not interrupt the submitter with a signal-like wakeup (Linux 5.19). */
  static final int SETUP_COOP_TASKRUN = 1 << 8;

  /** Both rings are in one mapping (Linux 5.4). */
  static final int FEATURE_SINGLE_MMAP = 1;

  /** Linux 5.6, as are OP_READ and OP_WRITE. */
  static final int FEATURE_RW_CUR_POS = 1 << 3;

  static final long MAP_RINGS = 0;
  static final long MAP_SQES = 0x10000000L;

  private static final int ENTER_GETEVENTS = 1;

  static final int REGISTER_BUFFERS = 0;
  static final int UNREGISTER_BUFFERS = 1;

  // The same numbers on every architecture.
  private static final long SYS_IO_URING_SETUP = 425;
  private static final long SYS_IO_URING_ENTER = 426;
  private static final long SYS_IO_URING_REGISTER = 427;

  private UringAbi() {}

  /** Makes a ring; {@code params} is a struct io_uring_params, filled in by the kernel. */
  static int setup(int entries, MemorySegment params) {
    return (int)
        Native.once(
            "io_uring_setup",
            () -> entries + " entries",
            s -> LibC.SYSCALL.call(s, SYS_IO_URING_SETUP, entries, params));
  }

  /**
   * Hands over submissions, and waits until there are completions.
   *
   * @param completions 0 not to wait
   * @return submissions that the kernel took, or an error number negated
   */
  static long enter(int fd, int submissions, int completions) {
    int flags = completions > 0 ? ENTER_GETEVENTS : 0;
    return Native.errnoNegated(
        s -> LibC.SYSCALL.call(s, SYS_IO_URING_ENTER, fd, submissions, completions, flags, 0));
  }

  static void register(int fd, int operation, MemorySegment argument, int count) {
    Native.restarting(
        "io_uring_register",
        () -> "fd " + fd + " operation " + operation + ", " + count + " entries",
        s -> LibC.SYSCALL.call(s, SYS_IO_URING_REGISTER, fd, operation, argument, count));
  }
}
