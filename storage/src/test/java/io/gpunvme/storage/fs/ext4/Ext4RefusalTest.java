package io.gpunvme.storage.fs.ext4;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.storage.fs.BytesReader;
import io.gpunvme.storage.fs.FileNode;
import io.gpunvme.storage.fs.FileSystem;
import io.gpunvme.storage.fs.FileSystemException;
import io.gpunvme.storage.fs.FileSystemException.Kind;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Arrays;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What is wrong, or not read here, and what is said about it. */
class Ext4RefusalTest {
  private static final int SUPER = 1024;

  @TempDir static Path folder;
  private static byte[] plain; // without checksums
  private static byte[] checked;

  @BeforeAll
  static void make(@TempDir Path first, @TempDir Path second) throws IOException {
    E2fs.need("mke2fs", "debugfs", "e2fsck");
    String options = "-t ext4 -b 1024 -N 128 -O ^has_journal,^resize_inode";
    plain = SmallImages.make(first, options + ",^metadata_csum");
    checked = SmallImages.make(second, options);
  }

  private static FileSystemException failure(byte[] image) {
    return catchThrowableOfType(
        FileSystemException.class, () -> Ext4.open(new BytesReader(image), Ext4Options.STRICT));
  }

  private static byte[] with(byte[] image, int at, int bytes, long value) {
    byte[] changed = image.clone();
    for (int i = 0; i < bytes; i++) {
      changed[at + i] = (byte) (value >>> 8 * i);
    }
    return changed;
  }

  @ParameterizedTest
  @CsvSource({
    // Offset in the superblock, bytes, value, kind, part of the message.
    "0x38, 2, 0x1234,     NOT_FOUND,   magic",
    "0x4C, 4, 2,          UNSUPPORTED, revision 2",
    "0x18, 4, 7,          CORRUPT,     block size",
    "0x18, 4, -1,         CORRUPT,     block size",
    "0x18, 4, 6,          CORRUPT,     'the device has only 1048576 bytes'",
    "0x04, 4, 2000,       CORRUPT,     'the device has only 1048576 bytes'",
    "0x04, 4, 0,          CORRUPT,     first data block",
    "0x150, 4, -1,        CORRUPT,     first data block",
    "0x14, 4, 1024,       CORRUPT,     first data block",
    "0x20, 4, 0,          CORRUPT,     clusters of a group",
    "0x20, 4, 8193,       CORRUPT,     clusters of a group",
    "0x28, 4, 0,          CORRUPT,     inodes of a group",
    "0x00, 4, 129,        CORRUPT,     number of inodes",
    "0x58, 2, 129,        CORRUPT,     size of an inode",
    "0x58, 2, 2048,       CORRUPT,     size of an inode",
    "0x58, 2, 64,         CORRUPT,     size of an inode",
    "0x54, 4, 2,          CORRUPT,     first inode",
    "0xFE, 2, 32,         CORRUPT,     group descriptor",
    "0xFE, 2, 96,         CORRUPT,     group descriptor",
    "0x60, 4, 0x2c1,      UNSUPPORTED, compression",
    "0x60, 4, 0x2ca,      UNSUPPORTED, journal_dev",
    "0x60, 4, 0x12c2,     UNSUPPORTED, 0x1000 (dirdata)",
    "0x60, 4, 0x400002c2, UNSUPPORTED, 0x40000000",
    "0x60, 4, 0x800002c2, UNSUPPORTED, 0x80000000",
    "0x60, 4, 0x2c6,      JOURNAL,     e2fsck",
  })
  void aSuperblockThatCannotBeIsRefused(
      String at, int bytes, String value, Kind kind, String message) {
    byte[] image = with(plain, SUPER + Integer.decode(at), bytes, Long.decode(value));
    FileSystemException e = failure(image);
    assertThat(e).isNotNull();
    assertThat(e.kind()).isEqualTo(kind);
    assertThat(e.getMessage()).contains(message).contains("memory");
  }

  @Test
  void unknownFeaturesThatOnlyForbidWritingAreNoMatter() {
    byte[] image = with(plain, SUPER + 0x64, 4, 0x8000_0003L);
    image = with(image, SUPER + 0x5C, 4, 0x8000_0020L);
    assertThat(Everything.in(new BytesReader(image), true).refusals()).isZero();
  }

  @Test
  void whatIsTooShortOrEmptyIsNoFileSystem() {
    for (int length : new int[] {0, 1, 1024, 2047}) {
      assertThat(failure(Arrays.copyOf(plain, length)).kind()).isEqualTo(Kind.NOT_FOUND);
    }
    assertThat(failure(new byte[1 << 20]).kind()).isEqualTo(Kind.NOT_FOUND);
    assertThat(failure(Arrays.copyOf(plain, 1 << 19)).kind()).isEqualTo(Kind.CORRUPT);
  }

