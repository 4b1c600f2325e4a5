package io.gpunvme.cli;

import io.gpunvme.cli.output.Progress;
import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.transfer.Direction;
import io.gpunvme.gpu.transfer.Extent;
import io.gpunvme.gpu.transfer.Initiator;
import io.gpunvme.gpu.transfer.InitiatorOptions;
import io.gpunvme.gpu.transfer.TransferListener;
import io.gpunvme.gpu.transfer.TransferPlan;
import io.gpunvme.gpu.transfer.TransferReport;
import io.gpunvme.gpu.transfer.TransferTotal;
import io.gpunvme.nvme.driver.Namespace;
import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.tools.demo.Checksum;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.lang.foreign.MemorySegment;
import java.util.List;

/** Copies between a stream and a run of blocks, a window at a time. Not for several threads. */
final class BlockCopy implements AutoCloseable {
  private static final long WINDOW = 64L << 20;
  private static final int COPY_BYTES = 1 << 20;

  private final Namespace namespace;
  private final Initiator initiator;
  private final CpuAccelerator accelerator = CpuAccelerator.open();
  private final DeviceBuffer buffer = accelerator.allocate(WINDOW);
  private final Progress progress;
  private final byte[] copy = new byte[COPY_BYTES];
  private final TransferTotal total = new TransferTotal();

  BlockCopy(
      NvmeController controller, Namespace namespace, InitiatorOptions options, Progress progress) {
    this.namespace = namespace;
    this.progress = progress;
    try {
      initiator = options.open(controller, accelerator);
    } catch (RuntimeException e) {
      accelerator.close();
      throw e;
    }
  }

  /** Blocks that {@code bytes} bytes take up; they must lie in the namespace. */
  static long blocks(Namespace namespace, long lba, long bytes) {
    long blocks = Math.ceilDiv(bytes, namespace.blockSize());
    if (bytes <= 0) {
      throw new UsageException("nothing to do: 0 bytes");
    }
    if (lba > namespace.blocks() || blocks > namespace.blocks() - lba) {
      throw new UsageException(
          "blocks %d..%d are not all in namespace %d, which ends at LBA %d"
              .formatted(lba, lba + blocks - 1, namespace.nsid(), namespace.blocks() - 1));
    }
    return blocks;
  }

  /** Reads {@code bytes} bytes from block {@code lba} on; returns their SHA-256. */
  String read(long lba, long bytes, OutputStream out) throws IOException {
    Checksum checksum = new Checksum();
    for (long at = 0; at < bytes; at += WINDOW) {
      long part = Math.min(WINDOW, bytes - at);
      move(Direction.READ, lba + at / namespace.blockSize(), part);
      for (long done = 0; done < part; ) {
        int n = (int) Math.min(copy.length, part - done);
        buffer.copyToHost(done, MemorySegment.ofArray(copy).asSlice(0, n));
        checksum.add(copy, 0, n);
        out.write(copy, 0, n);
        done += n;
      }
    }
    return checksum.hex();
  }

  /** Writes {@code bytes} bytes; the rest of the last block stays. Returns their SHA-256. */
  String write(InputStream in, long lba, long bytes) throws IOException {
    Checksum checksum = new Checksum();
    int block = namespace.blockSize();
    for (long at = 0; at < bytes; at += WINDOW) {
      long part = Math.min(WINDOW, bytes - at);
      if (part % block != 0) {
        keepRest(lba + (at + part) / block, part / block * block);
      }
      for (long done = 0; done < part; ) {
        int n = in.readNBytes(copy, 0, (int) Math.min(copy.length, part - done));
        if (n == 0) {
          throw new EOFException("the file became shorter while it was read");
        }
        checksum.add(copy, 0, n);
        buffer.copyFromHost(MemorySegment.ofArray(copy).asSlice(0, n), done);
        done += n;
      }
      move(Direction.WRITE, lba + at / block, part);
    }
    return checksum.hex();
  }

  /** Reads a block that will be written in part. */
  private void keepRest(long lba, long bufferOffset) {
    Extent extent = new Extent(lba, 1, bufferOffset);
    initiator.run(plan(Direction.READ, extent), buffer, TransferListener.NONE);
  }

  private void move(Direction direction, long lba, long bytes) {
    Extent extent = new Extent(lba, Math.ceilDiv(bytes, namespace.blockSize()), 0);
    total.add(initiator.run(plan(direction, extent), buffer, progress::moved));
  }

  private TransferPlan plan(Direction direction, Extent extent) {
    return TransferPlan.of(direction, namespace, initiator.maxTransferBytes(), List.of(extent));
  }

  /** Everything that was moved. */
  TransferReport report() {
    return total.report();
  }

  @Override
  public void close() {
    initiator.close();
    buffer.close();
    accelerator.close();
  }
}
