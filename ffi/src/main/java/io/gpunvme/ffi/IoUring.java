package io.gpunvme.ffi;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.gpunvme.base.CloseAll;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.VarHandle;
import java.util.concurrent.locks.LockSupport;

/**
 * Reads and writes that the kernel does while this process does something else (io_uring(7), Linux
 * 5.6): they are put into one ring, and how they ended comes out of another.
 *
 * <p>For one thread at a time; another may take over when nothing is in flight. The memory of a
 * read or write stays allocated until its completion was taken: nothing here keeps it.
 */
public final class IoUring implements AutoCloseable {
  /** Who takes completions. */
  @FunctionalInterface
  public interface Completions {
    /**
     * One operation is over.
     *
     * @param userData what it was started with
     * @param result bytes moved, or an error number negated; fewer bytes than asked for are no
     *     error
     */
    void completed(long userData, int result);
  }

  private static final long SETTLE_NANOS = 1_000_000;

  private static final VarHandle WORD = JAVA_INT.varHandle().withInvokeExactBehavior();

  private final int fd;
  private final Mapping rings;
  private final Mapping sqes;
  private final int sqEntries;
  private final int cqEntries;

  // Where the shared words lie in the rings. Each has one writer, who stores with release what the
  // other side loads with acquire:
  // - SQ tail: this class, after the entries below it are written; the kernel reads entries up to
  // it
  // - SQ head: the kernel, after it has copied the entries below it; they may be written again
  // - CQ tail: the kernel, after the completions below it are written; this class reads up to it
  // - CQ head: this class, after it has read the completions below it; the kernel may write there
  private final long sqHead;
  private final long sqTail;
  private final long cqHead;
  private final long cqTail;
  private final long cqes;

  /** Own copies of the words that only this class writes. */
  private int tail;

  private int taken;

  private int unsubmitted;
  private int inFlight;
  private boolean closed;

  private IoUring(int fd, Mapping rings, Mapping sqes, MemorySegment params) {
    this.fd = fd;
    this.rings = rings;
    this.sqes = sqes;
    sqEntries = params.get(JAVA_INT, UringAbi.PARAMS_SQ_ENTRIES);
    cqEntries = params.get(JAVA_INT, UringAbi.PARAMS_CQ_ENTRIES);
    sqHead = params.get(JAVA_INT, UringAbi.PARAMS_SQ_HEAD);
    sqTail = params.get(JAVA_INT, UringAbi.PARAMS_SQ_TAIL);
    cqHead = params.get(JAVA_INT, UringAbi.PARAMS_CQ_HEAD);
    cqTail = params.get(JAVA_INT, UringAbi.PARAMS_CQ_TAIL);
    cqes = params.get(JAVA_INT, UringAbi.PARAMS_CQ_CQES);
    // The indirection between ring and entries stays the identity.
    long array = params.get(JAVA_INT, UringAbi.PARAMS_SQ_ARRAY);
    for (int i = 0; i < sqEntries; i++) {
      rings.segment().set(JAVA_INT, array + (long) i * Integer.BYTES, i);
    }
  }

