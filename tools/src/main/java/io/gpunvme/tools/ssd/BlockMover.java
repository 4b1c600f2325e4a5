package io.gpunvme.tools.ssd;

import io.gpunvme.base.CloseAll;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.gpu.transfer.Direction;
import io.gpunvme.gpu.transfer.Extent;
import io.gpunvme.gpu.transfer.Initiator;
import io.gpunvme.gpu.transfer.InitiatorOptions;
import io.gpunvme.gpu.transfer.TransferListener;
import io.gpunvme.gpu.transfer.TransferPlan;
import io.gpunvme.gpu.transfer.TransferReport;
import io.gpunvme.gpu.transfer.TransferTotal;
import io.gpunvme.nvme.CommandAbortedException;
import io.gpunvme.nvme.driver.Namespace;
import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.storage.BlockRun;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;

/**
 * Moves bytes between a stream and blocks of one SSD by way of one buffer, a window at a time. Not
 * for several threads.
 */
public final class BlockMover implements AutoCloseable {
  /** Bytes that are passed on at a time. */
  public static final int PIECE = 1 << 20;

  /** What the buffer is not made shorter than for want of memory. */
  private static final long LEAST_WINDOW = 1 << 20;

  private final NvmeController controller;
  private final Namespace namespace;
  private final Initiator initiator;
  private final DeviceBuffer buffer;
  private final TransferListener listener;
  private final byte[] copy = new byte[PIECE];
  private final TransferTotal total = new TransferTotal();

  private BlockMover(
      NvmeController controller,
      Namespace namespace,
      Initiator initiator,
      DeviceBuffer buffer,
      TransferListener listener) {
    this.controller = controller;
    this.namespace = namespace;
    this.initiator = initiator;
    this.buffer = buffer;
    this.listener = listener;
  }

  /**
   * Opens queues and allocates the buffer.
   *
   * @param accelerator whose memory the buffer is, if the placement says so; stays open longer
   * @param bytes that are to be moved in all
   * @param window most memory that the buffer takes, bytes; no more than half of what is free
   * @param listener told of progress by commands, as {@link Initiator#run} does
   * @throws io.gpunvme.base.InvalidRequestException if the options do not fit the controller
   */
  public static BlockMover open(
      NvmeController controller,
      Namespace namespace,
      Accelerator accelerator,
      InitiatorOptions options,
      long bytes,
      long window,
      TransferListener listener) {
    Placement placement = options.placement(controller, accelerator);
    int block = namespace.blockSize();
    // A machine with little memory moves less at a time.
    long room = Math.max(LEAST_WINDOW, accelerator.availableBytes() / 2) / block * block;
    long size = Math.min(Math.min(window, room), Math.ceilDiv(bytes, block) * block);
    Initiator initiator = options.open(controller, accelerator);
    return CloseAll.orClose(
        () ->
            new BlockMover(
                controller, namespace, initiator, placement.allocate(accelerator, size), listener),
        initiator::close);
  }

  /** Bytes of the buffer: whole blocks. */
  public long window() {
    return buffer.size();
  }

  /**
   * Reads and passes on what was read.
   *
   * @param lba first block
   * @return the bytes' SHA-256
   * @throws io.gpunvme.nvme.NvmeException if a command fails
   */
  public String read(long lba, long bytes, OutputStream out) throws IOException {
    Checksum checksum = new Checksum();
    long left = bytes;
    for (List<Extent> extents : windows(run(lba, bytes))) {
      long part = Math.min(left, bytes(extents));
      load(extents);
      drain(part, checksum, out);
      left -= part;
    }
    return checksum.hex();
  }

  /** The same of all bytes in some runs of the namespace, one run after the other. */
  public String read(List<BlockRun> runs, OutputStream out) throws IOException {
    Checksum checksum = new Checksum();
    for (List<Extent> extents : windows(runs)) {
      load(extents);
      drain(bytes(extents), checksum, out);
    }
    return checksum.hex();
  }

  private List<BlockRun> run(long lba, long bytes) {
    long blocks = Math.ceilDiv(bytes, namespace.blockSize());
    return List.of(new BlockRun(controller, namespace, lba, blocks));
  }

  /** Bytes of a logical block. */
  public int block() {
    return namespace.blockSize();
  }

