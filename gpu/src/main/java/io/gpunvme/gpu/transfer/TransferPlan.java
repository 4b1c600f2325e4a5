package io.gpunvme.gpu.transfer;

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.nvme.driver.Namespace;
import io.gpunvme.nvme.spec.IoOpcode;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Extents cut into commands of at most the controller's transfer size, before any I/O. Immutable.
 */
public final class TransferPlan {
  /** NLB is a 16-bit 0-based count (NVM Command Set 1.0, 3.2.4). */
  private static final long MAX_BLOCKS = 65536;

  /**
   * A command's blocks and its opcode are one word, which the kernel reads as it is: {@code
   * kOpcodeShift} of {@code kernels/transfer.cu}.
   */
  private static final int OPCODE_SHIFT = 24;

  private static final int BLOCKS_MASK = (1 << OPCODE_SHIFT) - 1;

  private static final ValueLayout.OfLong LONG =
      ValueLayout.JAVA_LONG.withOrder(ByteOrder.LITTLE_ENDIAN);
  private static final ValueLayout.OfInt INT =
      ValueLayout.JAVA_INT.withOrder(ByteOrder.LITTLE_ENDIAN);

  private final int nsid;
  private final int blockSize;
  private final long[] slba;

  /** Of each command: its opcode above {@link #OPCODE_SHIFT}, its blocks below. */
  private final int[] words;

  private final long[] bufferOffset;

  /** Which buffer each command uses; null: all the first. */
  private final int @Nullable [] target;

  /** Of each buffer, one past the last byte that is touched. */
  private final long[] bufferEnds;

  private final long bytes;
  private final boolean writes;

  /** The commands of several plans, one plan after the other. */
  private TransferPlan(List<TransferPlan> parts) {
    TransferPlan like = parts.getFirst();
    nsid = like.nsid;
    blockSize = like.blockSize;
    int commands = parts.stream().mapToInt(TransferPlan::commands).sum();
    slba = new long[commands];
    words = new int[commands];
    bufferOffset = new long[commands];
    int[] targets = new int[commands];
    bufferEnds = new long[parts.stream().mapToInt(TransferPlan::buffers).sum()];
    int command = 0;
    int buffer = 0;
    long sum = 0;
    for (TransferPlan part : parts) {
      int count = part.commands();
      System.arraycopy(part.slba, 0, slba, command, count);
      System.arraycopy(part.words, 0, words, command, count);
      System.arraycopy(part.bufferOffset, 0, bufferOffset, command, count);
      for (int i = 0; i < count; i++) {
        targets[command + i] = buffer + part.buffer(i);
      }
      System.arraycopy(part.bufferEnds, 0, bufferEnds, buffer, part.buffers());
      command += count;
      buffer += part.buffers();
      sum += part.bytes;
    }
    target = targets;
    bytes = sum;
    writes = parts.stream().anyMatch(TransferPlan::writes);
  }

  private TransferPlan(Builder from) {
    nsid = from.nsid;
    blockSize = from.blockSize;
    slba = Arrays.copyOf(from.slba, from.count);
    words = Arrays.copyOf(from.words, from.count);
    bufferOffset = Arrays.copyOf(from.bufferOffset, from.count);
    int[] targets = from.target;
    target = targets == null ? null : Arrays.copyOf(targets, from.count);
    bytes = from.bytes;
    writes = from.writes;
    bufferEnds = from.bufferEnds.clone();
  }

  /**
   * Plans a transfer.
   *
   * @param maxTransferBytes longest transfer of one command; at least one block
   * @param extents in the order in which the commands are to be started
   * @throws InvalidRequestException if an extent is empty or not inside the namespace, or its place
   *     in the buffer is negative or not a multiple of 4
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
    Builder builder = builder(direction, nsid, blockSize, namespaceBlocks, maxTransferBytes);
    for (Extent e : extents) {
      builder.add(e.slba(), e.blocks(), e.bufferOffset());
    }
    return builder.build();
  }

  /**
   * Several plans as one: the commands and the buffers of the first, of the second, and so on.
   *
   * @param parts that {@link #goesWith go with} each other; few commands in all
   */
  static TransferPlan join(List<TransferPlan> parts) {
    return parts.size() == 1 ? parts.getFirst() : new TransferPlan(parts);
  }

  /** Whether both can be carried out as one: same namespace. */
  boolean goesWith(TransferPlan other) {
    return nsid == other.nsid && blockSize == other.blockSize;
  }