  /**
   * Makes a ring.
   *
   * @param entries operations that can be put in before a {@link #submit}, &gt; 0; rounded up to a
   *     power of two, and down to the kernel's limit
   * @throws IoUringUnavailableException if this process gets none
   * @throws PosixException for other errors, as too many open files
   */
  public static IoUring open(int entries) {
    if (entries <= 0) {
      throw new IllegalArgumentException("a ring of " + entries + " entries");
    }
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment params = arena.allocate(UringAbi.PARAMS_BYTES, Long.BYTES);
      int fd = setup(entries, params);
      return CloseAll.orClose(() -> map(fd, params), () -> Posix.close(fd));
    }
  }

  private static int setup(int entries, MemorySegment params) {
    params.set(JAVA_INT, UringAbi.PARAMS_FLAGS, UringAbi.SETUP_CLAMP | UringAbi.SETUP_COOP_TASKRUN);
    try {
      return UringAbi.setup(entries, params);
    } catch (PosixException e) {
      if (e.errno() != Errno.EINVAL) {
        throw IoUringUnavailableException.of(e);
      }
    }
    // An older kernel.
    params.fill((byte) 0);
    params.set(JAVA_INT, UringAbi.PARAMS_FLAGS, UringAbi.SETUP_CLAMP);
    try {
      return UringAbi.setup(entries, params);
    } catch (PosixException e) {
      throw e.errno() == Errno.EINVAL ? tooOld() : IoUringUnavailableException.of(e);
    }
  }

  private static RuntimeException tooOld() {
    return new IoUringUnavailableException(
        IoUringUnavailableException.Reason.TOO_OLD, "it needs Linux 5.6 or newer");
  }

  private static IoUring map(int fd, MemorySegment params) {
    int needed = UringAbi.FEATURE_SINGLE_MMAP | UringAbi.FEATURE_RW_CUR_POS;
    if ((params.get(JAVA_INT, UringAbi.PARAMS_FEATURES) & needed) != needed) {
      throw tooOld();
    }
    int prot = Posix.PROT_READ | Posix.PROT_WRITE;
    long sq = params.get(JAVA_INT, UringAbi.PARAMS_SQ_ENTRIES);
    long cq = params.get(JAVA_INT, UringAbi.PARAMS_CQ_ENTRIES);
    long ringBytes =
        Math.max(
            params.get(JAVA_INT, UringAbi.PARAMS_SQ_ARRAY) + sq * Integer.BYTES,
            params.get(JAVA_INT, UringAbi.PARAMS_CQ_CQES) + cq * UringAbi.CQE_BYTES);
    Mapping rings = Mapping.shared(fd, UringAbi.MAP_RINGS, ringBytes, prot);
    try {
      Mapping sqes = Mapping.shared(fd, UringAbi.MAP_SQES, sq * UringAbi.SQE_BYTES, prot);
      return new IoUring(fd, rings, sqes, params);
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, rings::close);
      throw e;
    }
  }

  /** Operations that can be put in before a {@link #submit}. */
  public int entries() {
    return sqEntries;
  }

  /** Operations put in whose completion was not taken yet. */
  public int inFlight() {
    return inFlight;
  }

  /**
   * Puts in a read.
   *
   * @param fd a descriptor
   * @param into native memory, less than 2 GiB
   * @param userData comes back with the completion
   * @return false if there is no room: submit, or take completions, and try again
   */
  public boolean read(int fd, MemorySegment into, long offset, long userData) {
    return put(UringAbi.OP_READ, fd, into, offset, userData);
  }

  /** Puts in a write; see {@link #read}. */
  public boolean write(int fd, MemorySegment from, long offset, long userData) {
    return put(UringAbi.OP_WRITE, fd, from, offset, userData);
  }

  private long entry(int index) {
    return (index & (sqEntries - 1)) * UringAbi.SQE_BYTES;
  }

  private boolean put(byte operation, int file, MemorySegment memory, long offset, long userData) {
    requireOpen();
    if (!memory.isNative() || memory.byteSize() > Integer.MAX_VALUE) {
      throw new IllegalArgumentException(memory + " is not native memory of less than 2 GiB");
    }
    // Never more in flight than completions have room: none is ever lost.
    int head = (int) WORD.getAcquire(rings.segment(), sqHead);
    if (tail - head == sqEntries || inFlight == cqEntries) {
      return false;
    }
    MemorySegment sqe = sqes.segment();
    long at = entry(tail);
    sqe.asSlice(at, UringAbi.SQE_BYTES).fill((byte) 0);
    sqe.set(JAVA_BYTE, at + UringAbi.SQE_OPCODE, operation);
    sqe.set(JAVA_INT, at + UringAbi.SQE_FD, file);
    sqe.set(JAVA_LONG, at + UringAbi.SQE_OFFSET, offset);
    sqe.set(JAVA_LONG, at + UringAbi.SQE_ADDRESS, memory.address());
    sqe.set(JAVA_INT, at + UringAbi.SQE_LENGTH, (int) memory.byteSize());
    sqe.set(JAVA_LONG, at + UringAbi.SQE_USER_DATA, userData);
    tail++;
    unsubmitted++;
    inFlight++;
    return true;
  }

  /**
   * Hands what was put in to the kernel, or as much of it as it takes now. Does not wait for it to
   * be done, though reads of what the page cache holds are done by then.
   *
   * @throws PosixException if the kernel takes none of it
   */
  public void submit() {
    requireOpen();
    enter(0);
  }

  /**
   * Submits, and waits until at least one operation is over, if any is in flight; {@link #take}
   * hands them out.
   */
  public void await() {
    requireOpen();
    enter(inFlight > 0 && completions() == 0 ? 1 : 0);
  }

  /** Hands out the operations that are over; never waits. Returns how many. */
  public int take(Completions to) {
    requireOpen();
    int count = completions();
    for (int i = 0; i < count; i++) {
      long at = cqes + (taken & (cqEntries - 1)) * UringAbi.CQE_BYTES;
      long userData = rings.segment().get(JAVA_LONG, at + UringAbi.CQE_USER_DATA);
      int result = rings.segment().get(JAVA_INT, at + UringAbi.CQE_RESULT);
      taken++;
      inFlight--;
      // Before the callback: it may throw, or put in new operations.
      WORD.setRelease(rings.segment(), cqHead, taken);
      to.completed(userData, result);
    }
    return count;
  }

  private int completions() {
    return (int) WORD.getAcquire(rings.segment(), cqTail) - taken;
  }

  private void enter(int least) {
    WORD.setRelease(rings.segment(), sqTail, tail);
    while (unsubmitted > 0 || (least > 0 && completions() == 0)) {
      long count = UringAbi.enter(fd, unsubmitted, least);
      if (count >= 0) {
        unsubmitted -= (int) count;
      } else if (count != -Errno.EINTR) {
        requireBusy((int) -count);
        return;
      }
    }
  }

  /**
   * With too little memory for more operations while others are in flight, one of these is waited
   * for; the rest stays for the next call.
   */
  private void requireBusy(int errno) {
    boolean busy = errno == Errno.EAGAIN || errno == Errno.EBUSY;
    if (!busy || inFlight == unsubmitted) {
      throw new PosixException("io_uring_enter", unsubmitted + " operations", errno);
    }
    if (completions() == 0) {
      UringAbi.enter(fd, 0, 1);
    }
  }

  private void requireOpen() {
    if (closed) {
      throw new IllegalStateException("this ring is closed");
    }
  }

  /**
   * Takes back what the kernel was not given yet, and returns when nothing is in flight any more,
   * whatever calls fail meanwhile: afterwards the memory of all operations is at rest. What became
   * of them is forgotten.
   */
  public void settle() {
    requireOpen();
    // The kernel takes entries only within enter, and says how many.
    tail -= unsubmitted;
    inFlight -= unsubmitted;
    unsubmitted = 0;
    WORD.setRelease(rings.segment(), sqTail, tail);
    while (inFlight > 0) {
      if (completions() == 0 && UringAbi.enter(fd, 0, 1) < 0) {
        LockSupport.parkNanos(SETTLE_NANOS);
      }
      take((userData, result) -> {});
    }
  }

  /**
   * Waits for what is in flight, since its memory may be freed afterwards, and closes the ring.
   * Idempotent.
   */
  @Override
  public void close() {
    if (closed) {
      return;
    }
    try {
      settle();
    } finally {
      closed = true;
      CloseAll.all(sqes, rings, () -> Posix.close(fd));
    }
  }
}
