package io.gpunvme.core.transfer;

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import io.gpunvme.nvme.InvalidRequestException;
import io.gpunvme.nvme.driver.Namespace;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.Arrays;
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

  private TransferPlan(Builder from) {
    direction = from.direction;
    nsid = from.nsid;
    blockSize = from.blockSize;
    slba = Arrays.copyOf(from.slba, from.count);
    blocks = Arrays.copyOf(from.blocks, from.count);
    bufferOffset = Arrays.copyOf(from.bufferOffset, from.count);
    bytes = from.bytes;
    bufferEnd = from.bufferEnd;
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
    Builder builder = new Builder(direction, nsid, blockSize, namespaceBlocks, maxTransferBytes);
    for (Extent e : extents) {
      builder.add(e.slba(), e.blocks(), e.bufferOffset());
    }
    return builder.build();
  }

  /**
   * Plans a transfer extent by extent.
   *
   * @param maxTransferBytes as of {@link #of}
   */
  public static Builder builder(Direction direction, Namespace namespace, long maxTransferBytes) {
    return new Builder(
        direction, namespace.nsid(), namespace.blockSize(), namespace.blocks(), maxTransferBytes);
  }

  /** Collects a plan's commands. For one thread. */
  public static final class Builder {
    private static final int FIRST_CAPACITY = 16;
    private static final int MOST = Integer.MAX_VALUE - 8;

    private final Direction direction;
    private final int nsid;
    private final int blockSize;
    private final long namespaceBlocks;
    private final long perCommand;

    /** Whose bytes a long can count; divided once, not for each extent. */
    private final long mostBlocks;

    private long[] slba = new long[FIRST_CAPACITY];
    private int[] blocks = new int[FIRST_CAPACITY];
    private long[] bufferOffset = new long[FIRST_CAPACITY];
    private int count;
    private long bytes;
    private long bufferEnd;

    private Builder(
        Direction direction, int nsid, int blockSize, long namespaceBlocks, long maxTransferBytes) {
      this.direction = direction;
      this.nsid = nsid;
      this.blockSize = blockSize;
      this.namespaceBlocks = namespaceBlocks;
      mostBlocks = Long.MAX_VALUE / blockSize;
      perCommand = Math.min(MAX_BLOCKS, maxTransferBytes / blockSize);
      if (perCommand < 1) {
        throw new InvalidRequestException(
            "a maximum transfer of " + maxTransferBytes + " bytes holds no block of " + blockSize);
      }
    }

    /**
     * Adds an extent, which is started after those before it.
     *
     * @throws InvalidRequestException if it is empty, leaves the namespace, or its place in the
     *     buffer is negative or not a multiple of 4
     */
    public void add(long firstBlock, long length, long offset) {
      check(firstBlock, length, offset);
      for (long done = 0; done < length; ) {
        long n = Math.min(perCommand, length - done);
        addCommand(firstBlock + done, (int) n, offset + done * blockSize);
        done += n;
      }
      bytes += length * blockSize;
      bufferEnd = Math.max(bufferEnd, offset + length * blockSize);
    }

    private void check(long firstBlock, long length, long offset) {
      if (firstBlock < 0 || length <= 0 || length > namespaceBlocks - firstBlock) {
        throw new InvalidRequestException(
            length
                + " blocks at LBA "
                + firstBlock
                + " leave the namespace of "
                + namespaceBlocks
                + " blocks");
      }
      if (offset < 0
          || (offset & 3) != 0
          || length > mostBlocks
          || length * blockSize > Long.MAX_VALUE - offset) {
        throw new InvalidRequestException(
            "buffer offset " + offset + " is not a multiple of 4 inside a buffer");
      }
      if (length > perCommand && Math.ceilDiv(length, perCommand) > MOST - count) {
        throw new InvalidRequestException(
            "a plan of more than " + MOST + " commands is too long; split it");
      }
    }

    private void addCommand(long firstBlock, int length, long offset) {
      if (count == slba.length) {
        grow();
      }
      slba[count] = firstBlock;
      blocks[count] = length;
      bufferOffset[count] = offset;
      count++;
    }

    private void grow() {
      if (count == MOST) {
        throw new InvalidRequestException(
            "a plan of more than " + MOST + " commands is too long; split it");
      }
      int capacity = (int) Math.min(MOST, 2L * count);
      slba = Arrays.copyOf(slba, capacity);
      blocks = Arrays.copyOf(blocks, capacity);
      bufferOffset = Arrays.copyOf(bufferOffset, capacity);
    }

    /** Whether nothing was added. */
    public boolean isEmpty() {
      return count == 0;
    }

    /** What was added. */
    public TransferPlan build() {
      return new TransferPlan(this);
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
