package io.gpunvme.storage.fs.partition;

import io.gpunvme.storage.fs.BytesReader;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.zip.CRC32;

/** A small disk whose tables are made by hand. */
public final class Disk {
  static final String LINUX = "0FC63DAF-8483-4772-8E79-3D69D8477DE4";

  final int sector;
  final int sectors;
  public final byte[] bytes;
  final ByteBuffer b;
  private final int entryBytes;
  private final int count;

  public Disk(int sector, int sectors) {
    this(sector, sectors, 128, 16);
  }

  Disk(int sector, int sectors, int entryBytes, int count) {
    this.sector = sector;
    this.sectors = sectors;
    this.entryBytes = entryBytes;
    this.count = count;
    bytes = new byte[sector * sectors];
    b = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
  }

  public BytesReader reader() {
    return new BytesReader(bytes);
  }

  PartitionTable read() {
    return Partitions.read(reader(), sector).orElseThrow();
  }

  // ---- MBR

  public Disk mbr(int lba, int index, int type, int first, int size) {
    int at = lba * sector + 446 + index * 16;
    b.put(at + 4, (byte) type);
    b.putInt(at + 8, first);
    b.putInt(at + 12, size);
    b.putShort(lba * sector + 510, (short) 0xAA55);
    return this;
  }

  // ---- GPT

  int entriesLba(boolean primary) {
    return primary ? 2 : sectors - 1 - entrySectors();
  }

  int entrySectors() {
    return Math.ceilDiv(entryBytes * count, sector);
  }

  int headerLba(boolean primary) {
    return primary ? 1 : sectors - 1;
  }

  public Disk partition(int index, String type, long first, long last, String name) {
    for (boolean primary : new boolean[] {true, false}) {
      int at = entriesLba(primary) * sector + index * entryBytes;
      guid(at, type);
      guid(at + 16, "11111111-2222-3333-4444-555555555555");
      b.putLong(at + 32, first);
      b.putLong(at + 40, last);
      byte[] units = name.getBytes(StandardCharsets.UTF_16LE);
      System.arraycopy(units, 0, bytes, at + 56, units.length);
    }
    return this;
  }

  private void guid(int at, String text) {
    String[] parts = text.split("-");
    b.putInt(at, Integer.parseUnsignedInt(parts[0], 16));
    b.putShort(at + 4, (short) Integer.parseInt(parts[1], 16));
    b.putShort(at + 6, (short) Integer.parseInt(parts[2], 16));
    b.putLong(at + 8, Long.reverseBytes(Long.parseUnsignedLong(parts[3] + parts[4], 16)));
  }

  /** Headers with right checksums, and a protective MBR. */
  public Disk gpt() {
    mbr(0, 0, 0xEE, 1, sectors - 1);
    header(true);
    header(false);
    return this;
  }

  void header(boolean primary) {
    int at = headerLba(primary) * sector;
    byte[] signature = "EFI PART".getBytes(StandardCharsets.US_ASCII);
    System.arraycopy(signature, 0, bytes, at, signature.length);
    b.putInt(at + 8, 0x00010000);
    b.putInt(at + 12, 92);
    b.putLong(at + 24, headerLba(primary));
    b.putLong(at + 32, headerLba(!primary));
    b.putLong(at + 40, 2 + entrySectors());
    b.putLong(at + 48, sectors - 2 - entrySectors());
    b.putLong(at + 72, entriesLba(primary));
    b.putInt(at + 80, count);
    b.putInt(at + 84, entryBytes);
    b.putInt(at + 88, crc(entriesLba(primary) * sector, entryBytes * count));
    seal(primary);
  }

  /** Makes a header's checksum right again. */
  void seal(boolean primary) {
    int at = headerLba(primary) * sector;
    b.putInt(at + 16, 0);
    b.putInt(at + 16, crc(at, 92));
  }

  private int crc(int at, int length) {
    CRC32 crc = new CRC32();
    crc.update(bytes, at, length);
    return (int) crc.getValue();
  }
}
