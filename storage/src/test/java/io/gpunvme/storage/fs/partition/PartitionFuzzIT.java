package io.gpunvme.storage.fs.partition;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.storage.fs.BytesReader;
import io.gpunvme.storage.fs.FileSystemException;
import java.util.Arrays;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Right tables with a few bytes changed: a typed error, or parts that lie on the device. */
@Timeout(300)
class PartitionFuzzIT {
  private static final int CASES = 120_000;
  private final long seed = Long.getLong("gpunvme.seed", System.nanoTime());
  private static final int SECTORS = 120;

  private long errors;
  private long found;
  private long notes;

  private static Disk gpt(int sector) {
    return new Disk(sector, SECTORS)
        .partition(0, Disk.LINUX, 30, 50, "one")
        .partition(5, Disk.LINUX, 51, 60, "two")
        .gpt();
  }

  private static Disk mbr() {
    return new Disk(512, SECTORS)
        .mbr(0, 0, 0x83, 10, 20)
        .mbr(0, 1, 0x05, 50, 60)
        .mbr(50, 0, 0x83, 2, 10)
        .mbr(50, 1, 0x05, 20, 20)
        .mbr(70, 0, 0x0B, 1, 5)
        .mbr(70, 1, 0x05, 40, 10)
        .mbr(90, 0, 0x07, 3, 7);
  }

  private void look(byte[] bytes, int sector) {
    BytesReader reader = new BytesReader(bytes);
    reader.limit(32L << 20);
    try {
      Partitions.find(reader, sector)
          .ifPresent(
              table -> {
                for (Partition p : table.partitions()) {
                  assertThat(new PartitionReader(reader, p).size()).isPositive();
                  found++;
                }
                notes += table.notes().size();
              });
    } catch (FileSystemException e) {
      errors++;
    }
  }

  /** A byte of a structure; whether the headers' checksums are made right afterwards is left. */
  private static int place(SplittableRandom random, Disk disk, boolean gpt) {
    if (!gpt) {
      int[] links = {0, 50, 70, 90};
      return links[random.nextInt(links.length)] * disk.sector + 440 + random.nextInt(72);
    }
    boolean primary = random.nextBoolean();
    return switch (random.nextInt(8)) {
      case 0 -> 446 + random.nextInt(66);
      case 1, 2 -> disk.entriesLba(primary) * disk.sector + random.nextInt(6 * 128);
      default -> disk.headerLba(primary) * disk.sector + random.nextInt(92);
    };
  }

  @Test
  void changedTables() {
    System.out.println("PartitionFuzzIT: -Dgpunvme.seed=" + seed);
    Disk[] disks = {gpt(512), gpt(4096), mbr()};
    byte[][] right = {disks[0].bytes.clone(), disks[1].bytes.clone(), disks[2].bytes.clone()};
    for (int number = 0; number < CASES; number++) {
      SplittableRandom random = new SplittableRandom(seed + number * 0xD1342543DE82EF95L);
      int which = random.nextInt(8) == 0 ? 1 : random.nextInt(2) * 2;
      Disk disk = disks[which];
      for (int i = 1 + random.nextInt(6); i > 0; i--) {
        byte[] often = {0, -1, 0x7F, (byte) 0x80, 1, (byte) random.nextInt()};
        disk.bytes[place(random, disk, which < 2)] = often[random.nextInt(often.length)];
      }
      if (which < 2 && random.nextInt(4) > 0) {
        disk.seal(true);
        disk.seal(false);
      }
      boolean cut = random.nextInt(20) == 0;
      try {
        int length = cut ? random.nextInt(disk.bytes.length) : disk.bytes.length;
        look(
            cut ? Arrays.copyOf(disk.bytes, length) : disk.bytes,
            random.nextInt(8) == 0 ? 4608 - disk.sector : disk.sector);
      } catch (RuntimeException | Error e) {
        throw new AssertionError("case " + number + " of seed " + seed, e);
      }
      System.arraycopy(right[which], 0, disk.bytes, 0, disk.bytes.length);
    }
    System.out.printf(
        "%d tables: %d typed errors, %d partitions, %d notes%n", CASES, errors, found, notes);
    assertThat(errors).isPositive();
    assertThat(found).isPositive();
    assertThat(notes).isPositive();
  }
}
