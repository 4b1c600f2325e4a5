package io.gpunvme.storage.fs;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.gpunvme.ffi.Fiemap;
import io.gpunvme.ffi.Posix;
import io.gpunvme.ffi.PosixException;
import io.gpunvme.storage.fs.FileSystemException.Kind;
import io.gpunvme.testing.Programs;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What the kernel says of real files, and every flag that it may set. */
class FiemapExtentsTest {
  private static final int BLOCK = 4096;

  @TempDir Path folder;

  /** The test is skipped, and says so, where files are on tmpfs or the like. */
  private static List<FileExtent> ask(Path file) throws IOException {
    try {
      return FiemapExtents.of(file);
    } catch (FileSystemException e) {
      if (e.kind() == Kind.UNSUPPORTED
          && String.valueOf(e.getMessage()).contains("does not report")) {
        System.out.println("SKIP FIEMAP: " + e.getMessage());
        Assumptions.abort(e.getMessage());
      }
      throw e;
    }
  }

  private Path written(int blocks) throws IOException {
    return Files.write(folder.resolve("file.bin"), new byte[blocks * BLOCK - 7]);
  }

  @Test
  void aFileThatWasJustWritten() throws IOException {
    List<FileExtent> extents = ask(written(100));

    assertThat(extents.getFirst().fileOffset()).isZero();
    assertThat(extents.getLast().end()).isEqualTo(100 * BLOCK - 7);
    assertThat(extents).noneMatch(FileExtent::isZeros);
  }

  @Test
  void holesAndSpaceThatWasNeverWritten() throws IOException {
    Path file = written(10);
    try (FileChannel channel = FileChannel.open(file, StandardOpenOption.WRITE)) {
      channel.write(ByteBuffer.allocate(BLOCK), 40 * BLOCK);
    }
    int fd = Posix.open(file.toString(), Posix.O_RDWR, 0);
    try {
      Posix.fallocate(fd, 0, 41 * BLOCK, 20 * BLOCK);
      Posix.ftruncate(fd, 100 * BLOCK);
    } finally {
      Posix.close(fd);
    }
    List<FileExtent> extents = ask(file);

    assertThat(extents.stream().filter(FileExtent::isZeros))
        .extracting(FileExtent::fileOffset, FileExtent::length)
        .containsExactly(
            org.assertj.core.groups.Tuple.tuple(10L * BLOCK, 30L * BLOCK),
            org.assertj.core.groups.Tuple.tuple(41L * BLOCK, 59L * BLOCK));
    assertThat(extents.getLast().end()).isEqualTo(100 * BLOCK);
  }

  @Test
  void emptyFilesAndThoseOfNothingButAHole() throws IOException {
    Path file = Files.createFile(folder.resolve("empty"));
    assertThat(FiemapExtents.of(file)).isEmpty();
    int fd = Posix.open(file.toString(), Posix.O_RDWR, 0);
    Posix.ftruncate(fd, 1L << 40);
    Posix.close(fd);
    assertThat(ask(file)).containsExactly(new FileExtent(0, 1L << 40, FileExtent.ZEROS));
  }

  /** More extents than the kernel tells at a time, compared with e2fsprogs' own reading. */
  @Test
  void asFilefragHasIt() throws IOException {
    Programs.need("e2fsprogs", "filefrag");
    Path file = folder.resolve("fragmented.bin");
    try (FileChannel channel =
        FileChannel.open(file, StandardOpenOption.CREATE, StandardOpenOption.WRITE)) {
      for (int i = 0; i < 3000; i++) {
        channel.write(ByteBuffer.allocate(BLOCK), 2L * i * BLOCK);
      }
    }
    List<FileExtent> ours = ask(file);
    assertThat(ours).hasSize(5999);

    String said = new String(Programs.run("filefrag", "-v", file), StandardCharsets.UTF_8);
    Matcher line =
        Pattern.compile("(?m)^ *\\d+: *(\\d+)\\.\\. *\\d+: *(\\d+)\\.\\. *\\d+: *(\\d+):")
            .matcher(said);
    List<FileExtent> theirs = new ArrayList<>();
    while (line.find()) {
      theirs.add(
          new FileExtent(
              Long.parseLong(line.group(1)) * BLOCK,
              Long.parseLong(line.group(3)) * BLOCK,
              Long.parseLong(line.group(2)) * BLOCK));
    }
    assertThat(ours.stream().filter(e -> !e.isZeros()).toList()).isEqualTo(theirs);
  }

