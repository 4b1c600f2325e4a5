package io.gpunvme.storage.fs.fat;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.gpunvme.storage.fs.BytesReader;
import io.gpunvme.storage.fs.FileSystemException;
import io.gpunvme.storage.fs.FileSystemException.Kind;
import java.util.Arrays;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Every field of the boot sector, and the relatives of FAT32. */
class BootSectorTest {
  private final FatImage image = new FatImage(512, 1, 100);

  private void fails(Kind kind, String what) {
    assertThatExceptionOfType(FileSystemException.class)
        .isThrownBy(image::open)
        .withMessageContaining(what)
        .satisfies(e -> assertThat(e.kind()).isEqualTo(kind));
  }

  private void put(int at, int bytes, int value) {
    for (int i = 0; i < bytes; i++) {
      image.b.put(at + i, (byte) (value >> 8 * i));
    }
  }

  @ParameterizedTest
  @CsvSource({
    "11, 2, 0,      BPB_BytsPerSec 0 is not",
    "11, 2, 256,    BPB_BytsPerSec 256",
    "11, 2, 8192,   BPB_BytsPerSec 8192",
    "11, 2, 513,    BPB_BytsPerSec 513",
    "13, 1, 0,      BPB_SecPerClus 0 is not",
    "13, 1, 3,      BPB_SecPerClus 3",
    "14, 2, 0,      BPB_RsvdSecCnt",
    "16, 1, 0,      BPB_NumFATs",
    "17, 2, 512,    BPB_RootEntCnt 512",
    "21, 1, 0x10,   BPB_Media 16",
    "22, 2, 9,      BPB_FATSz16 9",
    "32, 4, 0,      BPB_TotSec32",
    "32, 4, 1000,   the end is missing",
    "32, 4, -1,     the end is missing",
    "36, 4, 0,      BPB_FATSz32 0",
    "36, 4, 60,     BPB_FATSz32: the tables end",
    "36, 4, -1,     BPB_FATSz32: the tables end",
    "40, 2, 0x82,   BPB_ExtFlags names table 2",
    "44, 4, 0,      BPB_RootClus 0",
    "44, 4, 1,      BPB_RootClus 1",
    "44, 4, 102,    BPB_RootClus 102",
    "44, 4, -1,     BPB_RootClus 4294967295",
  })
  void fieldsThatMakeNoSense(int at, int bytes, String value, String what) {
    put(at, bytes, Integer.decode(value));
    fails(Kind.CORRUPT, what);
  }

  @Test
  void anUnknownVersion() {
    put(42, 2, 0x100);
    fails(Kind.UNSUPPORTED, "BPB_FSVer is 0100h");
  }

  @Test
  void theTableInForce() {
    image.chain(50, 51);
    image.entry(image.at(2), "FILE       ", 0x20, 50, 1000);
    image.b.putInt(image.tableAt(0) + 50 * 4, 0);
    assertThatExceptionOfType(FileSystemException.class)
        .isThrownBy(() -> image.open().find("file", true).extents());

    put(40, 2, 0x81);

    assertThat(image.open().find("file", true).extents()).hasSize(1);
  }

  @Test
  void aTableThatIsShorterThanTheVolume() {
    FatImage large = new FatImage(512, 1, 126);
    large.b.putInt(32, large.b.getInt(32) - 1);
    assertThat(large.open().find("/", true).details()).containsEntry("clusters", "125");

    FatImage more = new FatImage(512, 1, 127);
    // One sector of table holds 126 clusters.
    more.b.putInt(36, 1);
    more.b.putInt(more.tableAt(0) + 8, FatImage.END);
    assertThat(more.open().find("/", true).details()).containsEntry("clusters", "126");
  }

  @Test
  void sectorsInTheSmallField() {
    image.b.putShort(19, (short) image.b.getInt(32));
    image.b.putInt(32, 0);
    assertThat(image.open().find("/", true).details()).containsEntry("clusters", "100");
  }

  @Test
  void relatives() {
    image.text(3, "EXFAT   ");
    assertThat(FatKind.of(image.reader())).isEqualTo(FatKind.EXFAT);
    fails(Kind.UNSUPPORTED, "this is exFAT");
    image.text(3, "NTFS    ");
    assertThat(FatKind.of(image.reader())).isEqualTo(FatKind.NTFS);
    fails(Kind.UNSUPPORTED, "this is NTFS");
    image.text(3, "mkdosfs ");
    image.text(82, "FAT16   ");
    put(17, 2, 512);
    put(22, 2, 1);
    put(32, 4, 5000);
    assertThat(FatKind.of(image.reader())).isEqualTo(FatKind.FAT16);
    fails(Kind.UNSUPPORTED, "this is FAT16");
    put(32, 4, 4000);
    assertThat(FatKind.of(image.reader())).isEqualTo(FatKind.FAT12);
    fails(Kind.UNSUPPORTED, "this is FAT12");
  }

  @Test
  void nothingOfTheKind() {
    assertThat(FatKind.of(new BytesReader(new byte[511]))).isEqualTo(FatKind.NONE);
    assertThat(FatKind.of(new BytesReader(new byte[4096]))).isEqualTo(FatKind.NONE);
    assertThatExceptionOfType(FileSystemException.class)
        .isThrownBy(() -> Fat32.open(new BytesReader(new byte[100])))
        .withMessageContaining("only 100 bytes");
    Arrays.fill(image.bytes, (byte) 0);
    fails(Kind.CORRUPT, "this is not a FAT32 volume");
  }

  @Test
  void aDamagedOneIsRecognised() {
    put(11, 2, 77);
    assertThat(FatKind.of(image.reader())).isEqualTo(FatKind.FAT32);
    put(11, 2, 512);
    image.text(82, "        ");
    assertThat(FatKind.of(image.reader())).isEqualTo(FatKind.FAT32);
  }
}