  @Test
  void aJournalIsOverlookedWhenAsked() {
    byte[] image = with(plain, SUPER + 0x60, 4, 0x2c6);
    FileSystem fs = Ext4.open(new BytesReader(image), new Ext4Options(true));
    assertThat(fs.find("few/a1", true).size()).isEqualTo(300);
  }

  /** A changed bit in each structure with a checksum is found where it is. */
  @ParameterizedTest
  @CsvSource({
    "superblock, 'superblock at byte 1024'",
    "group, 'descriptor of group 0 in block 2'",
    "inode, 'inode 2'",
    "extents, 'node of its extents in block'",
    "folder, 'block 0 of this folder'",
    "leaf, 'block 1 of this folder'",
  })
  void changedMetadataIsNamed(String what, String place) throws IOException {
    byte[] image = checked.clone();
    BytesReader reader = new BytesReader(image);
    FileSystem fs = Ext4.open(reader, Ext4Options.STRICT);
    Ext4Volume volume = new Ext4Volume(reader, Ext4Options.STRICT);
    int at =
        switch (what) {
          case "superblock" -> SUPER + 0x78;
          case "group" -> 2048 + 0x20;
          case "inode" -> (int) volume.inode(2, "").deviceOffset + 0x1C;
          case "extents" -> {
            Inode file = volume.inode(fs.find("holes", true).id(), "");
            yield (int) file.map().u32(12 + 4) * 1024 + 20;
          }
          case "folder" -> (int) volume.inode(2, "").map().u32(12 + 8) * 1024 + 30;
          default -> {
            Inode many = volume.inode(fs.find("many", true).id(), "");
            yield (int) DataMap.of(volume, many).getFirst().deviceOffset() + 1024 + 100;
          }
        };
    image[at] ^= 4;
    assertThatThrownBy(
            () -> {
              FileSystem changed = Ext4.open(new BytesReader(image), Ext4Options.STRICT);
              changed.find("holes", true).extents();
              changed.find("many", true).list(entry -> {});
            })
        .isInstanceOfSatisfying(
            FileSystemException.class, e -> assertThat(e.kind()).isEqualTo(Kind.CORRUPT))
        .hasMessageContaining(place)
        .hasMessageContaining("checksum");
  }

  /** Flags of the inode of a small file or of a folder. */
  @ParameterizedTest
  @CsvSource({
    "f50,  0x80800,    UNSUPPORTED, encrypted",
    "few,  0x80800,    UNSUPPORTED, encrypted",
    "f50,  0x180000,   UNSUPPORTED, fs-verity",
    "f50,  0x80200,    UNSUPPORTED, compressed",
    "f50,  0x280000,   CORRUPT,     attribute",
    "f50,  0x10080000, CORRUPT,     inline",
    "few,  0x40080000, UNSUPPORTED, casefold",
  })
  void inodesThatAreNotReadAreRefusedAndTheOthersAreRead(
      String path, String flags, Kind kind, String message) {
    byte[] image = with(plain, SUPER + 0x60, 4, 0x302c2); // encrypt and casefold
    Ext4Volume volume = new Ext4Volume(new BytesReader(image), Ext4Options.STRICT);
    FileSystem before = Ext4.open(new BytesReader(image), Ext4Options.STRICT);
    long inode = before.find(path, true).id();
    int at = (int) volume.inode(inode, "").deviceOffset;
    byte[] changed = with(image, at + 0x20, 4, Long.decode(flags));
    FileSystem fs = Ext4.open(new BytesReader(changed), Ext4Options.STRICT);
    FileNode node = fs.find(path, true);
    assertThat(node.details()).containsKey("mode");
    assertThatThrownBy(
            () -> {
              if (node.kind() == FileNode.Kind.FOLDER) {
                node.list(entry -> {});
              } else {
                node.extents();
              }
            })
        .isInstanceOfSatisfying(
            FileSystemException.class, e -> assertThat(e.kind()).isEqualTo(kind))
        .hasMessageContaining("inode " + inode)
        .hasMessageContaining(message);
    assertThat(fs.find("f1500", true).extents()).isNotEmpty();
  }

  /** Each block of the map would be read 256 times as often as the one that names it. */
  @Test
  void aBlockMapInACircleIsRefused(@TempDir Path own) throws IOException {
    byte[] image = SmallImages.make(own, "-t ext2 -b 1024 -N 128");
    Ext4Volume volume = new Ext4Volume(new BytesReader(image), Ext4Options.STRICT);
    FileSystem fs = Ext4.open(volume.reader, Ext4Options.STRICT);
    Inode holes = volume.inode(fs.find("holes", true).id(), "");
    long block = holes.map().u32(4 * 12);
    byte[] changed = with(image, (int) holes.deviceOffset + 4, 4, 1 << 30);
    changed = with(changed, (int) holes.deviceOffset + Inode.MAP + 4 * 14, 4, block);
    for (int i = 0; i < 256; i++) {
      changed = with(changed, (int) block * 1024 + 4 * i, 4, block);
    }
    corruptExtents(changed, "holes", "block %d of its map is used twice".formatted(block));
  }

