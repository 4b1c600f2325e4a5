package io.gpunvme.storage.fs;

import io.gpunvme.ffi.Errno;
import io.gpunvme.ffi.Fiemap;
import io.gpunvme.ffi.FileStatus;
import io.gpunvme.ffi.Posix;
import io.gpunvme.ffi.PosixException;
import io.gpunvme.storage.fs.FileSystemException.Kind;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * The places of a file in a mounted file system, as the kernel reports them. Offsets count from the
 * start of the mounted block device, which may be a partition. They are valid until the file
 * changes or the file system moves it.
 */
public final class FiemapExtents {
  private static final int PAGE = 1024;
  private static final int TRIES = 3;
  private static final long BTRFS = 0x9123683EL;
  private static final long BCACHEFS = 0xCA451A4EL;

  private FiemapExtents() {}

  /**
   * The places of a file's bytes.
   *
   * @return in order, without gaps: from byte 0 to the file's end
   * @throws NoSuchFileException if there is no such file
   * @throws FileSystemException if it is not a regular file, its file system does not report
   *     places, or its bytes are not on the device as they are in the file
   * @throws PosixException if it cannot be opened
   */
  public static List<FileExtent> of(Path file) throws IOException {
    if (!Files.exists(file)) {
      throw new NoSuchFileException(file.toString());
    }
    if (!Files.isRegularFile(file)) {
      throw new FileSystemException(Kind.WRONG_KIND, file.toString(), "this is not a regular file");
    }
    int fd = Posix.open(file.toString(), Posix.O_RDONLY | Posix.O_CLOEXEC, 0);
    try {
      FileStatus status = Posix.statx(fd);
      long type = Posix.fstatfsType(fd);
      if (type == BTRFS || type == BCACHEFS) {
        throw unsupported(file, "its file system gives offsets that are not those of a device");
      }
      return pages(file, fd, status.size());
    } finally {
      Posix.close(fd);
    }
  }

  private static List<FileExtent> pages(Path file, int fd, long size) {
    Places places = new Places(file.toString(), size);
    int tries = 0;
    boolean more = size > 0;
    while (more) {
      List<Fiemap.Extent> page = ask(file, fd, places.end(), size);
      more = !page.isEmpty();
      for (Fiemap.Extent e : page) {
        if (e.has(Fiemap.DELALLOC) && ++tries < TRIES) {
          // Written since the kernel wrote everything back; once more from here.
          Posix.fdatasync(fd);
          more = true;
          break;
        }
        places.add(e);
        more = more && !e.has(Fiemap.LAST) && places.end() < size;
      }
    }
    return places.toTheEnd();
  }

  private static List<Fiemap.Extent> ask(Path file, int fd, long start, long size) {
    try {
      return Fiemap.extents(fd, start, size - start, PAGE);
    } catch (PosixException e) {
      if (e.errno() == Errno.EOPNOTSUPP || e.errno() == Errno.ENOTTY) {
        throw unsupported(file, "its file system does not report where files are (FIEMAP)");
      }
      throw e;
    }
  }

  private static FileSystemException unsupported(Path file, String why) {
    return new FileSystemException(
        Kind.UNSUPPORTED, file.toString(), why + "; read it through the kernel");
  }

  /** Collects what the kernel says, checks it, and fills what it leaves out with zeros. */
  static final class Places {
    private final List<FileExtent> extents = new ArrayList<>();
    private final String file;
    private final long size;
    private long end;

    Places(String file, long size) {
      this.file = file;
      this.size = size;
    }

    /** First byte that nothing is known of yet. */
    long end() {
      return end;
    }

    void add(Fiemap.Extent e) {
      if (e.length() <= 0 || e.logical() < 0 || e.logical() > Long.MAX_VALUE - e.length()) {
        throw new FileSystemException(
            Kind.CORRUPT,
            file,
            "the kernel reports an impossible extent, %d bytes at %d"
                .formatted(e.length(), e.logical()));
      }
      // The first one may begin before what was asked for, the last one end behind the file.
      long from = Math.max(e.logical(), end);
      long to = Math.min(e.logical() + e.length(), size);
      if (to <= from) {
        return;
      }
      boolean zeros = e.has(Fiemap.UNWRITTEN);
      if (!zeros) {
        requirePlace(e);
      }
      put(end, from, FileExtent.ZEROS);
      put(from, to, zeros ? FileExtent.ZEROS : e.physical() + (from - e.logical()));
      end = to;
    }

    private void requirePlace(Fiemap.Extent e) {
      String why = null;
      if (e.has(Fiemap.ENCODED | Fiemap.DATA_ENCRYPTED)) {
        why = "is compressed or encrypted";
      } else if (e.has(Fiemap.DATA_INLINE)) {
        why = "is kept with the inode";
      } else if (e.has(Fiemap.NOT_ALIGNED | Fiemap.DATA_TAIL)) {
        why = "shares blocks with others";
      } else if (e.has(Fiemap.DELALLOC)) {
        why = "has no place on the device yet: a program is still writing it";
      } else if (e.has(Fiemap.UNKNOWN) || e.physical() < 0) {
        why = "has no known place on the device";
      }
      if (why != null) {
        throw new FileSystemException(
            Kind.UNSUPPORTED,
            file,
            "the data at byte %d %s; read the file through the kernel".formatted(e.logical(), why));
      }
    }

    private void put(long from, long to, long place) {
      if (to <= from) {
        return;
      }
      FileExtent last = extents.isEmpty() ? null : extents.getLast();
      boolean zeros = place == FileExtent.ZEROS;
      if (last != null
          && last.isZeros() == zeros
          && (zeros || last.deviceOffset() + last.length() == place)) {
        extents.set(
            extents.size() - 1,
            new FileExtent(last.fileOffset(), to - last.fileOffset(), last.deviceOffset()));
      } else {
        extents.add(new FileExtent(from, to - from, place));
      }
    }

    /** All of the file; what nothing was said of is a hole. */
    List<FileExtent> toTheEnd() {
      put(end, size, FileExtent.ZEROS);
      end = size;
      return List.copyOf(extents);
    }
  }
}
