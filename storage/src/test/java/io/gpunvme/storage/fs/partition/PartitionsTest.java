package io.gpunvme.storage.fs.partition;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.storage.fs.BytesReader;
import io.gpunvme.storage.fs.FileSystemException;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Tables made by hand, right and damaged in every field. */
class PartitionsTest {
  private static final int SECTORS = 200;

  private static void corrupt(Disk disk, String what) {
    assertThatExceptionOfType(FileSystemException.class)
        .isThrownBy(disk::read)
        .withMessageContaining(what)
        .satisfies(e -> assertThat(e.kind()).isEqualTo(FileSystemException.Kind.CORRUPT));
  }

  private static Disk gpt(int sector) {
    return new Disk(sector, SECTORS)
        .partition(0, Disk.LINUX, 40, 99, "models")
        .partition(2, "C12A7328-F81F-11D2-BA4B-00A0C93EC93B", 100, 100, "naïve 日本 😀")
        .partition(3, "12345678-9ABC-DEF0-1234-56789ABCDEF0", 120, 130, "x".repeat(36))
        .gpt();
  }

  // ---- GPT

  @ParameterizedTest
  @ValueSource(ints = {512, 4096})
  void tables(int sector) {
    PartitionTable table = gpt(sector).read();

    assertThat(table.kind()).isEqualTo(PartitionTable.Kind.GPT);
    assertThat(table.notes()).isEmpty();
    assertThat(table.partitions())
        .containsExactly(
            new Partition(1, 40L * sector, 60L * sector, "Linux files", "models"),
            new Partition(3, 100L * sector, sector, "EFI system", "naïve 日本 😀"),
            new Partition(
                4,
                120L * sector,
                11L * sector,
                "12345678-9ABC-DEF0-1234-56789ABCDEF0",
                "x".repeat(36)));
    // Also if the device counts otherwise.
    assertThat(Partitions.find(gpt(sector).reader(), 512)).contains(table);
    assertThat(Partitions.find(gpt(sector).reader(), 4096)).contains(table);
  }

  @Test
  void largeEntries() {
    Disk disk = new Disk(512, SECTORS, 512, 4).partition(3, Disk.LINUX, 40, 41, "").gpt();
    assertThat(disk.read().partitions()).extracting(Partition::number).containsExactly(4);
  }

  @ParameterizedTest
  @CsvSource({
    "0,  8, 0,       no signature",
    "8,  4, 0x20000, revision 00020000h",
    "12, 4, 91,      a header of 91 bytes",
    "12, 4, 513,     a header of 513 bytes",
    "12, 4, -1,      a header of 4294967295 bytes",
    "24, 8, 2,       says it is sector 2",
    "72, 8, 0,       entries at sector 0 are not on the device",
    "72, 8, 199,     entries at sector 199 are not on the device",
    "72, 8, -1,      entries at sector 18446744073709551615 are not on the device",
    "80, 4, -1,      4294967295 entries",
    "80, 4, 40000,   40000 entries",
    "84, 4, 0,       entries of 0 bytes",
    "84, 4, 129,     entries of 129 bytes",
    "84, 4, 8192,    entries of 8192 bytes",
    "88, 4, 0,       the entries' checksum",
  })
  void theSecondTableIsUsed(int at, int bytes, long value, String why) {
    for (boolean both : new boolean[] {false, true}) {
      Disk disk = gpt(512);
      for (boolean primary : both ? new boolean[] {true, false} : new boolean[] {true}) {
        int field = disk.headerLba(primary) * 512 + at;
        if (bytes == 8) {
          disk.b.putLong(field, value);
        } else {
          disk.b.putInt(field, (int) value);
        }
        if (at != 12) {
          disk.seal(primary);
        }
      }
      if (both) {
        corrupt(disk, "the GPT at sector 1 is damaged");
        corrupt(disk, "and so is the one at sector");
      } else {
        PartitionTable table = disk.read();
        assertThat(table.partitions()).isEqualTo(gpt(512).read().partitions());
        assertThat(table.notes())
            .singleElement()
            .asString()
            .contains(why, "at sector 199 was used");
      }
    }
  }

