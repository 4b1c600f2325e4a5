package io.gpunvme.storage.path.file;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.gpunvme.ffi.Errno;
import io.gpunvme.ffi.Posix;
import io.gpunvme.storage.injection.OwnProcess;
import io.gpunvme.storage.path.StorageException;
import io.gpunvme.storage.path.StorageException.Kind;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(300)
final class SourceFileTest {
  private static final int PAGE = Posix.pageSize();

  @TempDir private Path directory;

  private Path write(String name, int bytes) throws Exception {
    return Files.write(directory.resolve(name), new byte[bytes]);
  }

  @Test
  void tellsWhatTheFileIs() throws Exception {
    Path path = write("file", 10_000);
    try (SourceFile file = SourceFile.open(path.toString(), false)) {
      assertThat(file.name()).isEqualTo(path.toString());
      assertThat(file.size()).isEqualTo(10_000);
      assertThat(file.isBlockDevice()).isFalse();
      assertThat(file.blockSize()).isEqualTo(512);
      assertThat(file.writable()).isFalse();
      assertThat(file.device()).matches("\\d+:\\d+");
      assertThat(file.fileSystem()).isNotEmpty();
      Files.write(path, new byte[20_000]);
      assertThat(file.size()).as("now").isEqualTo(20_000);
    }
  }

  @Test
  void directDescriptorOrReason() throws Exception {
    try (SourceFile file = SourceFile.open(write("file", 10_000).toString(), true)) {
      assertThat(file.hasDirect()).isEqualTo(file.directRefusal().isEmpty());
      if (file.hasDirect()) {
        assertThat(file.directFd()).isNotEqualTo(file.fd());
        assertThat(file.directAlignment()).isBetween(512, 65536);
        assertThat(Integer.bitCount(file.directAlignment())).isOne();
        assertThat(file.directMemoryAlignment()).isBetween(512, 65536);
      } else {
        assertThatIllegalStateException().isThrownBy(file::directFd);
      }
    }
  }

  @Test
  void memoryFileSystemsHaveNoDirect() throws Exception {
    Assumptions.assumeTrue(Files.isWritable(Path.of("/dev/shm")), "no /dev/shm");
    Path path = Files.createTempFile(Path.of("/dev/shm"), "gpunvme", ".bin");
    try (SourceFile file = SourceFile.open(path.toString(), false)) {
      assertThat(file.fileSystem()).isEqualTo("tmpfs");
      assertThat(file.hasDirect()).isFalse();
      assertThat(file.directRefusal()).contains("tmpfs has no O_DIRECT");
    } finally {
      Files.delete(path);
    }
  }

  @Test
  void residencyFollowsDropAndRead() throws Exception {
    int pages = 100;
    Path path = write("file", pages * PAGE - 100);
    try (SourceFile file = SourceFile.open(path.toString(), false)) {
      Assumptions.assumeFalse(file.fileSystem().equals("tmpfs"), "tmpfs keeps its pages");
      assertThat(file.residencyKnown()).isTrue();
      assertThat(file.residency(0, file.size())).as("written just now").isEqualTo(1);
      file.dropCache();
      assertThat(file.residency(0, file.size())).isZero();
      assertThat(file.isResident(5)).isFalse();
      try (RandomAccessFile reader = new RandomAccessFile(path.toFile(), "r")) {
        Posix.fadvise(file.fd(), 0, 0, Posix.POSIX_FADV_RANDOM);
        reader.seek(10L * PAGE);
        reader.read();
      }
      assertThat(file.isResident(10L * PAGE + 17)).isTrue();
      assertThat(file.residency(10L * PAGE, PAGE)).isEqualTo(1);
      assertThat(file.residency(0, file.size())).isBetween(0.01, 1.0);
      assertThat(file.residency(file.size(), 10)).as("past the end").isZero();
      assertThat(file.residency(0, 0)).isZero();
      assertThat(file.residency(-5, 10)).isZero();
    }
  }