  /**
   * What fits into the buffer at a time, one behind the other in it.
   *
   * @param runs of the namespace
   */
  public List<List<Extent>> windows(List<BlockRun> runs) {
    List<List<Extent>> all = new ArrayList<>();
    long filled = window();
    for (BlockRun run : runs) {
      for (long done = 0; done < run.blocks(); ) {
        if (filled >= window()) {
          all.add(new ArrayList<>());
          filled = 0;
        }
        long n = Math.min(run.blocks() - done, (window() - filled) / block());
        all.getLast().add(new Extent(run.slba() + done, n, filled));
        done += n;
        filled += n * block();
      }
    }
    return all;
  }

  /** Bytes of some extents. */
  public long bytes(List<Extent> extents) {
    return extents.stream().mapToLong(Extent::blocks).sum() * block();
  }

  /** Reads a window into the buffer. */
  public void load(List<Extent> extents) {
    move(Direction.READ, extents);
  }

  /** Passes on the first bytes of the buffer. */
  public void drain(long bytes, Checksum checksum, OutputStream out) throws IOException {
    for (long done = 0; done < bytes; ) {
      int n = (int) Math.min(copy.length, bytes - done);
      buffer.copyToHost(done, MemorySegment.ofArray(copy).asSlice(0, n));
      checksum.add(copy, 0, n);
      out.write(copy, 0, n);
      done += n;
    }
  }

  /**
   * Writes whole blocks.
   *
   * @param lba first block
   * @param keepRest reads the last block first, so that the part of it after the bytes stays;
   *     otherwise that part is undefined. The report does not count this command
   * @return the bytes' SHA-256
   * @throws EOFException if {@code in} ends early
   * @throws io.gpunvme.nvme.NvmeException if a command fails
   */
  public String write(InputStream in, long lba, long bytes, boolean keepRest) throws IOException {
    Checksum checksum = new Checksum();
    write(in, run(lba, bytes), bytes, keepRest, checksum);
    return checksum.hex();
  }

  /**
   * Writes some runs of the namespace, one after the other.
   *
   * @param bytes no more than are in the runs; what is behind them in the last window is undefined
   * @throws EOFException if {@code in} ends early
   * @throws io.gpunvme.nvme.NvmeException if a command fails
   */
  public void write(InputStream in, List<BlockRun> runs, long bytes, Checksum checksum)
      throws IOException {
    write(in, runs, bytes, false, checksum);
  }

  private void write(
      InputStream in, List<BlockRun> runs, long bytes, boolean keepRest, Checksum checksum)
      throws IOException {
    long left = bytes;
    for (List<Extent> extents : windows(runs)) {
      long part = Math.min(left, bytes(extents));
      if (keepRest && part % block() != 0) {
        // The last block is read first: its end is somebody's.
        Extent last = extents.getLast();
        initiator.move(
            Direction.READ,
            namespace,
            last.slba() + last.blocks() - 1,
            1,
            buffer,
            part / block() * block(),
            TransferListener.NONE);
      }
      fill(in, part, checksum);
      move(Direction.WRITE, extents);
      left -= part;
    }
  }

  private void fill(InputStream in, long bytes, Checksum checksum) throws IOException {
    for (long done = 0; done < bytes; ) {
      int n = in.readNBytes(copy, 0, (int) Math.min(copy.length, bytes - done));
      if (n == 0) {
        throw new EOFException("the file became shorter while it was read");
      }
      checksum.add(copy, 0, n);
      buffer.copyFromHost(MemorySegment.ofArray(copy).asSlice(0, n), done);
      done += n;
    }
  }

  private void move(Direction direction, List<Extent> extents) {
    // An initiator asks only while it waits.
    if (listener.isCancelled()) {
      throw new CommandAbortedException("cancelled before the next " + buffer.size() + " bytes");
    }
    TransferPlan plan =
        TransferPlan.of(direction, namespace, initiator.maxTransferBytes(), extents);
    total.add(initiator.run(plan, buffer, listener));
  }

  /** Everything that was moved. */
  public TransferReport report() {
    return total.report();
  }

  @Override
  public void close() {
    CloseAll.all(initiator, buffer);
  }
}