  @Test
  void aHeaderOrEntriesWithAChangedBit() {
    Disk disk = gpt(512);
    disk.bytes[512 + 56] ^= 1;
    assertThat(disk.read().notes()).singleElement().asString().contains("header's checksum");
    disk = gpt(512);
    disk.bytes[2 * 512 + 200] ^= 1;
    assertThat(disk.read().notes()).singleElement().asString().contains("entries' checksum");
    disk.bytes[(SECTORS - 1) * 512 + 60] ^= 1;
    corrupt(disk, "header's checksum");
  }

  @Test
  void anAlternateThatIsNowhere() {
    Disk disk = gpt(512);
    disk.b.putLong(512 + 32, -5);
    disk.bytes[2 * 512] ^= 1;
    disk.seal(true);
    corrupt(disk, "sector -5 is not on the device");
  }

  @Test
  void partitionsThatLeaveTheDevice() {
    Disk disk =
        new Disk(512, SECTORS)
            .partition(0, Disk.LINUX, 40, 99, "")
            .partition(1, Disk.LINUX, 100, 200, "")
            .partition(2, Disk.LINUX, 100, 99, "")
            .partition(3, Disk.LINUX, -1, Long.MAX_VALUE, "")
            .partition(4, Disk.LINUX, 0, Long.MAX_VALUE, "")
            .gpt();
    PartitionTable table = disk.read();
    assertThat(table.partitions()).extracting(Partition::number).containsExactly(1);
    assertThat(table.notes()).hasSize(4).allMatch(note -> note.contains("is left out"));
  }

  @Test
  void namesAreNoControls() {
    Disk disk = new Disk(512, SECTORS).partition(0, Disk.LINUX, 40, 41, "a\u001B[31m").gpt();
    assertThat(disk.read().partitions().getFirst().name()).isEqualTo("a\uFFFD[31m");
  }

  @Test
  void withoutAnMbr() {
    Disk disk = gpt(512);
    Arrays.fill(disk.bytes, 0, 512, (byte) 0);
    assertThat(disk.read().notes()).singleElement().asString().contains("no protective MBR");
    disk.mbr(0, 0, 0x83, 40, 60);
    assertThat(disk.read().kind()).isEqualTo(PartitionTable.Kind.MBR);
    assertThat(Partitions.find(disk.reader(), 4096)).isPresent();
    Disk only = new Disk(512, SECTORS).mbr(0, 0, 0xEE, 1, SECTORS - 1);
    corrupt(only, "no signature");
  }

  // ---- MBR

  @Test
  void primaryPartitions() {
    Disk disk =
        new Disk(512, SECTORS)
            .mbr(0, 0, 0x0C, 10, 20)
            .mbr(0, 1, 0x83, 30, 20)
            .mbr(0, 3, 0x42, 199, 1)
            .mbr(0, 2, 0x83, 199, 2);
    disk.b.put(446, (byte) 0x80);

    PartitionTable table = disk.read();

    assertThat(table.kind()).isEqualTo(PartitionTable.Kind.MBR);
    assertThat(table.partitions())
        .containsExactly(
            new Partition(1, 10 * 512, 20 * 512, "FAT32", ""),
            new Partition(2, 30 * 512, 20 * 512, "Linux files", ""),
            new Partition(4, 199 * 512, 512, "type 42h", ""));
    assertThat(table.notes()).singleElement().asString().contains("#3 is left out");
  }

  private static Disk logical() {
    return new Disk(512, SECTORS)
        .mbr(0, 0, 0x83, 10, 20)
        .mbr(0, 1, 0x05, 50, 100)
        .mbr(50, 0, 0x83, 2, 10)
        .mbr(50, 1, 0x05, 20, 20)
        .mbr(70, 0, 0x0B, 1, 5)
        .mbr(70, 1, 0x05, 40, 20)
        .mbr(90, 0, 0x07, 3, 7);
  }

