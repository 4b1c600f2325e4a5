package io.gpunvme.ffi;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static java.lang.foreign.ValueLayout.JAVA_SHORT;

import java.lang.foreign.MemorySegment;

/**
 * What statx(2) says about a file.
 *
 * @param type what it is
 * @param size length of a regular file in bytes; 0 for a device
 * @param owner user number
 * @param major number of the device it lies on; of a device node, the device's own
 * @param minor likewise
 * @param directKnown whether the kernel and the file system tell what O_DIRECT needs (Linux 6.1)
 * @param directMemoryAlignment of memory for O_DIRECT, bytes; 0 if the file has no O_DIRECT or it
 *     is not known
 * @param directOffsetAlignment of offsets and lengths for O_DIRECT, likewise
 */
public record FileStatus(
    Type type,
    long size,
    int owner,
    int major,
    int minor,
    boolean directKnown,
    int directMemoryAlignment,
    int directOffsetAlignment) {

  /** Kinds of files. */
  public enum Type {
    REGULAR,
    BLOCK_DEVICE,
    DIRECTORY,
    OTHER
  }

  static final long BYTES = 256;

  /** STATX_SIZE. */
  static final int SIZE = 0x200;

  private static final int BASIC = 0x7FF;
  private static final int DIOALIGN = 0x2000;
  static final int ALL = BASIC | DIOALIGN;

  private static final long MASK = 0;
  private static final long UID = 20;
  private static final long MODE = 28;
  private static final long STX_SIZE = 40;
  private static final long RDEV_MAJOR = 128;
  private static final long RDEV_MINOR = 132;
  private static final long DEV_MAJOR = 136;
  private static final long DEV_MINOR = 140;
  private static final long DIO_MEM_ALIGN = 152;
  private static final long DIO_OFFSET_ALIGN = 156;

  private static final int S_IFMT = 0xF000;
  private static final int S_IFDIR = 0x4000;
  private static final int S_IFBLK = 0x6000;
  private static final int S_IFREG = 0x8000;

  /** {@code statx} is a struct statx that the kernel filled. */
  static FileStatus of(MemorySegment statx) {
    Type type =
        switch (statx.get(JAVA_SHORT, MODE) & S_IFMT) {
          case S_IFREG -> Type.REGULAR;
          case S_IFBLK -> Type.BLOCK_DEVICE;
          case S_IFDIR -> Type.DIRECTORY;
          default -> Type.OTHER;
        };
    boolean device = type == Type.BLOCK_DEVICE;
    return new FileStatus(
        type,
        statx.get(JAVA_LONG, STX_SIZE),
        statx.get(JAVA_INT, UID),
        statx.get(JAVA_INT, device ? RDEV_MAJOR : DEV_MAJOR),
        statx.get(JAVA_INT, device ? RDEV_MINOR : DEV_MINOR),
        (statx.get(JAVA_INT, MASK) & DIOALIGN) != 0,
        statx.get(JAVA_INT, DIO_MEM_ALIGN),
        statx.get(JAVA_INT, DIO_OFFSET_ALIGN));
  }
}
