package io.gpunvme.core.fs.ext4;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.core.fs.FileSystem;
import io.gpunvme.core.fs.FileSystemException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Names found by their hash, and what happens where the index is of no use. */
class HashIndexTest {
  private static final String LONG = "c".repeat(243);

  /** Of the same hash in the oldest version; three of them fill a block. */
  private static final List<String> COLLIDING =
      List.of("yowcqwe", "msqocgm", "iwoaukm", "akieumq", "awissas");

  private static byte[] image;

  @BeforeAll
  static void make(@TempDir Path folder) throws IOException {
    image = image(folder, "legacy", ",^metadata_csum");
  }

  private static byte[] image(Path folder, String version, String features) throws IOException {
    Tools.require("mke2fs", "tune2fs", "e2fsck");
    Path many = Files.createDirectories(folder.resolve("source/many"));
    for (String name : names()) {
      Files.write(many.resolve(name), new byte[0]);
    }
    Path file = folder.resolve("image");
    String options = "-t ext4 -b 1024 -N 512 -O ^has_journal,^resize_inode" + features;
    Tools.mke2fs(file, "2M", options, folder.resolve("source"));
    Tools.run("tune2fs", "-E", "hash_alg=" + version, file.toString());
    Tools.run(List.of(0, 1), List.of("e2fsck", "-fyD", file.toString()));
    return MemoryImage.of(file).bytes;
  }

  private static List<String> names() {
    List<String> names = new ArrayList<>();
    for (int i = 0; i < 200; i++) {
      names.add("%0250d".formatted(i));
      names.add("ü-%d".formatted(i));
    }
    COLLIDING.forEach(name -> names.add(LONG + name));
    return names;
  }

  private static int root(byte[] bytes) {
    Volume volume = new Volume(new MemoryImage(bytes), Ext4Options.STRICT);
    long many = Ext4.open(volume.reader, Ext4Options.STRICT).find("many", true).id();
    Inode inode = volume.inode(many, "");
    return (int) DataMap.of(volume, inode).getFirst().deviceOffset();
  }

  private static List<Long> leaves(byte[] bytes, String name) {
    Volume volume = new Volume(new MemoryImage(bytes), Ext4Options.STRICT);
    long many = Ext4.open(volume.reader, Ext4Options.STRICT).find("many", true).id();
    return new Folder(volume, volume.inode(many, "")).index().leaves(name.getBytes(UTF_8));
  }

  @ParameterizedTest
  @ValueSource(strings = {"legacy", "half_md4", "tea"})
  void eachVersionLeadsToOneBlock(String version, @TempDir Path folder) throws IOException {
    byte[] bytes = image(folder, version, "");
    FileSystem fs = Ext4.open(new MemoryImage(bytes), Ext4Options.STRICT);
    for (String name : names()) {
      assertThat(fs.find("many/" + name, true).size()).isZero();
      if (!name.startsWith("c")) {
        assertThat(leaves(bytes, name)).hasSize(1);
      }
    }
  }

  @Test
  void namesOfOneHashAreFoundInAllTheBlocksTheyFill() {
    assertThat(leaves(image, LONG + COLLIDING.getFirst())).hasSizeGreaterThan(1);
    FileSystem fs = Ext4.open(new MemoryImage(image), Ext4Options.STRICT);
    for (String name : COLLIDING) {
      assertThat(fs.find("many/" + LONG + name, true).size()).isZero();
    }
    assertThatThrownBy(() -> fs.find("many/" + LONG + "yowcqwf", true))
        .isInstanceOf(FileSystemException.class);
  }

  /** Without checksums, so that only the index itself tells. */
  @ParameterizedTest
  @CsvSource({
    // Byte in the root of the index, what it becomes.
    "28, 6", // version of the hash: that of encrypted folders
    "28, 255",
    "29, 9", // length of what is said of the index
    "30, 2", // levels
    "30, 1", // a leaf is taken for a node
    "24, 1",
    "34, 0", // entries
    "35, 255",
    "36, 0", // the first leaf is the root
    "38, 255", // the first leaf is nowhere
  })
  void aDamagedIndexIsNotUsed(int at, int value) {
    byte[] changed = image.clone();
    changed[root(image) + at] = (byte) value;
    String first = // one whose leaf is the first
        names().stream()
            .filter(name -> leaves(image, name).equals(firstLeaf()))
            .findFirst()
            .orElseThrow();
    assertThat(leaves(changed, first)).isNull();
    FileSystem fs = Ext4.open(new MemoryImage(changed), Ext4Options.STRICT);
    assertThat(fs.find("many/" + first, true).size()).isZero();
  }

  private static List<Long> firstLeaf() {
    return List.of((long) image[root(image) + 36] & 0xFF);
  }

  /** Entries that lead back to the index itself, for ever if one let them. */
  @Test
  void anIndexInACircleIsNotUsed() {
    byte[] changed = image.clone();
    int root = root(image);
    int count = changed[root + 34] & 0xFF;
    changed[root + 30] = 1;
    int node = 3; // becomes a node all of whose entries are itself
    for (int i = 0; i < count; i++) {
      changed[root + 36 + 8 * i] = (byte) node;
    }
    Volume volume = new Volume(new MemoryImage(image), Ext4Options.STRICT);
    long many = Ext4.open(volume.reader, Ext4Options.STRICT).find("many", true).id();
    int at = (int) DataMap.of(volume, volume.inode(many, "")).getFirst().deviceOffset();
    int block = at + node * 1024;
    Arrays.fill(changed, block, block + 1024, (byte) 0);
    changed[block + 5] = 4; // 1024 bytes to the next entry
    changed[block + 8] = 126;
    changed[block + 10] = 1;
    changed[block + 12] = 0; // and that one is the root
    assertThat(leaves(changed, "x")).isNull();
  }
}
