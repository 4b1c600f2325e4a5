package io.gpunvme.ffi;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What the kernel tells of files: their status, their file system, their pages in memory. */
final class FileCallsTest {
  private static final int NO_FD = 1_000_000;
  private static final int PAGES = 64;

  @TempDir private Path directory;
  private final Arena arena = Arena.ofConfined();
  private final long page = Posix.pageSize();
  private int fd;

  @BeforeEach
  void openFile() {
    fd = Posix.open(directory.resolve("file").toString(), Posix.O_RDWR | Posix.O_CREAT, 0600);
    Posix.pwrite(fd, arena.allocate(PAGES * page).fill((byte) 1), 0);
  }

  @AfterEach
  void closeFile() {
    Posix.close(fd);
    arena.close();
  }

  @Test
  void statusAgreesWithJavas() throws Exception {
    FileStatus status = Posix.statx(fd);
    Path file = directory.resolve("file");
    assertThat(status.type()).isEqualTo(FileStatus.Type.REGULAR);
    assertThat(status.size()).isEqualTo(PAGES * page);
    assertThat(status.owner()).isEqualTo(Files.getAttribute(file, "unix:uid"));
    long device = (long) Files.getAttribute(file, "unix:dev");
    long major = device >>> 8 & 0xFFF | device >>> 32 & ~0xFFFL;
    long minor = device & 0xFF | device >>> 12 & ~0xFFL;
    assertThat((long) status.major()).isEqualTo(major);
    assertThat((long) status.minor()).isEqualTo(minor);
    if (status.directOffsetAlignment() != 0) {
      assertThat(Integer.bitCount(status.directOffsetAlignment())).isOne();
      assertThat(Integer.bitCount(status.directMemoryAlignment())).isOne();
    }
  }

  @Test
  void otherKindsOfFilesAreTold() {
    assertThat(typeOf(directory.toString())).isEqualTo(FileStatus.Type.DIRECTORY);
    assertThat(typeOf("/dev/null")).isEqualTo(FileStatus.Type.OTHER);
  }

  private static FileStatus.Type typeOf(String path) {
    int open = Posix.open(path, Posix.O_RDONLY, 0);
    try {
      return Posix.statx(open).type();
    } finally {
      Posix.close(open);
    }
  }

  @Test
  void theFileSystemsNumberIsTold() {
    long proc = 0x9FA0;
    int open = Posix.open("/proc/self/status", Posix.O_RDONLY, 0);
    assertThat(Posix.fstatfsType(open)).isEqualTo(proc);
    Posix.close(open);
    assertThat(Posix.fstatfsType(fd)).isNotZero();
  }

  /** On tmpfs pages cannot go: the advice is taken and does nothing. */
  @Test
  void adviceTakesPagesFromTheCacheAndReadingBringsThemBack() {
    long tmpfs = 0x01021994;
    try (Mapping mapping = Mapping.shared(fd, 0, PAGES * page, Posix.PROT_NONE)) {
      assertThat(resident(mapping)).as("written just now").isEqualTo(PAGES);
      Posix.fdatasync(fd);
      Posix.fadvise(fd, 0, 0, Posix.POSIX_FADV_DONTNEED);
      if (Posix.fstatfsType(fd) == tmpfs) {
        return;
      }
      assertThat(resident(mapping)).as("after the advice").isZero();
      Posix.pread(fd, arena.allocate(PAGES * page), 0);
      assertThat(resident(mapping)).as("read again").isEqualTo(PAGES);
    }
  }

  private long resident(Mapping mapping) {
    MemorySegment pages = arena.allocate(PAGES);
    Posix.mincore(mapping.segment(), pages);
    return pages.elements(JAVA_BYTE).filter(p -> (p.get(JAVA_BYTE, 0) & 1) == 1).count();
  }

  @Test
  void residencyNeedsRoomAndAMapping() {
    MemorySegment pages = arena.allocate(1);
    try (Mapping mapping = Mapping.shared(fd, 0, 2 * page, Posix.PROT_NONE)) {
      assertThatIllegalArgumentException()
          .isThrownBy(() -> Posix.mincore(mapping.segment(), pages));
    }
    MemorySegment unmapped = MemorySegment.ofAddress(page).reinterpret(page);
    PosixException e =
        catchThrowableOfType(PosixException.class, () -> Posix.mincore(unmapped, pages));
    assertThat(e.errno()).isEqualTo(Errno.ENOMEM);
  }

  @Test
  void singleTransfersReturnCountsOrNegatedErrors() {
    MemorySegment memory = arena.allocate(2 * page);
    assertThat(Posix.tryPread(fd, memory, (PAGES - 1) * page)).isEqualTo(page);
    assertThat(Posix.tryPread(fd, memory, PAGES * page)).isZero();
    assertThat(Posix.tryPread(NO_FD, memory, 0)).isEqualTo(-Errno.EBADF);
    assertThat(Posix.tryPwrite(fd, memory, PAGES * page)).isEqualTo(2 * page);
    assertThat(Posix.tryPwrite(NO_FD, memory, 0)).isEqualTo(-Errno.EBADF);
    assertThat(Posix.size(fd)).isEqualTo((PAGES + 2) * page);
  }

  @Test
  void badDescriptorsAreReported() {
    assertBad("statx", () -> Posix.statx(NO_FD));
    assertBad("fstatfs", () -> Posix.fstatfsType(NO_FD));
    assertBad("posix_fadvise", () -> Posix.fadvise(NO_FD, 0, 0, Posix.POSIX_FADV_DONTNEED));
  }

  private static void assertBad(String call, Runnable run) {
    PosixException e = catchThrowableOfType(PosixException.class, run::run);
    assertThat(e.call()).isEqualTo(call);
    assertThat(e.errno()).isEqualTo(Errno.EBADF);
  }
}
