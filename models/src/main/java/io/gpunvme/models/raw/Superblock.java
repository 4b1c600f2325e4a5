package io.gpunvme.models.raw;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.models.format.FormatException;
import io.gpunvme.models.format.FormatException.Kind;
import io.gpunvme.storage.fs.BlockReader;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.Arrays;
import java.util.UUID;
import java.util.zip.CRC32C;

/**
 * The first 4096 bytes of a raw model, little endian (docs/raw-models.md). Immutable.
 *
 * @param totalBytes of all of it, from the superblock's first byte to the index's last
 * @param indexOffset where the index begins
 * @param indexBytes up to {@link #LONGEST_INDEX}; the index ends where everything does
 * @param indexCrc32c of the index
 * @param dataOffset where the first tensor may begin, a multiple of the alignment
 * @param alignment of each tensor, a power of two from 512 bytes to 1 MiB
 * @param uuid random, of this copy of the model
 * @param created when it was written, in whole milliseconds
 * @param name of the model, up to {@link #LONGEST_NAME} bytes of UTF-8
 * @param stripe what it was written to
 */
public record Superblock(
    long totalBytes,
    long indexOffset,
    long indexBytes,
    int indexCrc32c,
    long dataOffset,
    long alignment,
    UUID uuid,
    Instant created,
    String name,
    Stripe stripe) {
  /** How long it is. */
  public static final int BYTES = 4096;

  /** Longest index in bytes; what safetensors allows for a header. */
  public static final int LONGEST_INDEX = 100_000_000;

  /** Longest name, in bytes of UTF-8. */
  public static final int LONGEST_NAME = 255;

  /** Least alignment in bytes. */
  public static final long LEAST_ALIGNMENT = 512;

  /** Largest alignment in bytes. */
  public static final long MOST_ALIGNMENT = 1 << 20;

  static final int VERSION = 1;

  /** "gpunvme", and a byte that ends what {@code cat} prints on some systems. */
  static final long MAGIC = 0x1A656D766E757067L;

  static final int MAGIC_AT = 0;
  static final int VERSION_AT = 8;
  static final int BYTES_AT = 12;
  static final int TOTAL_AT = 16;
  static final int INDEX_AT = 24;
  static final int INDEX_BYTES_AT = 32;
  static final int INDEX_CRC_AT = 40;
  static final int STRIPE_MEMBERS_AT = 44;
  static final int DATA_AT = 48;
  static final int ALIGNMENT_AT = 56;
  static final int UUID_AT = 64;
  static final int CREATED_AT = 80;
  static final int NAME_BYTES_AT = 88;
  static final int NAME_AT = 96;
  static final int STRIPE_UNIT_AT = 352;
  static final int CRC_AT = BYTES - Integer.BYTES;

  /**
   * Checks the numbers against each other.
   *
   * @throws InvalidRequestException if they do not fit together
   */
  public Superblock {
    require(isAlignment(alignment), "an alignment of " + alignment + " bytes");
    require(dataOffset >= BYTES && dataOffset % alignment == 0, "data that begin at " + dataOffset);
    require(indexOffset >= dataOffset, "an index at " + indexOffset + ", before the data");
    require(indexBytes > 0 && indexBytes <= LONGEST_INDEX, "an index of " + indexBytes + " bytes");
    require(
        indexOffset <= Long.MAX_VALUE - indexBytes && totalBytes == indexOffset + indexBytes,
        "%d bytes in all, and an index of %d at %d".formatted(totalBytes, indexBytes, indexOffset));
    require(utf8(name).length <= LONGEST_NAME, "a name of more than " + LONGEST_NAME + " bytes");
    require(stripe.isPossible(), "been written to " + stripe);
  }

  private static void require(boolean right, String what) {
    if (!right) {
      throw new InvalidRequestException("no raw model has " + what);
    }
  }

  /** Whether tensors may be aligned so. */
  public static boolean isAlignment(long bytes) {
    return Long.bitCount(bytes) == 1 && bytes >= LEAST_ALIGNMENT && bytes <= MOST_ALIGNMENT;
  }

  static byte[] utf8(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  /** Whether a device begins with one, right or wrong. */
  public static boolean isThere(BlockReader device) {
    return device.size() >= BYTES && words(read(device, Long.BYTES)).getLong(MAGIC_AT) == MAGIC;
  }

  /** Whether a device has nothing but zeros where one would be. */
  public static boolean isBlank(BlockReader device) {
    return device.size() >= BYTES && Arrays.equals(read(device, BYTES), new byte[BYTES]);
  }

  /** As it is written. */
  public byte[] encode() {
    byte[] bytes = new byte[BYTES];
    ByteBuffer block = words(bytes);
    block.putLong(MAGIC_AT, MAGIC);
    block.putInt(VERSION_AT, VERSION);
    block.putInt(BYTES_AT, BYTES);
    block.putLong(TOTAL_AT, totalBytes);
    block.putLong(INDEX_AT, indexOffset);
    block.putLong(INDEX_BYTES_AT, indexBytes);
    block.putInt(INDEX_CRC_AT, indexCrc32c);
    block.putInt(STRIPE_MEMBERS_AT, stripe.members());
    block.putLong(STRIPE_UNIT_AT, stripe.unit());
    block.putLong(DATA_AT, dataOffset);
    block.putLong(ALIGNMENT_AT, alignment);
    // RFC 9562 has the bytes of a UUID in network order.
    ByteBuffer id = ByteBuffer.wrap(bytes, UUID_AT, 2 * Long.BYTES);
    id.putLong(uuid.getMostSignificantBits()).putLong(uuid.getLeastSignificantBits());
    block.putLong(CREATED_AT, created.toEpochMilli());
    byte[] text = utf8(name);
    block.put(NAME_BYTES_AT, (byte) text.length);
    block.put(NAME_AT, text);
    block.putInt(CRC_AT, crc32c(bytes, CRC_AT));
    return bytes;
  }

  static int crc32c(byte[] bytes, int length) {
    CRC32C crc = new CRC32C();
    crc.update(bytes, 0, length);
    return (int) crc.getValue();
  }

  private static byte[] read(BlockReader device, int length) {
    byte[] bytes = new byte[length];
    device.read(0, MemorySegment.ofArray(bytes));
    return bytes;
  }

  private static ByteBuffer words(byte[] bytes) {
    return ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
  }

  /**
   * Reads one.
   *
   * @param there what the device is
   * @throws FormatException if there is none that can be used, or the device is shorter than what
   *     it says
   * @throws io.gpunvme.storage.path.StorageException if reading fails
   */
  public static Superblock read(BlockReader device, Stripe there) {
    String where = device.name();
    if (!isThere(device)) {
      throw FormatException.of(
          Kind.NOT_THIS_FORMAT,
          where,
          "it has no raw model: 'gpunvme write-model MODEL --device DEVICE --allow-write' writes"
              + " one; for a file in its file system, name that: DEVICE:/PATH");
    }
    byte[] bytes = read(device, BYTES);
    ByteBuffer block = words(bytes);
    if (block.getInt(CRC_AT) != crc32c(bytes, CRC_AT)) {
      throw corrupt(where, "the superblock's checksum is wrong; write the model again");
    }
    int version = block.getInt(VERSION_AT);
    if (version != VERSION || block.getInt(BYTES_AT) != BYTES || !restIsZero(block)) {
      throw FormatException.of(
          Kind.UNSUPPORTED,
          where,
          "the raw model has version %s; gpunvme reads version %d without extensions"
              .formatted(Integer.toUnsignedString(version), VERSION));
    }
    Superblock superblock;
    try {
      superblock = decode(bytes);
    } catch (InvalidRequestException | CharacterCodingException e) {
      throw corrupt(where, "the superblock contradicts itself: " + e.getMessage());
    }
    if (!superblock.stripe.equals(there)) {
      throw FormatException.of(
          Kind.UNSUPPORTED,
          where,
          "the model was written to %s, but this is %s: open the former"
              .formatted(superblock.stripe, there));
    }
    if (superblock.totalBytes > device.size()) {
      throw FormatException.at(
          Kind.TRUNCATED,
          where,
          device.size(),
          "the model has %d bytes, but the device ends here: it is shorter than the device that was written"
              .formatted(superblock.totalBytes));
    }
    return superblock;
  }

  private static boolean restIsZero(ByteBuffer block) {
    int rest = 0;
    for (int i = NAME_BYTES_AT + 1; i < NAME_AT; i++) {
      rest |= block.get(i);
    }
    for (int i = NAME_AT + Byte.toUnsignedInt(block.get(NAME_BYTES_AT)); i < STRIPE_UNIT_AT; i++) {
      rest |= block.get(i);
    }
    for (int i = STRIPE_UNIT_AT + Long.BYTES; i < CRC_AT; i++) {
      rest |= block.get(i);
    }
    return rest == 0;
  }

  private static Superblock decode(byte[] bytes) throws CharacterCodingException {
    ByteBuffer block = words(bytes);
    ByteBuffer id = ByteBuffer.wrap(bytes, UUID_AT, 2 * Long.BYTES);
    ByteBuffer text = ByteBuffer.wrap(bytes, NAME_AT, Byte.toUnsignedInt(block.get(NAME_BYTES_AT)));
    return new Superblock(
        block.getLong(TOTAL_AT),
        block.getLong(INDEX_AT),
        block.getLong(INDEX_BYTES_AT),
        block.getInt(INDEX_CRC_AT),
        block.getLong(DATA_AT),
        block.getLong(ALIGNMENT_AT),
        new UUID(id.getLong(), id.getLong()),
        Instant.ofEpochMilli(block.getLong(CREATED_AT)),
        StandardCharsets.UTF_8.newDecoder().decode(text).toString(),
        new Stripe(block.getInt(STRIPE_MEMBERS_AT), block.getLong(STRIPE_UNIT_AT)));
  }

  private static FormatException corrupt(String where, String what) {
    return FormatException.of(Kind.CORRUPT, where, what);
  }
}
