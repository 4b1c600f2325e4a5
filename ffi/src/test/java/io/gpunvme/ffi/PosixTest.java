package io.gpunvme.ffi;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.Executors;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class PosixTest {
  private static final int READ_WRITE = Posix.O_RDWR | Posix.O_CLOEXEC;
  private static final int NO_FD = 1_000_000;

  @TempDir private Path directory;

  private static PosixException failure(ThrowingCallable call) {
    return catchThrowableOfType(PosixException.class, call);
  }

  private int create(String name) {
    return Posix.open(directory.resolve(name).toString(), READ_WRITE | Posix.O_CREAT, 0600);
  }

  @Test
  void openCreatesWithModeAndTruncates() throws IOException {
    Path file = directory.resolve("file");
    Posix.close(Posix.open(file.toString(), READ_WRITE | Posix.O_CREAT | Posix.O_EXCL, 0640));
    assertThat(Files.getPosixFilePermissions(file))
        .isSubsetOf(PosixFilePermissions.fromString("rw-r-----"))
        .containsAll(Set.of(PosixFilePermission.OWNER_READ));
    Files.write(file, new byte[10]);
    Posix.close(Posix.open(file.toString(), READ_WRITE | Posix.O_TRUNC, 0));
    assertThat(file).isEmptyFile();
  }

  @Test
  void openSaysWhatFailedAndWhy() {
    String path = directory.resolve("missing").toString();
    PosixException e = failure(() -> Posix.open(path, Posix.O_RDONLY, 0));
    assertThat(e.errno()).isEqualTo(Errno.ENOENT);
    assertThat(e.errnoName()).isEqualTo("ENOENT");
    assertThat(e.call()).isEqualTo("open");
    assertThat(e.subject()).isEqualTo(path);
    assertThat(e).hasMessage("open " + path + ": ENOENT (No such file or directory)");
  }

  @Test
  void openExclusivelyRefusesAFileThatExists() {
    Posix.close(create("file"));
    PosixException e =
        failure(
            () ->
                Posix.open(
                    directory.resolve("file").toString(),
                    READ_WRITE | Posix.O_CREAT | Posix.O_EXCL,
                    0600));
    assertThat(e.errno()).isEqualTo(Errno.EEXIST);
  }

  @Test
  void everyCallReportsABadDescriptor() {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment memory = arena.allocate(8);
      assertBad("close", () -> Posix.close(NO_FD));
      assertBad("ftruncate", () -> Posix.ftruncate(NO_FD, 1));
      assertBad("statx", () -> Posix.size(NO_FD));
      assertBad("statx", () -> Posix.end(NO_FD));
      assertBad("pread", () -> Posix.pread(NO_FD, memory, 0));
      assertBad("pwrite", () -> Posix.pwrite(NO_FD, memory, 0));
      assertBad("flock", () -> Posix.tryLock(NO_FD, true));
      assertBad("fdatasync", () -> Posix.fdatasync(NO_FD));
      assertBad("fallocate", () -> Posix.punchHole(NO_FD, 0, 1));
      assertBad("fallocate", () -> Posix.zeroRange(NO_FD, 0, 1));
      assertBad("mmap", () -> Posix.mmap(4096, Posix.PROT_READ, Posix.MAP_SHARED, NO_FD, 0));
      assertBad("ioctl", () -> Posix.ioctl(NO_FD, 0, memory));
    }
  }

  private static void assertBad(String call, ThrowingCallable run) {
    PosixException e = failure(run);
    assertThat(e).as(call).isNotNull();
    assertThat(e.call()).isEqualTo(call);
    assertThat(e.errno()).as(call).isEqualTo(Errno.EBADF);
    assertThat(e.subject()).contains("fd " + NO_FD);
  }

  @Test
  void aLockIsHeldUntilItsDescriptorIsClosed() {
    int first = create("file");
    int second = Posix.open(directory.resolve("file").toString(), Posix.O_RDONLY, 0);
    assertThat(Posix.tryLock(first, false)).isTrue();
    assertThat(Posix.tryLock(second, false)).as("shared").isTrue();
    assertThat(Posix.tryLock(second, true)).as("exclusive beside a shared one").isFalse();
    Posix.close(first);
    assertThat(Posix.tryLock(second, true)).isTrue();
    Posix.close(second);
  }

  @Test
  void anonymousMemoryReadsAsZerosAndMayExceedTheMemoryThereIs() {
    try (Mapping huge = Mapping.anonymous(1L << 42)) {
      MemorySegment memory = huge.segment();
      assertThat(memory.get(ValueLayout.JAVA_LONG, (1L << 42) - 8)).isZero();
      memory.set(ValueLayout.JAVA_LONG, 1L << 41, 7);
      assertThat(memory.get(ValueLayout.JAVA_LONG, 1L << 41)).isEqualTo(7);
    }
  }

  @Test
  void sizeFollowsTruncate() {
    int fd = create("file");
    assertThat(Posix.size(fd)).isZero();
    Posix.ftruncate(fd, (1L << 33) + 5);
    assertThat(Posix.size(fd)).isEqualTo((1L << 33) + 5);
    assertThat(Posix.end(fd)).isEqualTo((1L << 33) + 5);
    assertThat(failure(() -> Posix.ftruncate(fd, -1)).errno()).isEqualTo(Errno.EINVAL);
    Posix.close(fd);
  }

  @Test
  void writesAndReadsBackPastFourGibibytes() {
    int fd = create("file");
    long offset = (5L << 30) + 3;
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment out = arena.allocateFrom("some bytes");
      MemorySegment in = arena.allocate(out.byteSize());
      assertThat(Posix.pwrite(fd, out, offset)).isEqualTo(out.byteSize());
      assertThat(Posix.pread(fd, in, offset)).isEqualTo(out.byteSize());
      assertThat(in.getString(0)).isEqualTo("some bytes");
      assertThat(Posix.size(fd)).isEqualTo(offset + out.byteSize());
      Posix.fdatasync(fd);
    }
    Posix.close(fd);
  }

  @Test
  void readStopsAtTheEnd() {
    int fd = create("file");
    Posix.ftruncate(fd, 10);
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment in = arena.allocate(16).fill((byte) 7);
      assertThat(Posix.pread(fd, in, 4)).isEqualTo(6);
      assertThat(in.get(JAVA_BYTE, 5)).isZero();
      assertThat(in.get(JAVA_BYTE, 6)).isEqualTo((byte) 7);
      assertThat(Posix.pread(fd, in, 10)).isZero();
      assertThat(Posix.pread(fd, in.asSlice(0, 0), 0)).isZero();
      assertThat(failure(() -> Posix.pread(fd, in, -1)).errno()).isEqualTo(Errno.EINVAL);
    }
    Posix.close(fd);
  }

  @Test
  void heapMemoryIsRefused() {
    int fd = create("file");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> Posix.pread(fd, MemorySegment.ofArray(new byte[8]), 0));
    Posix.close(fd);
  }

  @Test
  void punchedAndZeroedRangesReadAsZeroes() throws IOException {
    int fd = create("file");
    long page = 4096;
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment ones = arena.allocate(8 * page).fill((byte) 0xFF);
      MemorySegment in = arena.allocate(8 * page);
      Posix.pwrite(fd, ones, 0);
      Posix.punchHole(fd, page, 2 * page);
      Posix.pread(fd, in, 0);
      assertZeroExactly(in, page, 3 * page);
      assertThat(Posix.size(fd)).isEqualTo(8 * page);
      Posix.pwrite(fd, ones, 0);
      try {
        Posix.zeroRange(fd, 4 * page, page);
        Posix.pread(fd, in, 0);
        assertZeroExactly(in, 4 * page, 5 * page);
      } catch (PosixException e) {
        assertThat(e.errno()).as("%s", e).isEqualTo(Errno.EOPNOTSUPP);
      }
    }
    Posix.close(fd);
  }

  private static void assertZeroExactly(MemorySegment memory, long from, long to) {
    for (long i = 0; i < memory.byteSize(); i++) {
      int expected = i >= from && i < to ? 0 : -1;
      assertThat((int) memory.get(JAVA_BYTE, i)).as("byte %d", i).isEqualTo(expected);
    }
  }

  @Test
  void directIoTransfersAlignedMemory() {
    int fd;
    try {
      fd =
          Posix.open(
              directory.resolve("file").toString(),
              READ_WRITE | Posix.O_CREAT | Posix.O_DIRECT,
              0600);
    } catch (PosixException e) {
      assertThat(e.errno()).isEqualTo(Errno.EINVAL);
      Assumptions.abort("the temporary directory's file system has no direct I/O");
      return;
    }
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment aligned = arena.allocate(8192, 4096).fill((byte) 3);
      MemorySegment in = arena.allocate(8192, 4096);
      assertThat(Posix.pwrite(fd, aligned, 0)).isEqualTo(8192);
      assertThat(Posix.pread(fd, in, 0)).isEqualTo(8192);
      assertThat(in.mismatch(aligned)).isEqualTo(-1);
    }
    Posix.close(fd);
  }

  @Test
  void mappedFileSharesItsBytes() {
    int fd = create("file");
    int page = Posix.pageSize();
    Posix.ftruncate(fd, 3L * page);
    MemorySegment memory =
        Posix.mmap(2L * page, Posix.PROT_READ | Posix.PROT_WRITE, Posix.MAP_SHARED, fd, page);
    assertThat(memory.byteSize()).isEqualTo(2L * page);
    assertThat(memory.address() % page).isZero();
    Posix.madvise(memory, Posix.MADV_WILLNEED);
    memory.set(JAVA_LONG, page, 0x0102030405060708L);
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment in = arena.allocate(8);
      Posix.pread(fd, in, 2L * page);
      assertThat(in.get(JAVA_LONG, 0)).isEqualTo(0x0102030405060708L);
    }
    Posix.munmap(memory);
    Posix.close(fd);
  }

  @Test
  void anonymousMemoryIsDroppedByAdvice() {
    int page = Posix.pageSize();
    MemorySegment memory =
        Posix.mmap(
            page,
            Posix.PROT_READ | Posix.PROT_WRITE,
            Posix.MAP_PRIVATE | Posix.MAP_ANONYMOUS | Posix.MAP_POPULATE,
            -1,
            0);
    memory.set(JAVA_INT, 0, 42);
    Posix.madvise(memory, Posix.MADV_DONTNEED);
    assertThat(memory.get(JAVA_INT, 0)).isZero();
    PosixException e = failure(() -> Posix.madvise(memory.asSlice(8), Posix.MADV_DONTNEED));
    assertThat(e.errno()).isEqualTo(Errno.EINVAL);
    assertThat(e.subject()).contains(Long.toHexString(memory.address() + 8));
    Posix.munmap(memory);
  }

  @Test
  void mmapChecksItsArguments() {
    int flags = Posix.MAP_PRIVATE | Posix.MAP_ANONYMOUS;
    assertThat(failure(() -> Posix.mmap(0, Posix.PROT_NONE, flags, -1, 0)).errno())
        .isEqualTo(Errno.EINVAL);
    assertThat(failure(() -> Posix.munmap(MemorySegment.ofAddress(1))).errno())
        .isEqualTo(Errno.EINVAL);
  }

  @Test
  void lockedMemoryShowsInTheProcessStatus() throws IOException {
    int page = Posix.pageSize();
    long before = lockedKib();
    MemorySegment memory =
        Posix.mmap(
            4L * page,
            Posix.PROT_READ | Posix.PROT_WRITE,
            Posix.MAP_PRIVATE | Posix.MAP_ANONYMOUS,
            -1,
            0);
    Posix.mlock(memory);
    assertThat(lockedKib() - before).isEqualTo(4L * page / 1024);
    Posix.munmap(memory);
    assertThat(failure(() -> Posix.mlock(memory)).errno()).isEqualTo(Errno.ENOMEM);
  }

  private static long lockedKib() throws IOException {
    return Files.readAllLines(Path.of("/proc/self/status")).stream()
        .filter(line -> line.startsWith("VmLck:"))
        .mapToLong(line -> Long.parseLong(line.replaceAll("\\D", "")))
        .findFirst()
        .orElseThrow();
  }

  @Test
  void memfdShowsItsName() throws IOException {
    int fd = Posix.memfdCreate("gpunvme-test", Posix.MFD_CLOEXEC);
    assertThat(Files.readSymbolicLink(Path.of("/proc/self/fd/" + fd)).toString())
        .contains("memfd:gpunvme-test");
    Posix.close(fd);
    assertThat(failure(() -> Posix.close(fd)).errno()).isEqualTo(Errno.EBADF);
    String tooLong = "n".repeat(300);
    assertThat(failure(() -> Posix.memfdCreate(tooLong, 0)).errno()).isEqualTo(Errno.EINVAL);
  }

  @Test
  void ioctlPassesItsArgument() throws IOException {
    long fionread = 0x541B;
    int fd = create("file");
    Posix.ftruncate(fd, 1234);
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment count = arena.allocate(JAVA_INT);
      assertThat(Posix.ioctl(fd, fionread, count)).isZero();
      assertThat(count.get(JAVA_INT, 0)).isEqualTo(1234);
      PosixException e = failure(() -> Posix.ioctl(fd, 0x3B64, count));
      assertThat(e.errno()).isEqualTo(Errno.ENOTTY);
      assertThat(e.subject()).contains("0x3b64");
    }
    Posix.close(fd);
  }

  @Test
  void pageSizeIsTheKernels() {
    assertThat(Posix.pageSize()).isGreaterThanOrEqualTo(4096);
    assertThat(Integer.bitCount(Posix.pageSize())).isOne();
  }

  /** Two threads that fail differently at the same time each see their own error. */
  @Test
  void errorsOfThreadsDoNotMix() throws Exception {
    Callable<Boolean> missing =
        () -> alwaysFailsWith(Errno.ENOENT, () -> Posix.open("/nowhere/at/all", 0, 0));
    Callable<Boolean> bad = () -> alwaysFailsWith(Errno.EBADF, () -> Posix.close(NO_FD));
    try (var threads = Executors.newFixedThreadPool(2)) {
      for (var result : threads.invokeAll(Set.of(missing, bad))) {
        assertThat(result.get()).isTrue();
      }
    }
  }

  private static boolean alwaysFailsWith(int errno, Runnable call) {
    for (int i = 0; i < 2_000; i++) {
      assertThatThrownBy(call::run)
          .isInstanceOfSatisfying(
              PosixException.class, e -> assertThat(e.errno()).isEqualTo(errno));
    }
    return true;
  }
}
