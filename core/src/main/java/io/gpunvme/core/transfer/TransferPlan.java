package io.gpunvme.core.transfer;

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import io.gpunvme.nvme.InvalidRequestException;
import io.gpunvme.nvme.driver.Namespace;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.List;

/**
 * Extents cut into commands of at most the controller's transfer size, before any I/O. Immutable.
 */
public final class TransferPlan {
  /** NLB is a 16-bit 0-based count (NVM Command Set 1.0, 3.2.4). */
  private static final long MAX_BLOCKS = 65536;

  private static final ValueLayout.OfLong LONG =
      ValueLayout.JAVA_LONG.withOrder(ByteOrder.LITTLE_ENDIAN);
  private static final ValueLayout.OfInt INT =
      ValueLayout.JAVA_INT.withOrder(ByteOrder.LITTLE_ENDIAN);

  private final Direction direction;
  private final int nsid;
  private final int blockSize;
  private final long[] slba;
  private final int[] blocks;
  private final long[] bufferOffset;
  private final long bytes;
  private final long bufferEnd;

  private TransferPlan(
      Direction direction, int nsid, int blockSize, List<Extent> extents, long perCommand) {
    this.direction = direction;
    this.nsid = nsid;
    this.blockSize = blockSize;
    long count = 0;
    for (Extent e : extents) {
      count = Math.addExact(count, Math.ceilDiv(e.blocks(), perCommand));
    }
    if (count > Integer.MAX_VALUE - 8) {
      throw new InvalidRequestException("a plan of " + count + " commands is too long; split it");
    }
    this.slba = new long[(int) count];
    this.blocks = new int[(int) count];
    this.bufferOffset = new long[(int) count];
    long total = 0;
    long end = 0;
    int i = 0;
    for (Extent e : extents) {
      for (long done = 0; done < e.blocks(); i++) {
        int n = (int) Math.min(perCommand, e.blocks() - done);
        slba[i] = e.slba() + done;
        blocks[i] = n;
        bufferOffset[i] = e.bufferOffset() + done * blockSize;
        done += n;
      }
      total += e.blocks() * blockSize;
      end = Math.max(end, e.bufferOffset() + e.blocks() * blockSize);
    }
    this.bytes = total;
    this.bufferEnd = end;
  }

  /**
   * Plans a transfer.
   *
   * @param maxTransferBytes longest transfer of one command; at least one block
   * @param extents in the order in which the commands are to be started
   * @throws InvalidRequestException if an extent is empty, leaves the namespace, or its place in
   *     the buffer is negative or not a multiple of 4
   */
  public static TransferPlan of(
      Direction direction, Namespace namespace, long maxTransferBytes, List<Extent> extents) {
    return of(
        direction,
        namespace.nsid(),
        namespace.blockSize(),
        namespace.blocks(),
        maxTransferBytes,
        extents);
  }

  static TransferPlan of(
      Direction direction,
      int nsid,
      int blockSize,
      long namespaceBlocks,
      long maxTransferBytes,
      List<Extent> extents) {
    long perCommand = Math.min(MAX_BLOCKS, maxTransferBytes / blockSize);
    if (perCommand < 1) {
      throw new InvalidRequestException(
          "a maximum transfer of " + maxTransferBytes + " bytes holds no block of " + blockSize);
    }
    for (Extent e : extents) {
      check(e, blockSize, namespaceBlocks);
    }
    return new TransferPlan(direction, nsid, blockSize, extents, perCommand);
  }

  private static void check(Extent e, int blockSize, long namespaceBlocks) {
    if (e.slba() < 0 || e.blocks() <= 0 || e.blocks() > namespaceBlocks - e.slba()) {
      throw new InvalidRequestException(
          e.blocks()
              + " blocks at LBA "
              + e.slba()
              + " leave the namespace of "
              + namespaceBlocks
              + " blocks");
    }
    if (e.bufferOffset() < 0
        || (e.bufferOffset() & 3) != 0
        || e.blocks() > (Long.MAX_VALUE - e.bufferOffset()) / blockSize) {
      throw new InvalidRequestException(
          "buffer offset " + e.bufferOffset() + " is not a multiple of 4 inside a buffer");
    }
  }

  /** Which way the data goes. */
  public Direction direction() {
    return direction;
  }

  /** The namespace. */
  public int nsid() {
    return nsid;
  }

  /** Bytes per logical block. */
  public int blockSize() {
    return blockSize;
  }

  /** How many commands. */
  public int commands() {
    return slba.length;
  }

  /** Bytes moved in all. */
  public long bytes() {
    return bytes;
  }

  /** One past the last byte of the buffer that is touched. */
  public long bufferEnd() {
    return bufferEnd;
  }

  /** First logical block of a command. */
  public long slba(int command) {
    return slba[command];
  }

  /** Blocks of a command, 1..65536. */
  public int blocks(int command) {
    return blocks[command];
  }

  /** Bytes of a command. */
  public long bytes(int command) {
    return (long) blocks[command] * blockSize;
  }

  /** Where a command's data lies in the buffer. */
  public long bufferOffset(int command) {
    return bufferOffset[command];
  }

  /** Writes the commands' fields, each an array of its own, where the offsets say. */
  void copyTo(MemorySegment target, long slbas, long bufferOffsets, long counts) {
    MemorySegment.copy(slba, 0, target, LONG, slbas, slba.length);
    MemorySegment.copy(bufferOffset, 0, target, LONG, bufferOffsets, bufferOffset.length);
    MemorySegment.copy(blocks, 0, target, INT, counts, blocks.length);
  }

  /** The plan as one JSON object. */
  public JsonObject toJson() {
    JsonObject json = new JsonObject();
    json.addProperty("direction", direction.name().toLowerCase(java.util.Locale.ROOT));
    json.addProperty("nsid", nsid);
    json.addProperty("block_size", blockSize);
    json.addProperty("bytes", bytes);
    JsonArray commands = new JsonArray(slba.length);
    for (int i = 0; i < slba.length; i++) {
      JsonObject c = new JsonObject();
      c.addProperty("slba", slba[i]);
      c.addProperty("blocks", blocks[i]);
      c.addProperty("buffer_offset", bufferOffset[i]);
      commands.add(c);
    }
    json.add("commands", commands);
    return json;
  }
}
