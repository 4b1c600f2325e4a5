package io.gpunvme.storage.fs;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.gpunvme.storage.fs.FileSystemException.Kind;
import io.gpunvme.storage.fs.partition.Disk;
import io.gpunvme.testing.Programs;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What is found on a device, and what is said where it is not one thing that can be read. */
class FileSystemsTest {
  private static final String LINUX = "0FC63DAF-8483-4772-8E79-3D69D8477DE4";
  private static final int SECTORS = 20_000;
  private static final int FIRST = 64;

  @TempDir Path folder;

  /** A small volume with a file; too small for Windows, not for us. */
  private byte[] fat(String label) throws IOException {
    Programs.need("dosfstools", "mkfs.vfat");
    Path image = folder.resolve(label);
    Programs.run("mkfs.vfat", "-F", 32, "-s", 1, "-n", label, "-C", image, 2048);
    byte[] volume = Files.readAllBytes(image);
    Files.delete(image);
    return volume;
  }

  private static Disk disk() {
    return new Disk(512, SECTORS);
  }

  private static void put(Disk disk, int sector, byte[] volume) {
    System.arraycopy(volume, 0, disk.bytes, sector * 512, volume.length);
  }

  private static void fails(Kind kind, Disk disk, int partition, String... what) {
    assertThatExceptionOfType(FileSystemException.class)
        .isThrownBy(
            () -> FileSystems.open(disk.reader(), FileSystemOptions.defaults().in(partition)))
        .satisfies(e -> assertThat(e.kind()).as(e.toString()).isEqualTo(kind))
        .satisfies(e -> assertThat(e.getMessage()).contains(what));
  }

  @Test
  void onTheWholeDevice() throws IOException {
    OpenedFileSystem opened = FileSystems.open(new BytesReader(fat("WHOLE")));

    assertThat(opened.fileSystem().type()).isEqualTo("vfat");
    assertThat(opened.fileSystem().label()).isEqualTo("WHOLE");
    assertThat(opened.partition()).isNull();
    assertThat(opened.notes()).isEmpty();
  }

  @Test
  void ext4() throws IOException {
    Programs.need("e2fsprogs", "mke2fs");
    Path image = folder.resolve("ext4.img");
    Path source = Files.createDirectory(folder.resolve("source"));
    Files.writeString(source.resolve("hello.txt"), "content of a file on ext4");
    Programs.run("mke2fs", "-q", "-t", "ext4", "-L", "four", "-d", source, image, "4M");
    Disk disk = disk().partition(0, LINUX, FIRST, FIRST + 8191, "linux").gpt();
    put(disk, FIRST, Files.readAllBytes(image));

    try (ImageReader whole = ImageReader.open(image)) {
      assertThat(FileSystems.open(whole).fileSystem().label()).isEqualTo("four");
    }
    FileSystem inPartition = FileSystems.open(disk.reader()).fileSystem();
    assertThat(inPartition.type()).isEqualTo("ext4");
    FileExtent extent = inPartition.find("hello.txt", true).extents().getFirst();
    assertThat(new String(disk.bytes, (int) extent.deviceOffset(), 25, StandardCharsets.UTF_8))
        .isEqualTo("content of a file on ext4");
  }

  @Test
  void inTheOnlyPartitionThatHasOne() throws IOException {
    Disk disk =
        disk()
            .partition(0, LINUX, 40, 60, "nothing")
            .partition(1, LINUX, FIRST, FIRST + 4095, "models")
            .gpt();
    put(disk, FIRST, fat("ONE"));

    OpenedFileSystem opened = FileSystems.open(disk.reader());

    assertThat(opened.partition()).isNotNull();
    assertThat(opened.partition().number()).isEqualTo(2);
    assertThat(opened.fileSystem().label()).isEqualTo("ONE");
    assertThat(opened.fileSystem().type()).isEqualTo("vfat");
    assertThat(opened.fileSystem().blockSize()).isEqualTo(512);
    fails(Kind.NOT_FOUND, disk, 1, "memory#1", "no known file system");
    fails(Kind.NOT_FOUND, disk, 3, "no partition #3", "#2 (Linux files 'models'", "with vfat");
  }

