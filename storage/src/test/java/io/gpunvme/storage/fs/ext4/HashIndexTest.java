package io.gpunvme.storage.fs.ext4;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.storage.fs.BytesReader;
import io.gpunvme.storage.fs.FileExtent;
import io.gpunvme.storage.fs.FileSystem;
import io.gpunvme.storage.fs.FileSystemException;
import io.gpunvme.testing.Programs;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
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
    E2fs.need("mke2fs", "tune2fs", "e2fsck");
    Path many = Files.createDirectories(folder.resolve("source/many"));
    for (String name : names()) {
      Files.write(many.resolve(name), new byte[0]);
    }
    Path file = folder.resolve("image");
    String options = "-t ext4 -b 1024 -N 512 -O ^has_journal,^resize_inode" + features;
    E2fs.make(file, "2M", options, folder.resolve("source"));
    Programs.run("tune2fs", "-E", "hash_alg=" + version, file);
    E2fs.check(file);
    return Files.readAllBytes(file);
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
    return place(bytes, 0);
  }

  /** Where a block of the folder is. */
  private static int place(byte[] bytes, int block) {
    Ext4Volume volume = new Ext4Volume(new BytesReader(bytes), Ext4Options.STRICT);
    long many = Ext4.open(volume.reader, Ext4Options.STRICT).find("many", true).id();
    int at = block * 1024;
    FileExtent extent =
        DataMap.of(volume, volume.inode(many, "")).stream()
            .filter(e -> e.end() > at)
            .findFirst()
            .orElseThrow();
    return (int) (extent.deviceOffset() + at - extent.fileOffset());
  }

  private static List<Long> leaves(byte[] bytes, String name) {
    Ext4Volume volume = new Ext4Volume(new BytesReader(bytes), Ext4Options.STRICT);
    long many = Ext4.open(volume.reader, Ext4Options.STRICT).find("many", true).id();
    return new Ext4Folder(volume, volume.inode(many, "")).index().leaves(name.getBytes(UTF_8));
  }

  @ParameterizedTest
  @ValueSource(strings = {"legacy", "half_md4", "tea"})
  void eachVersionLeadsToOneBlock(String version, @TempDir Path folder) throws IOException {
    byte[] bytes = image(folder, version, "");
    FileSystem fs = Ext4.open(new BytesReader(bytes), Ext4Options.STRICT);
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
    FileSystem fs = Ext4.open(new BytesReader(image), Ext4Options.STRICT);
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
    FileSystem fs = Ext4.open(new BytesReader(changed), Ext4Options.STRICT);
    assertThat(fs.find("many/" + first, true).size()).isZero();
  }

  private static List<Long> firstLeaf() {
    return List.of((long) image[root(image) + 36] & 0xFF);
  }

  /** Each of many entries leads to the same node, each of its many to the same leaf. */
  @Test
  void anIndexThatMeetsItsBlocksAgainAndAgainIsNotUsed() {
    byte[] changed = image.clone();
    int root = root(image);
    String name = LONG + COLLIDING.getFirst();
    int hash = NameHash.of(name.getBytes(UTF_8), 0, false, new int[4]);
    changed[root + 30] = 1; // levels
    int node = place(image, 3);
    Arrays.fill(changed, node, node + 1024, (byte) 0);
    changed[node + 5] = 4; // 1024 bytes to the next name
    entries(changed, root + 32, changed[root + 34], hash, 3);
    assertThat(leaves(changed, name)).isNull(); // the node has no entries
    entries(changed, node + 8, 100, hash, 4);
    assertThat(leaves(changed, name)).isNull();
    entries(changed, root + 32, 1, hash, 3);
    entries(changed, node + 8, 1, hash, 4);
    assertThat(leaves(changed, name)).containsExactly(4L);
  }

  private static void entries(byte[] bytes, int at, int count, int hash, int block) {
    ByteBuffer buffer = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
    buffer.putShort(at, (short) 120).putShort(at + 2, (short) count).putInt(at + 4, block);
    for (int i = 1; i < count; i++) {
      buffer.putInt(at + 8 * i, hash | 1).putInt(at + 8 * i + 4, block);
    }
  }
}
