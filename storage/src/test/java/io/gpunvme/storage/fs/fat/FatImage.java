package io.gpunvme.storage.fs.fat;

import io.gpunvme.storage.fs.BytesReader;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/** A small FAT32 volume made by hand: right, until a test says otherwise. */
final class FatImage {
  static final int END = 0x0FFFFFFF;
  static final int RESERVED = 2;
  static final int ROOT = 2;

  final int sector;
  final int cluster;
  final int clusters;
  final byte[] bytes;
  final ByteBuffer b;
  private final int tableSectors;

  FatImage(int sector, int sectorsPerCluster, int clusters) {
    this.sector = sector;
    this.clusters = clusters;
    cluster = sector * sectorsPerCluster;
    tableSectors = Math.ceilDiv((clusters + 2) * 4, sector);
    int sectors = RESERVED + 2 * tableSectors + clusters * sectorsPerCluster;
    bytes = new byte[sectors * sector];
    b = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
    text(0, "\u00EB\u0058\u0090by hand ");
    b.putShort(11, (short) sector);
    b.put(13, (byte) sectorsPerCluster);
    b.putShort(14, (short) RESERVED);
    b.put(16, (byte) 2);
    b.put(21, (byte) 0xF8);
    b.putInt(32, sectors);
    b.putInt(36, tableSectors);
    b.putInt(44, ROOT);
    b.put(66, (byte) 0x29);
    b.putInt(67, 0x1234ABCD);
    text(71, "BOOT LABEL FAT32   ");
    b.putShort(510, (short) 0xAA55);
    next(0, 0x0FFFFFF8);
    next(1, END);
    next(ROOT, END);
  }

  BytesReader reader() {
    return new BytesReader(bytes);
  }

  Fat32 open() {
    return Fat32.open(reader());
  }

  void text(int at, String latin1) {
    byte[] raw = latin1.getBytes(StandardCharsets.ISO_8859_1);
    System.arraycopy(raw, 0, bytes, at, raw.length);
  }

  int tableAt(int number) {
    return (RESERVED + number * tableSectors) * sector;
  }

  /** In both tables. */
  void next(int from, int to) {
    b.putInt(tableAt(0) + from * 4, to);
    b.putInt(tableAt(1) + from * 4, to);
  }

  void chain(int... numbers) {
    for (int i = 0; i < numbers.length; i++) {
      next(numbers[i], i + 1 < numbers.length ? numbers[i + 1] : END);
    }
  }

  int at(int number) {
    return tableAt(2) + (number - 2) * cluster;
  }

  /** Fills a cluster with what tells it from all others. */
  void fill(int number) {
    for (int i = 0; i < cluster; i++) {
      bytes[at(number) + i] = (byte) (number * 31 + i * 7 + (i >> 8));
    }
  }

  /** Content of a file in these clusters. */
  byte[] content(int length, int... numbers) {
    byte[] all = new byte[numbers.length * cluster];
    for (int i = 0; i < numbers.length; i++) {
      System.arraycopy(bytes, at(numbers[i]), all, i * cluster, cluster);
    }
    return Arrays.copyOf(all, length);
  }

  /** An entry with a short name of eleven bytes; returns the place of the next. */
  int entry(int at, String name11, int attributes, int first, int size) {
    text(at, name11);
    b.put(at + 11, (byte) attributes);
    b.putShort(at + 20, (short) (first >>> 16));
    b.putShort(at + 26, (short) first);
    b.putInt(at + 28, size);
    return at + 32;
  }

  /** The parts of a long name before the short one that they belong to. */
  int longName(int at, String name, String name11) {
    int parts = Math.ceilDiv(name.length(), 13);
    text(at + parts * 32, name11);
    int sum = ShortName.checksum(b, at + parts * 32);
    int[] places = {1, 3, 5, 7, 9, 14, 16, 18, 20, 22, 24, 28, 30};
    for (int part = parts; part > 0; part--, at += 32) {
      b.put(at, (byte) (part == parts ? part | 0x40 : part));
      b.put(at + 11, (byte) 0x0F);
      b.put(at + 13, (byte) sum);
      for (int i = 0; i < 13; i++) {
        int unit = (part - 1) * 13 + i;
        char c = unit < name.length() ? name.charAt(unit) : unit == name.length() ? 0 : '\uFFFF';
        b.putShort(at + places[i], (short) c);
      }
    }
    return at;
  }
}