  @Test
  void residencyOfLongRangesIsSampledAndFollowsGrowth() throws Exception {
    Path path = write("file", PAGE);
    long large = 3L << 30;
    try (SourceFile file = SourceFile.open(path.toString(), true)) {
      Assumptions.assumeFalse(file.fileSystem().equals("tmpfs"), "tmpfs keeps its pages");
      assertThat(file.isResident(0)).isTrue();
      Posix.ftruncate(file.fd(), large);
      file.dropCache();
      assertThat(file.residency(0, large)).isZero();
      // The first window, and what lies before the second.
      byte[] window = new byte[(int) Residency.WINDOW];
      try (RandomAccessFile reader = new RandomAccessFile(path.toFile(), "r")) {
        reader.readFully(window);
      }
      assertThat(file.residency(0, large))
          .isBetween(0.9 / SourceFile.WINDOWS, 3.5 / SourceFile.WINDOWS);
    }
  }

  @Test
  void otherFilesAreRefused() throws Exception {
    assertThat(refusal(directory.toString(), false)).isEqualTo(Kind.UNSUPPORTED);
    assertThat(refusal("/dev/null", false)).isEqualTo(Kind.UNSUPPORTED);
    assertThat(refusal("/nowhere/at/all", false)).isEqualTo(Kind.GONE);
    Path pipe = directory.resolve("pipe");
    new ProcessBuilder("mkfifo", pipe.toString()).start().waitFor();
    Assumptions.assumeTrue(Files.exists(pipe), "no mkfifo");
    assertThat(refusal(pipe.toString(), false)).as("without waiting").isEqualTo(Kind.UNSUPPORTED);
  }

  private static Kind refusal(String file, boolean writable) {
    return catchThrowableOfType(
            StorageException.class, () -> SourceFile.open(file, writable).close())
        .kind();
  }

  @Test
  void blockDevicesAreReadOnly() throws Exception {
    Path device = blockDevice();
    try (SourceFile file = SourceFile.open(device.toString(), false)) {
      assertThat(file.isBlockDevice()).isTrue();
      assertThat(file.size()).isPositive();
      assertThat(file.size() % 512).isZero();
    } catch (StorageException e) {
      // Root in a container may be forbidden what the file's mode allows.
      assertThat(e.kind()).isEqualTo(Kind.PERMISSION);
      Assumptions.abort(e.getMessage());
    }
    assertThat(refusal(device.toString(), true)).isEqualTo(Kind.UNSUPPORTED);
  }

  private static Path blockDevice() throws Exception {
    try (var names = Files.list(Path.of("/sys/block"))) {
      List<Path> nodes =
          names
              .map(n -> Path.of("/dev", n.getFileName().toString()))
              .filter(Files::isReadable)
              .filter(n -> sectors(n) > 0)
              .toList();
      Assumptions.assumeFalse(nodes.isEmpty(), "no block device that this user may read");
      return nodes.getFirst();
    } catch (java.nio.file.NoSuchFileException e) {
      return Assumptions.abort("no /sys/block");
    }
  }

  private static long sectors(Path node) {
    try {
      Path size = Path.of("/sys/block", node.getFileName().toString(), "size");
      return Long.parseLong(Files.readString(size).strip());
    } catch (java.io.IOException e) {
      return 0;
    }
  }

  @Test
  void closedFilesAreNotUsedAndNothingIsLeft() throws Exception {
    String path = write("file", 10_000).toString();
    List<String> before = OwnProcess.openOn();
    for (int i = 0; i < 10; i++) {
      SourceFile file = SourceFile.open(path, false);
      file.hasDirect();
      file.isResident(0);
      file.close();
      file.close();
      assertThatIllegalStateException().isThrownBy(file::size);
      assertThatIllegalStateException().isThrownBy(file::fd);
      assertThatIllegalStateException().isThrownBy(file::hasDirect);
      assertThatIllegalStateException().isThrownBy(() -> file.isResident(0));
    }
    assertThat(OwnProcess.openOn()).isEqualTo(before);
  }

  @Test
  void errorNumbersHaveTheirKinds() {
    assertThat(FileErrors.kind(Errno.EIO)).isEqualTo(Kind.IO);
    assertThat(FileErrors.kind(Errno.ENOSPC)).isEqualTo(Kind.NO_SPACE);
    assertThat(FileErrors.kind(Errno.EDQUOT)).isEqualTo(Kind.NO_SPACE);
    assertThat(FileErrors.kind(Errno.ENODEV)).isEqualTo(Kind.GONE);
    assertThat(FileErrors.kind(Errno.EROFS)).isEqualTo(Kind.PERMISSION);
    assertThat(FileErrors.of("f", 5, 6, "read", Errno.EIO))
        .hasMessageContaining("f, 6 bytes at 5")
        .hasMessageContaining("read: EIO");
  }
}
