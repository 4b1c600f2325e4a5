package io.gpunvme.sim;

import io.gpunvme.nvme.spec.StatusCode;
import io.gpunvme.sim.media.Media;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.UUID;

/**
 * One allocated namespace: its identity, its LBA format, its bytes and which blocks are bad.
 *
 * <p>Safe for all threads. Formatting changes the block size while other workers may be executing
 * commands; each command reads {@link #shift} once and stays inside the medium with either value.
 */
final class SimNamespace {
  private final int nsid;
  private final Media media;
  private final boolean readOnly;
  private final UUID uuid;
  private final LbaRangeSet uncorrectable = new LbaRangeSet();

  // Written by Format NVM and Namespace Attachment on worker 0, read by all workers: each command
  // takes the value it finds.
  private volatile int shift;
  private volatile boolean attached = true;

  /**
   * @param identity decides UUID, NGUID and EUI64
   */
  SimNamespace(int nsid, String identity, int lbaSize, Media media, boolean readOnly) {
    this.nsid = nsid;
    this.media = media;
    this.readOnly = readOnly;
    shift = Integer.numberOfTrailingZeros(lbaSize);
    uuid = UUID.nameUUIDFromBytes(identity.getBytes(StandardCharsets.US_ASCII));
  }

  /** Namespace identifier, 1..NN. */
  int nsid() {
    return nsid;
  }

  /** The bytes. */
  Media media() {
    return media;
  }

  /** Whether writing is refused. */
  boolean readOnly() {
    return readOnly;
  }

  /** LBADS: the block size as a power of two. */
  int shift() {
    return shift;
  }

  /** NSZE: size in logical blocks. */
  long blocks() {
    return media.size() >>> shift;
  }

  /** Changes the block size; everything that was written is gone already. */
  void format(int newShift) {
    shift = newShift;
    uncorrectable.clear();
  }

  /** Whether the controller may use it: an inactive namespace is allocated but not attached. */
  boolean attached() {
    return attached;
  }

  void attach(boolean toController) {
    attached = toController;
  }

  /** Blocks that read as errors until they are written again. */
  LbaRangeSet uncorrectable() {
    return uncorrectable;
  }

  /**
   * The status for accessing {@code count} ≥ 1 blocks from {@code slba}, an unsigned number.
   *
   * @param blockShift the command's one reading of {@link #shift}
   */
  int checkRange(long slba, long count, int blockShift) {
    long blocks = media.size() >>> blockShift;
    boolean inside = Long.compareUnsigned(slba, blocks) < 0 && count <= blocks - slba;
    return inside ? 0 : StatusCode.LBA_OUT_OF_RANGE.dnr();
  }

  /** Universally unique identifier: the same for the same identity. */
  UUID uuid() {
    return uuid;
  }

  /** NGUID: the UUID's 16 bytes under another name. */
  byte[] nguid() {
    return ByteBuffer.allocate(16)
        .putLong(uuid.getLeastSignificantBits())
        .putLong(uuid.getMostSignificantBits())
        .array();
  }

  /** EUI64, never 0. */
  long eui64() {
    return (uuid.getMostSignificantBits() ^ uuid.getLeastSignificantBits()) | 1;
  }
}