  /** Extents count from the start of the device: that is what NVMe commands need. */
  @Test
  void placesOnTheDevice() throws IOException {
    Programs.need("mtools", "mcopy");
    Path image = folder.resolve("fat.img");
    Programs.run("mkfs.vfat", "-F", 32, "-s", 1, "-C", image, 40_000);
    Path file = Files.writeString(folder.resolve("content"), "the content of a file");
    Programs.run("mcopy", "-i", image, file, "::/a.txt");
    byte[] volume = Files.readAllBytes(image);
    Disk disk = new Disk(512, FIRST + volume.length / 512 + 100);
    disk.mbr(0, 0, 0x0C, FIRST, volume.length / 512);
    put(disk, FIRST, volume);

    FileNode node = FileSystems.open(disk.reader()).fileSystem().find("A.TXT", true);

    FileExtent extent = node.extents().getFirst();
    assertThat(new String(disk.bytes, (int) extent.deviceOffset(), 21, StandardCharsets.UTF_8))
        .isEqualTo("the content of a file");
    byte[] read = new byte[21];
    node.read(0, MemorySegment.ofArray(read));
    assertThat(new String(read, StandardCharsets.UTF_8)).isEqualTo("the content of a file");
    assertThat(node.kind()).isEqualTo(FileNode.Kind.FILE);
    assertThat(node.details()).containsKey("attributes");
    assertThat(node.id()).isPositive();
    assertThat(node.modified().toString()).startsWith("20");
  }

  @Test
  void severalNeedANumber() throws IOException {
    Disk disk =
        disk()
            .partition(0, LINUX, FIRST, FIRST + 4095, "a")
            .partition(1, LINUX, 8192, 8192 + 4095, "b")
            .gpt();
    put(disk, FIRST, fat("FIRST"));
    put(disk, 8192, fat("SECOND"));

    fails(Kind.NOT_FOUND, disk, 0, "several partitions", "DEVICE#N:/PATH", "#1 (", "#2 (");
    for (int number : new int[] {1, 2}) {
      FileSystemOptions options = FileSystemOptions.defaults().in(number);
      assertThat(FileSystems.open(disk.reader(), options).fileSystem().label())
          .isEqualTo(List.of("FIRST", "SECOND").get(number - 1));
    }
  }

  @Test
  void aDamagedTableIsSaid() throws IOException {
    Disk disk = disk().partition(0, LINUX, FIRST, FIRST + 4095, "a").gpt();
    put(disk, FIRST, fat("FIRST"));
    disk.bytes[512] = 0;

    assertThat(FileSystems.open(disk.reader()).notes())
        .singleElement()
        .asString()
        .contains("damaged");
  }

  @Test
  void nothingAtAll() {
    fails(Kind.NOT_FOUND, disk(), 0, "neither a known file system");
    fails(Kind.NOT_FOUND, disk(), 1, "no partition table");
    fails(Kind.NOT_FOUND, disk().gpt(), 0, "the table is empty");
    fails(
        Kind.NOT_FOUND,
        disk().partition(0, LINUX, 40, 60, "nothing").gpt(),
        0,
        "no partition has a readable file system",
        "with nothing known");
  }

  @ParameterizedTest
  @CsvSource({
    "0, XFSB, xfs",
    "65600, _BHRfS_M, btrfs",
    "0, hsqs, squashfs",
    "536, LVM2 001, LVM2",
    "4086, SWAPSPACE2, swap",
    "32769, CD001, ISO 9660"
  })
  void othersAreNamed(int at, String text, String name) {
    Disk disk = disk();
    byte[] raw = text.getBytes(StandardCharsets.US_ASCII);
    System.arraycopy(raw, 0, disk.bytes, at, raw.length);

    fails(Kind.UNSUPPORTED, disk, 0, "this is " + name, "ext4 and FAT32");

    Disk parted = disk().mbr(0, 0, 0x83, FIRST, 8000);
    System.arraycopy(raw, 0, parted.bytes, FIRST * 512 + at, raw.length);
    fails(Kind.NOT_FOUND, parted, 0, "with " + name);
    fails(Kind.UNSUPPORTED, parted, 1, "this is " + name);
  }
}
