package io.gpunvme.ffi;

/**
 * The machine's memory as this process shares it out. Memory that was promised and not yet touched
 * is missing in no figure of the system: a second request would be told that it is free. So it is
 * counted here until it has been touched.
 *
 * <p>Safe for all threads. Other processes know nothing of what is promised here.
 */
public final class MemoryBudget {
  /** Left to the kernel and to Java's own threads. */
  private static final long RESERVE = 64L << 20;

  private static final int LARGEST_SHARE = 8;

  /** Shorter memory is not worth a look at what is free. */
  private static final long UNCHECKED = 1 << 20;

  private static final MemoryBudget HERE = new MemoryBudget(FreeMemory.here());

  private final FreeMemory free;

  /**
   * Of what was free when it was asked for first: a share of what is left would be nothing at last.
   */
  private long reserve = FreeMemory.UNKNOWN;

  private long promised;

  /** Of a machine with these figures. */
  public MemoryBudget(FreeMemory free) {
    this.free = free;
  }

  /** Of this process. */
  public static MemoryBudget here() {
    return HERE;
  }

  /** What the system says is free, without its reserve; {@link FreeMemory#UNKNOWN} if unknown. */
  public synchronized long free() {
    long bytes = free.available();
    if (bytes == FreeMemory.UNKNOWN) {
      return bytes;
    }
    if (reserve == FreeMemory.UNKNOWN) {
      reserve = Math.min(RESERVE, bytes / LARGEST_SHARE);
    }
    return Math.max(0, bytes - reserve);
  }

  /**
   * Bytes that may be taken without another process, or this one, being ended for it: what is free
   * and promised to nobody; {@link FreeMemory#UNKNOWN} if unknown.
   */
  public synchronized long available() {
    long bytes = free();
    return bytes == FreeMemory.UNKNOWN ? bytes : Math.max(0, bytes - promised);
  }

  /**
   * Sets memory aside for the caller, who is about to take it, or may.
   *
   * @param bytes &gt; 0
   * @throws PosixException with {@link Errno#ENOMEM} if the machine cannot spare that much
   */
  public synchronized Promise promise(long bytes) {
    if (bytes <= 0) {
      throw new IllegalArgumentException(bytes + " bytes of memory");
    }
    long available = bytes > UNCHECKED ? available() : FreeMemory.UNKNOWN;
    if (bytes > available) {
      throw new PosixException(
          "allocate",
          "%d bytes of host memory, of which %d may be had".formatted(bytes, available),
          Errno.ENOMEM);
    }
    return new Promise(bytes);
  }

  private synchronized void add(long bytes) {
    promised += bytes;
  }

  /** Memory that was set aside. Closing it says that the rest will not be touched any more. */
  public final class Promise implements AutoCloseable {
    private long left;

    private Promise(long bytes) {
      change(bytes);
    }

    /** So many bytes more have been touched, and are missing in the system's figures now. */
    public void touched(long bytes) {
      change(-bytes);
    }

    /** So many bytes that had been touched were given back, and may be touched again. */
    public void givenBack(long bytes) {
      change(bytes);
    }

    private void change(long bytes) {
      synchronized (MemoryBudget.this) {
        left += bytes;
        add(bytes);
      }
    }

    @Override
    public void close() {
      synchronized (MemoryBudget.this) {
        change(-left);
      }
    }
  }
}
