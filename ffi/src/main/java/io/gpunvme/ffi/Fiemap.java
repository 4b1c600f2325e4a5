package io.gpunvme.ffi;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;

/**
 * Where the kernel's file systems keep a file ({@code Documentation/filesystems/fiemap.rst}, {@code
 * linux/fiemap.h}).
 */
public final class Fiemap {
  /** There is nothing behind this extent. */
  public static final int LAST = 0x1;

  /** It has no place yet, or none that is known. */
  public static final int UNKNOWN = 0x2;

  /** It gets its place when it is written back. */
  public static final int DELALLOC = 0x4;

  /** Its bytes are not the file's: compressed or encrypted. */
  public static final int ENCODED = 0x8;

  /** Encrypted. */
  public static final int DATA_ENCRYPTED = 0x80;

  /** It does not lie in whole blocks. */
  public static final int NOT_ALIGNED = 0x100;

  /** It lies in what describes the file. */
  public static final int DATA_INLINE = 0x200;

  /** It shares a block with other files. */
  public static final int DATA_TAIL = 0x400;

  /** It has a place and was never written: zeros. */
  public static final int UNWRITTEN = 0x800;

  private static final long FS_IOC_FIEMAP = 0xC020660BL; // _IOWR('f', 11, 32 bytes)
  private static final int SYNC = 1;

  // struct fiemap
  private static final long START = 0;
  private static final long LENGTH = 8;
  private static final long FLAGS = 16;
  private static final long MAPPED = 20;
  private static final long COUNT = 24;
  private static final long EXTENTS = 32;

  // struct fiemap_extent
  private static final long LOGICAL = 0;
  private static final long PHYSICAL = 8;
  private static final long EXTENT_LENGTH = 16;
  private static final long EXTENT_FLAGS = 40;
  private static final long EXTENT_BYTES = 56;

  private Fiemap() {}

  /**
   * Part of a file.
   *
   * @param logical first byte in the file
   * @param physical first byte on the file system's device
   * @param length bytes
   * @param flags bits, of which the above matter here
   */
  public record Extent(long logical, long physical, long length, int flags) {
    /** Whether any of some flags is set. */
    public boolean has(int any) {
      return (flags & any) != 0;
    }
  }

  /**
   * Asks for extents that hold bytes of a range. What is dirty in the page cache is written back
   * before.
   *
   * @param start first byte of the range
   * @param length of the range, bytes
   * @param most extents to be told of: the first ones
   * @throws PosixException with {@link Errno#EOPNOTSUPP} or {@link Errno#ENOTTY} if the file system
   *     does not tell
   */
  public static List<Extent> extents(int fd, long start, long length, int most) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment map = arena.allocate(EXTENTS + most * EXTENT_BYTES, Long.BYTES);
      map.set(JAVA_LONG, START, start);
      map.set(JAVA_LONG, LENGTH, length);
      map.set(JAVA_INT, FLAGS, SYNC);
      map.set(JAVA_INT, COUNT, most);
      Posix.ioctl(fd, FS_IOC_FIEMAP, map);
      int mapped = Math.clamp(map.get(JAVA_INT, MAPPED), 0, most);
      List<Extent> extents = new ArrayList<>(mapped);
      for (int i = 0; i < mapped; i++) {
        long at = EXTENTS + i * EXTENT_BYTES;
        extents.add(
            new Extent(
                map.get(JAVA_LONG, at + LOGICAL),
                map.get(JAVA_LONG, at + PHYSICAL),
                map.get(JAVA_LONG, at + EXTENT_LENGTH),
                map.get(JAVA_INT, at + EXTENT_FLAGS)));
      }
      return extents;
    }
  }
}