  /**
   * Plans a transfer extent by extent.
   *
   * @param direction of the extents that say nothing else
   * @param maxTransferBytes as of {@link #of}
   */
  public static Builder builder(Direction direction, Namespace namespace, long maxTransferBytes) {
    return builder(
        direction, namespace.nsid(), namespace.blockSize(), namespace.blocks(), maxTransferBytes);
  }

  static Builder builder(
      Direction direction, int nsid, int blockSize, long namespaceBlocks, long maxTransferBytes) {
    return new Builder(direction, nsid, blockSize, namespaceBlocks, maxTransferBytes);
  }

  /** The most blocks of one command, at least 1. */
  static long blocksPerCommand(int blockSize, long maxTransferBytes) {
    long blocks = Math.min(MAX_BLOCKS, maxTransferBytes / blockSize);
    if (blocks < 1) {
      throw new InvalidRequestException(
          "a maximum transfer of "
              + maxTransferBytes
              + " bytes is less than one block of "
              + blockSize);
    }
    return blocks;
  }

  /** As {@link Builder#add(Direction, long, long, int, long)} says. */
  static void check(
      long firstBlock,
      long length,
      long namespaceBlocks,
      long offset,
      int blockSize,
      long mostBlocks) {
    if (firstBlock < 0 || length <= 0 || length > namespaceBlocks - firstBlock) {
      throw new InvalidRequestException(
          length
              + " blocks at LBA "
              + firstBlock
              + " are not inside the namespace of "
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
  }

  /** The most blocks whose bytes a long can count. */
  static long mostBlocks(int blockSize) {
    return Long.MAX_VALUE / blockSize;
  }

  /** Collects a plan's commands. For one thread. */
  public static final class Builder {
    private static final int FIRST_CAPACITY = 2;
    private static final int MOST = Integer.MAX_VALUE - 8;
    private static final int MOST_BUFFERS = 1 << 20;

    private final Direction direction;
    private final int nsid;
    private final int blockSize;
    private final long namespaceBlocks;
    private final long perCommand;

    /** Divided once, not for each extent. */
    private final long mostBlocks;

    private long[] slba = new long[FIRST_CAPACITY];
    private int[] words = new int[FIRST_CAPACITY];
    private long[] bufferOffset = new long[FIRST_CAPACITY];

    /** Null while all use the first buffer. */
    private int @Nullable [] target;

    private long[] bufferEnds = new long[1];
    private int count;
    private long bytes;
    private boolean writes;

    private Builder(
        Direction direction, int nsid, int blockSize, long namespaceBlocks, long maxTransferBytes) {
      this.direction = direction;
      this.nsid = nsid;
      this.blockSize = blockSize;
      this.namespaceBlocks = namespaceBlocks;
      mostBlocks = mostBlocks(blockSize);
      perCommand = blocksPerCommand(blockSize, maxTransferBytes);
    }

    /** The same in the builder's direction, with the plan's first, or only, buffer. */
    public void add(long firstBlock, long length, long offset) {
      add(direction, firstBlock, length, 0, offset);
    }

    /** The same in the builder's direction. */
    public void add(long firstBlock, long length, int buffer, long offset) {
      add(direction, firstBlock, length, buffer, offset);
    }

    /**
     * Adds an extent, which is started after those before it. Nobody says in which order they end,
     * so what one writes should be no other's.
     *
     * @param way direction of its data
     * @param buffer which of the buffers that the plan will be carried out with, from 0
     * @throws InvalidRequestException if it is empty or not inside the namespace, or its place in
     *     the buffer is negative or not a multiple of 4
     */
    public void add(Direction way, long firstBlock, long length, int buffer, long offset) {
      Objects.checkIndex(buffer, MOST_BUFFERS);
      check(firstBlock, length, offset);
      writes |= way == Direction.WRITE;
      int opcode = opcode(way) << OPCODE_SHIFT;
      for (long done = 0; done < length; ) {
        long n = Math.min(perCommand, length - done);
        addCommand(firstBlock + done, opcode | (int) n, buffer, offset + done * blockSize);
        done += n;
      }
      bytes += length * blockSize;
      if (buffer >= bufferEnds.length) {
        bufferEnds = Arrays.copyOf(bufferEnds, buffer + 1);
      }
      bufferEnds[buffer] = Math.max(bufferEnds[buffer], offset + length * blockSize);
    }

    private void check(long firstBlock, long length, long offset) {
      TransferPlan.check(firstBlock, length, namespaceBlocks, offset, blockSize, mostBlocks);
      if (length > perCommand && Math.ceilDiv(length, perCommand) > MOST - count) {
        throw new InvalidRequestException(
            "a plan of more than " + MOST + " commands is too long; split it");
      }
    }

    private void addCommand(long firstBlock, int word, int buffer, long offset) {
      if (count == slba.length) {
        grow();
      }
      slba[count] = firstBlock;
      words[count] = word;
      bufferOffset[count] = offset;
      if (buffer > 0 && target == null) {
        target = new int[slba.length];
      }
      if (target != null) {
        target[count] = buffer;
      }
      count++;
    }

    private void grow() {
      if (count == MOST) {
        throw new InvalidRequestException(
            "a plan of more than " + MOST + " commands is too long; split it");
      }
      int capacity = (int) Math.min(MOST, 2L * count);
      slba = Arrays.copyOf(slba, capacity);
      words = Arrays.copyOf(words, capacity);
      bufferOffset = Arrays.copyOf(bufferOffset, capacity);
      if (target != null) {
        target = Arrays.copyOf(target, capacity);
      }
    }

    /** Whether no extent was added. */
    public boolean isEmpty() {
      return count == 0;
    }

    /** The plan of all added extents. */
    public TransferPlan build() {
      return new TransferPlan(this);
    }
  }

  /** The command that moves data in a direction. */
  static int opcode(Direction direction) {
    return direction == Direction.READ ? IoOpcode.READ : IoOpcode.WRITE;
  }

  /** Whether any command writes. */
  public boolean writes() {
    return writes;
  }

  /** The direction of a command's data. */
  public Direction direction(int command) {
    return opcode(command) == IoOpcode.READ ? Direction.READ : Direction.WRITE;
  }

  /** The opcode of a command. */
  int opcode(int command) {
    return words[command] >>> OPCODE_SHIFT;
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

  /** The number of buffers that it needs, at least 1. */
  public int buffers() {
    return bufferEnds.length;
  }

  /** The end of the used part of a buffer: one past its last byte. */
  public long bufferEnd(int buffer) {
    return bufferEnds[buffer];
  }

  /** The buffer of a command's data. */
  public int buffer(int command) {
    return target == null ? 0 : target[command];
  }

  /** First logical block of a command. */
  public long slba(int command) {
    return slba[command];
  }

  /** Blocks of a command, 1..65536. */
  public int blocks(int command) {
    return words[command] & BLOCKS_MASK;
  }

  /** Bytes of a command. */
  public long bytes(int command) {
    return (long) blocks(command) * blockSize;
  }

  /** The offset of a command's data in the buffer, bytes. */
  public long bufferOffset(int command) {
    return bufferOffset[command];
  }

  /** Whether any command uses another buffer than the first. */
  boolean hasTargets() {
    return target != null;
  }

  /**
   * Writes the commands' fields, each an array of its own, where the offsets say; opcodes and
   * blocks are one word, buffers are written only where the plan {@link #hasTargets}.
   */
  void copyTo(MemorySegment to, long slbas, long bufferOffsets, long opcodes, long buffers) {
    MemorySegment.copy(slba, 0, to, LONG, slbas, slba.length);
    MemorySegment.copy(bufferOffset, 0, to, LONG, bufferOffsets, bufferOffset.length);
    MemorySegment.copy(words, 0, to, INT, opcodes, words.length);
    if (target != null) {
      MemorySegment.copy(target, 0, to, INT, buffers, target.length);
    }
  }

  /** The plan as one JSON object. */
  public JsonObject toJson() {
    JsonObject json = new JsonObject();
    json.addProperty("nsid", nsid);
    json.addProperty("block_size", blockSize);
    json.addProperty("bytes", bytes);
    JsonArray commands = new JsonArray(slba.length);
    for (int i = 0; i < slba.length; i++) {
      JsonObject c = new JsonObject();
      c.addProperty("direction", direction(i).name().toLowerCase(Locale.ROOT));
      c.addProperty("slba", slba[i]);
      c.addProperty("blocks", blocks(i));
      if (target != null) {
        c.addProperty("buffer", target[i]);
      }
      c.addProperty("buffer_offset", bufferOffset[i]);
      commands.add(c);
    }
    json.add("commands", commands);
    return json;
  }
}
