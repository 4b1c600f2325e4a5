package io.gpunvme.sim;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.sim.media.FileMedia;
import io.gpunvme.sim.media.MappedMedia;
import io.gpunvme.sim.media.Media;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Backing files, by system calls and mapped: the file is the namespace, and what cannot be one is
 * refused with a reason.
 */
@ParameterizedClass
@ValueSource(booleans = {false, true})
class MediaFileTest {
  @Parameter boolean mapped;

  @TempDir Path folder;

  private Path file() {
    return folder.resolve("disk.img");
  }

  private Media open(Path file, long size, int granule, boolean readOnly) {
    return mapped
        ? MappedMedia.open(file, size, granule, readOnly)
        : FileMedia.open(file, size, granule, readOnly);
  }

  private NamespaceConfig namespace(Path file) {
    NamespaceConfig.Kind kind = mapped ? NamespaceConfig.Kind.MAPPED : NamespaceConfig.Kind.FILE;
    return new NamespaceConfig(kind, 4096, 512, file, false);
  }

  private Path existing(int bytes) throws IOException {
    return Files.write(file(), new byte[bytes]);
  }

  private void refused(Path file, long size, boolean readOnly, String why) {
    assertThatThrownBy(() -> open(file, size, 512, readOnly))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageStartingWith("file=" + file)
        .hasMessageContaining(why);
  }

  @Test
  void aNewFileIsSparseAndEqualsTheMediumByteForByte() throws IOException {
    long size = 1L << 30;
    try (Media media = open(file(), size, 4096, false);
        Arena arena = Arena.ofConfined()) {
      MemorySegment data = arena.allocateFrom("at the very end");
      media.write(size - data.byteSize(), data, 0, data.byteSize());
    }
    assertThat(Files.size(file())).isEqualTo(size);
    try (RandomAccessFile raw = new RandomAccessFile(file().toFile(), "r")) {
      raw.seek(size - 16);
      byte[] tail = new byte[15];
      raw.readFully(tail);
      assertThat(new String(tail, java.nio.charset.StandardCharsets.US_ASCII))
          .isEqualTo("at the very end");
    }
    assertThat(diskUsage(file())).isLessThan(1 << 20);
  }

  /** Bytes the file really occupies, by asking the system's own tool. */
  private static long diskUsage(Path file) throws IOException {
    Process du = new ProcessBuilder("stat", "-c", "%b", file.toString()).start();
    return 512
        * Long.parseLong(
            new String(
                    du.getInputStream().readAllBytes(), java.nio.charset.StandardCharsets.US_ASCII)
                .strip());
  }

  @Test
  void aFileInUseIsRefusedUntilItIsFreeAgain() throws IOException {
    Media writer = open(file(), 4096, 512, false);
    refused(file(), 0, false, "in use");
    refused(file(), 0, true, "in use");
    writer.close();
    try (Media reader = open(file(), 0, 512, true);
        Media another = open(file(), 0, 512, true)) {
      assertThat(reader.size()).isEqualTo(another.size());
      refused(file(), 0, false, "in use");
    }
  }

