package io.gpunvme.tools.demo;

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
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.lang.foreign.MemorySegment;
import java.util.List;

/**
 * Moves bytes between a stream and a run of blocks by way of one buffer, a window at a time. Not
 * for several threads.
 */
public final class BlockMover implements AutoCloseable {
  /** Bytes that are passed on at a time. */
  static final int PIECE = 1 << 20;

  /** What the buffer is not made shorter than for want of memory. */
  private static final long LEAST_WINDOW = 1 << 20;

  private final Namespace namespace;
  private final Initiator initiator;
  private final DeviceBuffer buffer;
  private final TransferListener listener;
  private final byte[] copy = new byte[PIECE];
  private final TransferTotal total = new TransferTotal();

  private BlockMover(
      Namespace namespace, Initiator initiator, DeviceBuffer buffer, TransferListener listener) {
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
        () -> new BlockMover(namespace, initiator, placement.allocate(accelerator, size), listener),
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
    for (long at = 0; at < bytes; at += window()) {
      long part = Math.min(window(), bytes - at);
      load(lba + at / namespace.blockSize(), part);
      drain(part, checksum, out);
    }
    return checksum.hex();
  }

  /** Bytes of a logical block. */
  int block() {
    return namespace.blockSize();
  }

  /** Reads into the buffer at most as many bytes as it has. */
  void load(long lba, long bytes) {
    move(Direction.READ, lba, bytes);
  }

  /** The same from several places. */
  void load(List<Extent> extents) {
    move(Direction.READ, extents);
  }

  /** Passes on the first bytes of the buffer. */
  void drain(long bytes, Checksum checksum, OutputStream out) throws IOException {
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
    int block = namespace.blockSize();
    for (long at = 0; at < bytes; at += window()) {
      long part = Math.min(window(), bytes - at);
      if (keepRest && part % block != 0) {
        // The last block is read first: its end is somebody's.
        long last = lba + (at + part) / block;
        initiator.move(
            Direction.READ,
            namespace,
            last,
            1,
            buffer,
            part / block * block,
            TransferListener.NONE);
      }
      fill(in, part, checksum);
      move(Direction.WRITE, lba + at / block, part);
    }
    return checksum.hex();
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

  private void move(Direction direction, long lba, long bytes) {
    move(direction, List.of(new Extent(lba, Math.ceilDiv(bytes, namespace.blockSize()), 0)));
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