  /** The bytes are where the kernel says, if the disk can be read. */
  @Test
  void theBytesAreThere() throws IOException {
    Path file = folder.resolve("content.bin");
    byte[] content = new byte[8 * BLOCK];
    new java.util.Random(1).nextBytes(content);
    Files.write(file, content);
    List<FileExtent> extents = ask(file);
    Path disk = Path.of(Files.getFileStore(file).name());
    Assumptions.assumeTrue(Files.isReadable(disk), disk + " cannot be read");
    int fd = open(disk);
    try (Arena arena = Arena.ofConfined()) {
      for (FileExtent e : extents) {
        MemorySegment there = arena.allocate(e.length(), BLOCK);
        Posix.pread(fd, there, e.deviceOffset());
        MemorySegment expected = MemorySegment.ofArray(content).asSlice(e.fileOffset(), e.length());
        assertThat(there.mismatch(expected)).isEqualTo(-1);
      }
    } finally {
      Posix.close(fd);
    }
  }

  private static int open(Path disk) {
    try {
      return Posix.open(disk.toString(), Posix.O_RDONLY | Posix.O_DIRECT, 0);
    } catch (PosixException e) {
      System.out.println("SKIP the bytes at their places: " + e.getMessage());
      return Assumptions.abort(e.getMessage());
    }
  }

  @Test
  void whatIsNoFile() throws IOException {
    assertThatExceptionOfType(NoSuchFileException.class)
        .isThrownBy(() -> FiemapExtents.of(folder.resolve("missing")));
    assertThatExceptionOfType(FileSystemException.class)
        .isThrownBy(() -> FiemapExtents.of(folder))
        .withMessageContaining("not a regular file");
    Path proc = Path.of("/proc/version");
    if (Files.exists(proc)) {
      assertThat(FiemapExtents.of(proc)).isEmpty();
    }
    Path shm = Path.of("/dev/shm");
    if (Files.isWritable(shm) && Files.getFileStore(shm).type().equals("tmpfs")) {
      Path file = Files.createTempFile(shm, "fiemap", "");
      try {
        Files.write(file, new byte[5]);
        assertThatExceptionOfType(FileSystemException.class)
            .isThrownBy(() -> FiemapExtents.of(file))
            .withMessageContaining("FIEMAP");
      } finally {
        Files.delete(file);
      }
    }
  }

  private static List<FileExtent> places(long size, Fiemap.Extent... extents) {
    FiemapExtents.Places places = new FiemapExtents.Places("file", size);
    for (Fiemap.Extent e : extents) {
      places.add(e);
    }
    return places.toTheEnd();
  }

  @Test
  void whatTheKernelSaysIsCutAndMerged() {
    assertThat(
            places(
                100,
                new Fiemap.Extent(0, 1000, 10, 0),
                new Fiemap.Extent(10, 1010, 10, 0),
                new Fiemap.Extent(15, 1015, 10, 0),
                new Fiemap.Extent(30, 7, 10, Fiemap.UNWRITTEN),
                new Fiemap.Extent(90, 2000, 500, Fiemap.LAST)))
        .containsExactly(
            new FileExtent(0, 25, 1000),
            new FileExtent(25, 65, FileExtent.ZEROS),
            new FileExtent(90, 10, 2000));
  }

  @ParameterizedTest
  @CsvSource({
    "0x8,   compressed or encrypted",
    "0x88,  compressed or encrypted",
    "0x300, kept with the inode",
    "0x100, shares blocks",
    "0x400, shares blocks",
    "0x6,   a program is still writing",
    "0x2,   no known place"
  })
  void placesThatAreNone(String flags, String why) {
    assertThatExceptionOfType(FileSystemException.class)
        .isThrownBy(() -> places(100, new Fiemap.Extent(0, 0, 10, Integer.decode(flags))))
        .withMessageContaining(why)
        .satisfies(e -> assertThat(e.kind()).isEqualTo(Kind.UNSUPPORTED));
  }

  @Test
  void nonsense() {
    for (Fiemap.Extent e :
        new Fiemap.Extent[] {
          new Fiemap.Extent(0, 0, 0, 0),
          new Fiemap.Extent(0, 0, -1, 0),
          new Fiemap.Extent(-1, 0, 5, 0),
          new Fiemap.Extent(Long.MAX_VALUE, 0, 5, 0)
        }) {
      assertThatExceptionOfType(FileSystemException.class).isThrownBy(() -> places(100, e));
    }
    assertThat(places(100, new Fiemap.Extent(500, 0, 5, 0)))
        .containsExactly(new FileExtent(0, 100, FileExtent.ZEROS));
  }
}