  @Test
  void logicalPartitions() {
    PartitionTable table = logical().read();
    assertThat(table.partitions())
        .containsExactly(
            new Partition(1, 10 * 512, 20 * 512, "Linux files", ""),
            new Partition(5, 52 * 512, 10 * 512, "Linux files", ""),
            new Partition(6, 71 * 512, 5 * 512, "FAT32", ""),
            new Partition(7, 93 * 512, 7 * 512, "NTFS or exFAT", ""));
    assertThat(table.notes()).isEmpty();
  }

  @Test
  void chainsThatGoWrong() {
    corrupt(logical().mbr(90, 1, 0x05, 20, 20), "comes back to itself");
    corrupt(logical().mbr(50, 1, 0x05, 0, 20), "comes back to itself");
    Disk outside = logical().mbr(70, 1, 0x05, 150, 20);
    assertThat(outside.read().notes())
        .singleElement()
        .asString()
        .contains("past the end of the device");
    assertThat(outside.read().partitions()).hasSize(3);
    Disk unsigned = logical();
    unsigned.b.putShort(70 * 512 + 510, (short) 0);
    assertThat(unsigned.read().notes()).singleElement().asString().contains("without a signature");
    assertThat(logical().mbr(0, 2, 0x0F, 60, 20).read().notes())
        .singleElement()
        .asString()
        .contains("several extended");
    Disk endless = new Disk(512, 2000).mbr(0, 0, 0x05, 1, 1999);
    for (int lba = 1; lba < 1000; lba++) {
      endless.mbr(lba, 1, 0x05, lba, 1);
    }
    corrupt(endless, "more than 256 logical partitions");
  }

  @Test
  void sectorsOf4096Bytes() {
    Disk disk = new Disk(4096, SECTORS).mbr(0, 0, 0x83, 10, 20);
    assertThat(disk.read().partitions())
        .containsExactly(new Partition(1, 40960, 81920, "Linux files", ""));
  }

  // ---- none, and parts

  @Test
  void noTable() {
    assertThat(Partitions.read(new BytesReader(new byte[1 << 20]), 512)).isEmpty();
    assertThat(Partitions.find(new BytesReader(new byte[100]), 512)).isEmpty();
    assertThat(Partitions.find(new BytesReader(new byte[0]), 4096)).isEmpty();
    Disk disk = new Disk(512, SECTORS).mbr(0, 0, 0x83, 10, 20);
    disk.b.put(446, (byte) 0x42);
    assertThat(Partitions.read(disk.reader(), 512)).isEmpty();
    assertThatExceptionOfType(InvalidRequestException.class)
        .isThrownBy(() -> Partitions.read(disk.reader(), 1024));
    assertThat(new Disk(512, SECTORS).mbr(0, 0, 0, 0, 0).read().partitions()).isEmpty();
  }

  @Test
  void aPartitionIsAPartOfTheDevice() {
    Disk disk = new Disk(512, SECTORS).mbr(0, 0, 0x83, 10, 20);
    disk.bytes[10 * 512 + 5] = 42;
    PartitionReader reader =
        new PartitionReader(disk.reader(), disk.read().partitions().getFirst());
    byte[] two = new byte[2];
    reader.read(5, MemorySegment.ofArray(two));

    assertThat(two).containsExactly(42, 0);
    assertThat(reader.size()).isEqualTo(20 * 512);
    assertThat(reader.name()).isEqualTo("memory#1");
    for (long at : new long[] {-1, 20 * 512 - 1, Long.MAX_VALUE}) {
      assertThatExceptionOfType(InvalidRequestException.class)
          .isThrownBy(() -> reader.read(at, MemorySegment.ofArray(two)));
    }
    for (long[] part : new long[][] {{-1, 5}, {0, -1}, {SECTORS * 512, 1}, {1, Long.MAX_VALUE}}) {
      assertThatExceptionOfType(InvalidRequestException.class)
          .isThrownBy(
              () -> new PartitionReader(disk.reader(), new Partition(1, part[0], part[1], "", "")));
    }
  }
}