  @ParameterizedTest
  @CsvSource({
    // Byte in the block with extents, bytes, value, part of the message.
    "0,  2, 0xF30B, magic",
    "2,  2, 400,    entries",
    "4,  2, 85,     entries",
    "4,  2, 0,      entries",
    "6,  2, 1,      'its depth is 1 instead of 0'",
    "12, 4, -1,     begins at block 4294967295",
    "16, 2, 0,      an extent has 0 blocks",
    "16, 2, 0x8000, an extent has 32768 blocks",
    "16, 2, 3,      after others to 3",
    "18, 2, 1,      but blocks 2 to 1023 are for files",
    "20, 4, 0,      but blocks 2 to 1023 are for files",
    "16, 8, 0x3ff00000002, but blocks 2 to 1023 are for files",
    "20, 4, 1024,   but blocks 2 to 1023 are for files",
  })
  void aTreeOfExtentsThatCannotBeIsRefused(int at, int bytes, String value, String message) {
    Ext4Volume volume = new Ext4Volume(new BytesReader(plain), Ext4Options.STRICT);
    FileSystem fs = Ext4.open(volume.reader, Ext4Options.STRICT);
    Inode holes = volume.inode(fs.find("holes", true).id(), "");
    int node = (int) holes.map().u32(12 + 4) * 1024;
    corruptExtents(with(plain, node + at, bytes, Long.decode(value)), "holes", message);
  }

  private static void corruptExtents(byte[] image, String path, String message) {
    FileNode node = Ext4.open(new BytesReader(image), Ext4Options.STRICT).find(path, true);
    assertThatThrownBy(node::extents)
        .isInstanceOfSatisfying(
            FileSystemException.class, e -> assertThat(e.kind()).isEqualTo(Kind.CORRUPT))
        .hasMessageContaining("inode " + node.id())
        .hasMessageContaining(message);
  }

  @Test
  void whatIsAskedOfTheWrongKindIsRefused() {
    FileSystem fs = Ext4.open(new BytesReader(plain), Ext4Options.STRICT);
    FileNode file = fs.find("f50", true);
    FileNode few = fs.find("few", true);
    FileNode fast = fs.find("fast", false);
    wrongKind(few::extents);
    wrongKind(() -> few.read(0, MemorySegment.NULL));
    wrongKind(fast::extents);
    wrongKind(() -> file.list(entry -> {}));
    wrongKind(file::target);
    assertThat(fast.target()).isEqualTo("few/a1");
    assertThat(fs.find("fast", true).id()).isEqualTo(fs.find("few/a1", false).id());
    assertThatThrownBy(() -> file.read(1, MemorySegment.ofArray(new byte[50])))
        .isInstanceOf(InvalidRequestException.class);
    assertThatThrownBy(() -> file.read(-1, MemorySegment.ofArray(new byte[1])))
        .isInstanceOf(InvalidRequestException.class);
    assertThatThrownBy(() -> file.read(Long.MAX_VALUE, MemorySegment.ofArray(new byte[1])))
        .isInstanceOf(InvalidRequestException.class);
    file.read(50, MemorySegment.ofArray(new byte[0]));
  }

  private static void wrongKind(Runnable call) {
    assertThatThrownBy(call::run)
        .isInstanceOfSatisfying(
            FileSystemException.class, e -> assertThat(e.kind()).isEqualTo(Kind.WRONG_KIND));
  }

  @Test
  void controlCharactersOfNamesAreEscaped() {
    byte[] image = plain.clone();
    int name = indexOf(image, "f1500".getBytes(StandardCharsets.ISO_8859_1));
    image[name] = 0x1B;
    image[name + 1] = 0;
    FileSystem fs = Ext4.open(new BytesReader(image), Ext4Options.STRICT);
    assertThatThrownBy(() -> fs.find("/", true).list(_ -> {}))
        .hasMessageContaining("is '\\x1B\\x00500'");
    FileSystem whole = Ext4.open(new BytesReader(plain), Ext4Options.STRICT);
    assertThatThrownBy(() -> whole.find("/a\u009bb", true))
        .hasMessageContaining("there is no 'a\\x9Bb'");
  }

  @Test
  void aJournalToReplaySaysHowToReadWithoutIt() {
    assertThat(failure(with(plain, SUPER + 0x60, 4, 0x2c6)))
        .hasMessageContaining("--journal ignore")
        .hasMessageNotContaining("Ext4Options");
  }

  private static int indexOf(byte[] image, byte[] wanted) {
    for (int i = 0; i + wanted.length <= image.length; i++) {
      if (Arrays.equals(image, i, i + wanted.length, wanted, 0, wanted.length)) {
        return i;
      }
    }
    throw new AssertionError("no such bytes");
  }
}
