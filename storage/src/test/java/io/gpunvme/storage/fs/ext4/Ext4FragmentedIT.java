package io.gpunvme.storage.fs.ext4;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.storage.fs.BytesReader;
import io.gpunvme.storage.fs.FileExtent;
import io.gpunvme.storage.fs.FileNode;
import io.gpunvme.storage.fs.FileSystem;
import io.gpunvme.storage.fs.ImageReader;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.SplittableRandom;
import java.util.TreeMap;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Files in very many parts, space that was never written, and a folder with 100 000 names. */
class Ext4FragmentedIT {
  private static final int BLOCK = 1024;
  private static final int NAMES = 100_000;
  private static final int TARGETS = 100;

  @TempDir Path folder;

  @BeforeAll
  static void tools() {
    E2fs.need("mke2fs", "debugfs", "e2fsck");
  }

  /**
   * 20 000 extents: three levels below the root, as debugfs leaves them and as e2fsck packs them.
   */
  @ParameterizedTest
  @ValueSource(strings = {"-t ext4", "-t ext4 -O ^metadata_csum"})
  void deepTreesAreReadToTheirLeaves(String options) throws IOException {
    int blocks = 40_000;
    byte[] content = SourceTree.bytes(new SplittableRandom(1), blocks * BLOCK);
    Path source = Files.createDirectory(folder.resolve("source"));
    Files.write(source.resolve("deep"), content);
    Path image = folder.resolve("image");
    E2fs.make(image, "64M", options + " -b 1024", source);
    List<String> requests = new ArrayList<>();
    for (int i = 1; i < blocks; i += 2) {
      requests.add("punch /deep %d %d".formatted(i, i));
      Arrays.fill(content, i * BLOCK, (i + 1) * BLOCK, (byte) 0);
    }
    Collections.shuffle(requests, new Random(1));
    E2fs.debug(image, requests);

    assertThat(E2fs.debug(image, "ex /deep").contains(" 3/ 3 ")).isTrue();
    check(image, "deep", content);
    E2fs.check(image);
    check(image, "deep", content);
  }

  private static void check(Path image, String path, byte[] content) {
    try (ImageReader reader = ImageReader.open(image)) {
      FileNode node = Ext4.open(reader, Ext4Options.STRICT).find(path, true);
      Map<Long, Map<Long, Long>> theirs = DebugfsExtents.of(image, List.of(node.id()));
      assertThat(DebugfsExtents.of(node.extents(), BLOCK)).isEqualTo(theirs.get(node.id()));
      byte[] read = new byte[content.length];
      assertThat(node.size()).isEqualTo(read.length);
      node.read(0, MemorySegment.ofArray(read));
      assertThat(Arrays.mismatch(read, content)).isEqualTo(-1);
      SplittableRandom random = new SplittableRandom(3);
      for (int i = 0; i < 1000; i++) {
        int from = random.nextInt(content.length);
        byte[] part = new byte[random.nextInt(Math.min(5000, content.length - from) + 1)];
        node.read(from, MemorySegment.ofArray(part));
        assertThat(part).isEqualTo(Arrays.copyOfRange(content, from, from + part.length));
      }
    }
  }

  /** Each file is written into the holes that were freed in another. */
  @ParameterizedTest
  @ValueSource(strings = {"7M -t ext4", "6M -t ext2", "7M -t ext3 -O ^dir_index"})
  void scatteredFilesAreReadInOrder(String options) throws IOException {
    Path source = Files.createDirectory(folder.resolve("source"));
    SplittableRandom random = new SplittableRandom(2);
    for (int i = 0; i < 4000; i++) {
      Files.write(source.resolve("small" + i), SourceTree.bytes(random, 700));
    }
    byte[] content = SourceTree.bytes(random, 1_800_000);
    Path file = Files.write(folder.resolve("content"), content);
    Path image = folder.resolve("image");
    E2fs.make(
        image, options.substring(0, 2), options.substring(3) + " -b 1024 -N 4200 -m 0", source);
    List<String> requests = new ArrayList<>();
    for (int i = 0; i < 4000; i += 2) {
      requests.add("rm /small" + i);
    }
    requests.add("write %s scattered".formatted(file));
    E2fs.debug(image, requests);

    check(image, "scattered", content);
    try (ImageReader reader = ImageReader.open(image)) {
      FileNode node = Ext4.open(reader, Ext4Options.STRICT).find("scattered", true);
      assertThat(node.extents()).hasSizeGreaterThan(500);
      Path dump = folder.resolve("dump");
      E2fs.debug(image, "dump /scattered " + dump);
      assertThat(TreeCheck.digest(node)).isEqualTo(TreeCheck.digest(dump));
    }
  }

