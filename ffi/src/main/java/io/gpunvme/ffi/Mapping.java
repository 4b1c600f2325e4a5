package io.gpunvme.ffi;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * Owner of one {@code mmap}, or of a part of one: memory that {@link #close} unmaps.
 *
 * <p>Safe for all threads. Using the segment after {@code close} throws {@link
 * IllegalStateException} and never touches the pages.
 */
public final class Mapping implements AutoCloseable {
  /** Always 2, which the compiler cannot know. */
  private static volatile int turns = 2;

  private final Arena arena;
  private final MemorySegment segment;

  private Mapping(Arena arena, MemorySegment segment) {
    this.arena = arena;
    this.segment = segment;
  }

  /**
   * Maps part of a file or device, shared with whoever else has it.
   *
   * @param offset a multiple of the page size
   * @param length &gt; 0
   * @param prot {@code Posix.PROT_...} bits
   */
  public static Mapping shared(int fd, long offset, long length, int prot) {
    return of(length, prot, Posix.MAP_SHARED, fd, offset);
  }

  /**
   * Reserves address space that reads as zeros; pages are taken when first written. More may be
   * reserved than there is memory.
   *
   * @param length &gt; 0
   */
  public static Mapping anonymous(long length) {
    return of(
        length,
        Posix.PROT_READ | Posix.PROT_WRITE,
        Posix.MAP_PRIVATE | Posix.MAP_ANONYMOUS | Posix.MAP_NORESERVE,
        -1,
        0);
  }

  /**
   * Part of memory that somebody else unmaps, with a lifetime of its own.
   *
   * @param memory stays mapped until {@code release} has run
   * @param release run once, by {@link #close}
   */
  @SuppressWarnings("restricted")
  public static Mapping part(MemorySegment memory, Runnable release) {
    Arena arena = Arena.ofShared();
    MemorySegment own =
        MemorySegment.ofAddress(memory.address())
            .reinterpret(memory.byteSize(), arena, s -> release.run());
    return new Mapping(arena, own);
  }

  @SuppressWarnings("restricted")
  private static Mapping of(long length, int prot, int flags, int fd, long offset) {
    // The owner first: what is mapped always has one.
    Arena arena = Arena.ofShared();
    MemorySegment mapped = Posix.mmap(length, prot, flags, fd, offset);
    return new Mapping(arena, mapped.reinterpret(arena, Posix::munmap));
  }

  /**
   * Copies from or to a mapped file, whose pages may be gone: the file was cut, or its disk failed.
   *
   * @throws InternalError if they are; the virtual machine's name for SIGBUS. What was copied is
   *     undefined
   */
  public static void copy(
      MemorySegment from, long fromOffset, MemorySegment to, long toOffset, long length) {
    MemorySegment.copy(from, fromOffset, to, toOffset, length);
    meetFaults();
  }

  /**
   * To be called behind accesses to pages that may be gone: a fault of theirs shows here at the
   * latest, and not in a caller that expects none.
   *
   * @throws InternalError if there was one; the virtual machine's name for SIGBUS
   */
  public static void meetFaults() {
    // Compiled code notices a fault at its next safepoint poll. A loop that is not counted has one
    // each time it turns.
    int done = 0;
    do {
      done++;
    } while (done < turns);
  }

  /** The memory, page-aligned. */
  public MemorySegment segment() {
    return segment;
  }

  /**
   * Unmaps; a second call does nothing.
   *
   * @throws IllegalStateException if a system call is using the memory right now; nothing is
   *     unmapped then, and closing can be tried again
   */
  @Override
  public synchronized void close() {
    if (arena.scope().isAlive()) {
      arena.close();
    }
  }
}