  @Test
  void whatWasWrittenIsThereAfterARestart() throws IOException {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment data = arena.allocateFrom("persistent");
      try (Media media = open(file(), 8192, 512, false)) {
        media.write(513, data, 0, data.byteSize());
      }
      try (Media media = open(file(), 0, 512, true)) {
        MemorySegment again = arena.allocate(data.byteSize());
        media.read(513, again, 0, again.byteSize());
        assertThat(again.getString(0)).isEqualTo("persistent");
        assertThat(media.size()).isEqualTo(8192);
      }
    }
  }

  @Test
  void trimmingGivesDiskSpaceBack() throws IOException {
    try (Media media = open(file(), 4 << 20, 512, false);
        Arena arena = Arena.ofConfined()) {
      media.write(0, arena.allocate(4 << 20).fill((byte) 1), 0, 4 << 20);
      media.flush();
      long before = diskUsage(file());
      media.trim(0, 4 << 20);
      assertThat(diskUsage(file())).isLessThan(before / 2);
    }
  }

  @Test
  void aReadOnlyFileIsRefusedUnlessTheNamespaceIsReadOnly() throws IOException {
    existing(4096);
    Files.setPosixFilePermissions(file(), PosixFilePermissions.fromString("r--r--r--"));

    refused(file(), 0, false, "may not be written; use readonly=on");
    try (Media media = open(file(), 0, 512, true);
        Arena arena = Arena.ofConfined()) {
      MemorySegment data = arena.allocate(512);
      media.read(0, data, 0, 512);
      assertThatThrownBy(() -> media.write(0, data, 0, 512)).isInstanceOf(IOException.class);
      assertThatThrownBy(() -> media.trim(0, 512)).isInstanceOf(IOException.class);
      assertThatThrownBy(() -> media.zero(0, 512)).isInstanceOf(IOException.class);
    }
  }

  @Test
  void whatCannotBeANamespaceIsRefused() throws IOException {
    refused(folder.resolve("no/such/disk"), 4096, false, "does not exist");
    refused(file(), 0, false, "give size=");
    refused(file(), 4096, true, "does not exist");
    assertThat(file()).doesNotExist();
    refused(folder, 4096, false, "is not a regular file");
    existing(1000);
    refused(file(), 0, false, "1000 bytes long, not a multiple of lba=512");
    refused(file(), 4096, false, "is 1000 bytes long, size= says 4096");
    assertThat(Files.size(file())).isEqualTo(1000);
    existing(0);
    refused(file(), 0, false, "is empty");
    refused(file(), 0, true, "is empty");
  }

  @Test
  void anEmptyFileBecomesAsLongAsConfigured() throws IOException {
    existing(0);
    open(file(), 4096, 512, false).close();
    assertThat(Files.size(file())).isEqualTo(4096);
  }

  @Test
  void aFileThatShrinksUnderneathIsAnErrorNotACrash() throws IOException {
    try (Media media = open(file(), 8192, 512, false);
        Arena arena = Arena.ofConfined();
        RandomAccessFile raw = new RandomAccessFile(file().toFile(), "rw")) {
      raw.setLength(4096);
      MemorySegment data = arena.allocate(8192);
      assertThatThrownBy(() -> media.read(0, data, 0, 8192))
          .isInstanceOf(IOException.class)
          .hasMessageContaining(mapped ? "pages are not there" : "ends at 4096");
      if (mapped) {
        assertThatThrownBy(() -> media.write(4096, data, 0, 4096)).isInstanceOf(IOException.class);
      }
      media.read(0, data, 0, 4096);
    }
  }

  /** Compiled code meets what has gone at other places than interpreted code. */
  @ParameterizedTest
  @ValueSource(ints = {4, 64, 512, 8192})
  void aFileThatShrinksIsAnErrorAlsoForCompiledCode(int bytes) throws IOException {
    try (Media media = open(file(), 32768, 512, false);
        Arena arena = Arena.ofConfined();
        RandomAccessFile raw = new RandomAccessFile(file().toFile(), "rw")) {
      MemorySegment data = arena.allocate(bytes, 8);
      for (int i = 0; i < 30_000; i++) {
        assertThat(isRead(media, i % 3 * 8192L, data)).isTrue();
      }
      raw.setLength(8192);
      for (int i = 0; i < 3_000; i++) {
        assertThat(isRead(media, i % 3 * 8192L, data)).as("%d", i).isEqualTo(i % 3 == 0);
      }
    }
  }

  private static boolean isRead(Media media, long position, MemorySegment data) {
    try {
      media.read(position, data, 0, data.byteSize());
      return true;
    } catch (IOException e) {
      return false;
    }
  }

  @Test
  void aDeviceIsNotARegularFile() {
    refused(Path.of("/dev/full"), 4096, false, "is not a regular file");
  }

  @Test
  void aControllerWithOneBadFileKeepsNoneOpen() throws IOException {
    Path missing = folder.resolve("no/such/disk");
    SimConfig config =
        SimConfig.builder().namespace(namespace(file())).namespace(namespace(missing)).build();
    long before = openFiles();
    assertThatThrownBy(() -> SimulatedController.create(config))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining(missing.toString());
    assertThat(openFiles()).isEqualTo(before);
  }

  /** Descriptors of this process that are open on the backing file. */
  private long openFiles() throws IOException {
    try (Stream<Path> descriptors = Files.list(Path.of("/proc/self/fd"))) {
      return descriptors.filter(this::isBackingFile).count();
    }
  }

  private boolean isBackingFile(Path descriptor) {
    try {
      return Files.readSymbolicLink(descriptor).equals(file());
    } catch (IOException e) {
      return false;
    }
  }

  @Test
  void usingAClosedFileIsAnErrorNotACrash() throws IOException {
    Media media = open(file(), 4096, 512, false);
    media.close();
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment data = arena.allocate(512);
      assertThatThrownBy(() -> media.read(0, data, 0, 512)).hasMessageContaining("closed");
      assertThatThrownBy(() -> media.write(0, data, 0, 512)).hasMessageContaining("closed");
      assertThatThrownBy(media::flush).hasMessageContaining("closed");
    }
  }
}