  /** An image of 5 TiB, of which hardly anything exists. */
  @Test
  void blocksWhoseNumberHasMoreThan32BitsAreRead() throws IOException {
    Path source = Files.createDirectory(folder.resolve("source"));
    Files.write(source.resolve("file"), SourceTree.bytes(new SplittableRandom(5), BLOCK));
    Path image = folder.resolve("image");
    String options =
        "-t ext4 -b 1024 -O bigalloc,^has_journal,^resize_inode,^metadata_csum,uninit_bg -C 65536";
    E2fs.make(image, "5T", options + " -N 20480", source);
    long block = (1L << 32) + 123_456;
    byte[] content = SourceTree.bytes(new SplittableRandom(6), BLOCK);
    try (FileChannel channel = FileChannel.open(image, StandardOpenOption.WRITE);
        ImageReader reader = ImageReader.open(image)) {
      channel.write(ByteBuffer.wrap(content), block * BLOCK);
      Ext4Volume volume = new Ext4Volume(reader, Ext4Options.STRICT);
      assertThat(volume.superBlock.blocks).isEqualTo(5L << 30);
      long inode = Ext4.open(reader, Ext4Options.STRICT).find("file", true).id();
      ByteBuffer place = ByteBuffer.allocate(6).order(ByteOrder.LITTLE_ENDIAN);
      place.putShort((short) (block >>> 32)).putInt((int) block).flip();
      channel.write(place, volume.inode(inode, "").deviceOffset + Inode.MAP + 12 + 6);
    }
    assertThat(E2fs.debug(image, "ex /file")).contains(Long.toString(block));
    check(image, "file", content);
  }

  @Test
  void spaceThatWasNeverWrittenIsZeros() throws IOException {
    Path source = Files.createDirectory(folder.resolve("source"));
    byte[] content = SourceTree.bytes(new SplittableRandom(4), 10 * BLOCK + 100);
    Files.write(source.resolve("file"), content);
    Path image = folder.resolve("image");
    E2fs.make(image, "8M", "-t ext4 -b 1024", source);
    // Blocks 3 to 5 once had bytes, now they are allocated, not written; so are 11 to 50, of which
    // 11 to 20 are in the file, and 40 to 60 lie behind its end.
    E2fs.debug(
        image,
        "punch /file 3 5",
        "fallocate /file 3 5",
        "fallocate /file 11 60",
        "sif /file size " + 40 * BLOCK);
    byte[] expected = Arrays.copyOf(content, 40 * BLOCK);
    Arrays.fill(expected, 3 * BLOCK, 6 * BLOCK, (byte) 0);

    assertThat(E2fs.debug(image, "ex /file")).contains("Uninit");
    check(image, "file", withoutSlack(image, expected));
    try (ImageReader reader = ImageReader.open(image)) {
      FileNode node = Ext4.open(reader, Ext4Options.STRICT).find("file", true);
      assertThat(node.extents()).hasSize(4).filteredOn(FileExtent::isZeros).hasSize(2);
      assertThat(node.extents().getLast())
          .isEqualTo(new FileExtent(11 * BLOCK, 29 * BLOCK, FileExtent.ZEROS));
    }
  }

  /** What is behind the old end in the last block that was written is part of the file now. */
  private byte[] withoutSlack(Path image, byte[] expected) throws IOException {
    Path dump = folder.resolve("dump");
    E2fs.debug(image, "dump /file " + dump);
    byte[] theirs = Files.readAllBytes(dump);
    assertThat(Arrays.mismatch(theirs, expected)).isEqualTo(-1);
    return theirs;
  }

  /**
   * The names are written as a file, which then is made a folder; e2fsck gives it its index. They
   * are links to 100 files, since mke2fs would need half an hour to make as many files there.
   */
  @ParameterizedTest
  @ValueSource(
      strings = {
        "-t ext4 -b 1024",
        "-t ext4 -b 4096",
        "-t ext4 -b 1024 -O ^metadata_csum,large_dir"
      })
  void aNameAmongManyIsFoundWithFewReads(String options) throws IOException {
    int blockSize = options.contains("4096") ? 4096 : BLOCK;
    Path source = Files.createDirectory(folder.resolve("source"));
    for (int i = 0; i < TARGETS; i++) {
      Files.write(source.resolve("t" + i), ("target " + i).getBytes(StandardCharsets.UTF_8));
    }
    Files.write(source.resolve("huge"), new byte[1]);
    Path image = folder.resolve("image");
    E2fs.make(image, "64M", options, source);
    List<Long> targets = inodes(image);
    Path names = folder.resolve("names");
    writeNames(names, blockSize, targets, options.contains("^metadata_csum") ? 0 : 12);
    E2fs.debug(image, "rm /huge", "write %s huge".formatted(names), "sif /huge mode 040755");
    E2fs.check(image);
    try (ImageReader file = ImageReader.open(image)) {
      BytesReader reader = BytesReader.of(image);
      FileSystem fs = Ext4.open(reader, Ext4Options.STRICT);
      assertThat(fs.find("huge", true).details().get("flags")).contains("indexed");
      Map<String, Long> found = new TreeMap<>();
      fs.find("huge", true).list(entry -> found.put(entry.name(), entry.id()));
      assertThat(found.size()).isEqualTo(NAMES);
      reader.forget();
      for (int i = 0; i < NAMES; i += 97) {
        long before = reader.reads();
        FileSystem fresh = i % 9700 == 0 ? Ext4.open(reader, Ext4Options.STRICT) : fs;
        assertThat(fresh.find("huge/" + name(i), true).id())
            .isEqualTo(found.get(name(i)))
            .isEqualTo(targets.get(i % TARGETS));
        // Superblock, group, inodes, extents, index of three levels, leaf; not thousands.
        assertThat(reader.reads() - before).isLessThan(60);
      }
      assertThat(reader.size()).isEqualTo(file.size());
    }
  }

  private static String name(int i) {
    return "f%d-of-many".formatted(i);
  }

  private static List<Long> inodes(Path image) {
    try (ImageReader reader = ImageReader.open(image)) {
      FileSystem fs = Ext4.open(reader, Ext4Options.STRICT);
      List<Long> inodes = new ArrayList<>();
      for (int i = 0; i < TARGETS; i++) {
        inodes.add(fs.find("t" + i, true).id());
      }
      return inodes;
    }
  }

  /** Blocks of a folder; e2fsck puts right what is missing: dots, checksums, counts of links. */
  private static void writeNames(Path file, int blockSize, List<Long> targets, int tail)
      throws IOException {
    int next = 0;
    while (next < NAMES) {
      ByteBuffer block = ByteBuffer.allocate(blockSize).order(ByteOrder.LITTLE_ENDIAN);
      int end = blockSize - tail;
      int last = 0;
      if (next == 0) {
        block.putInt(2).putInt(0x02_01_000C).putInt('.');
        block.putInt(2).putInt(0x02_02_000C).putInt('.' | '.' << 8);
      }
      while (next < NAMES) {
        byte[] name = name(next).getBytes(StandardCharsets.UTF_8);
        int length = 8 + name.length + 3 & ~3;
        if (block.position() + length > end) {
          break;
        }
        last = block.position();
        block.putInt((int) (long) targets.get(next % TARGETS));
        block.putShort((short) length).put((byte) name.length).put((byte) 1).put(name);
        block.position(last + length);
        next++;
      }
      block.putShort(last + 4, (short) (end - last));
      if (tail > 0) {
        block.putShort(end + 4, (short) tail).put(end + 7, (byte) 0xDE);
      }
      Files.write(file, block.array(), StandardOpenOption.CREATE, StandardOpenOption.APPEND);
    }
  }
}
