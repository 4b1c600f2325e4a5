package io.gpunvme.tools.demo;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.gpu.transfer.InitiatorKind;
import io.gpunvme.gpu.transfer.InitiatorOptions;
import io.gpunvme.nvme.driver.BlockDevice;
import io.gpunvme.nvme.driver.Namespace;
import io.gpunvme.nvme.driver.NvmeController;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;

/**
 * Blocks of somebody's SSD that may be overwritten for a while. What was in them is kept in a file,
 * put back, and read to be sure. For one thread.
 */
final class BorrowedBlocks {
  private static final long WINDOW = 64L << 20;

  private final NvmeController controller;
  private final Namespace namespace;
  private final long lba;
  private final long bytes;
  private final Path copy;
  private final DemoListener listener;
  private final String sha256;

  private BorrowedBlocks(
      NvmeController controller,
      Namespace namespace,
      long lba,
      long bytes,
      Path copy,
      DemoListener listener)
      throws IOException {
    this.controller = controller;
    this.namespace = namespace;
    this.lba = lba;
    this.bytes = bytes;
    this.copy = copy;
    this.listener = listener;
    listener.phase(DemoPhase.SAVE, bytes);
    try (OutputStream out = Files.newOutputStream(copy);
        CpuAccelerator host = CpuAccelerator.open();
        BlockMover mover = mover(host, new DemoProgress(listener))) {
      sha256 = mover.read(lba, bytes, out);
    }
  }

  /**
   * Reads the blocks into a file.
   *
   * @param lba the first
   * @param bytes of whole blocks, all in the namespace
   * @param folder takes the file, which stays
   * @throws InvalidRequestException if the namespace is write-protected
   */
  static BorrowedBlocks borrow(
      NvmeController controller,
      Namespace namespace,
      long lba,
      long bytes,
      Path folder,
      DemoListener listener)
      throws IOException {
    if (namespace.writeProtected()) {
      throw new InvalidRequestException(
          "namespace %d of %s is write-protected".formatted(namespace.nsid(), controller.name()));
    }
    DemoDevice.requireSpace(folder, bytes);
    Path copy = folder.resolve("borrowed.blocks");
    return new BorrowedBlocks(controller, namespace, lba, bytes, copy, listener);
  }

  private BlockMover mover(CpuAccelerator host, DemoProgress progress) {
    InitiatorOptions cpu = InitiatorOptions.defaults().with(InitiatorKind.CPU, Placement.HOST);
    return BlockMover.open(controller, namespace, host, cpu, bytes, WINDOW, progress);
  }

  /** What is done with the blocks. */
  interface Work<T> {
    T run() throws IOException;
  }

  /**
   * Does something, and puts back what was there, whatever comes of it.
   *
   * @throws NotRestoredException if the SSD does not take it; why the work failed, if it did, is
   *     then a suppressed exception
   */
  <T> T during(Work<T> work) throws IOException {
    T done;
    try {
      done = work.run();
    } catch (IOException | RuntimeException | Error e) {
      try {
        putBack();
      } catch (NotRestoredException worse) {
        worse.addSuppressed(e);
        throw worse;
      }
      throw e;
    }
    putBack();
    return done;
  }

  private void putBack() throws NotRestoredException {
    listener.phase(DemoPhase.RESTORE, bytes);
    String now;
    try (CpuAccelerator host = CpuAccelerator.open();
        BlockMover mover = mover(host, new DemoProgress(listener, false))) {
      try (InputStream in = Files.newInputStream(copy)) {
        mover.write(in, lba, bytes, false);
      }
      try (BlockDevice cache = BlockDevice.open(controller, namespace, 1)) {
        cache.flush();
      }
      now = mover.read(lba, bytes, OutputStream.nullOutputStream());
    } catch (IOException | RuntimeException | Error e) {
      throw notRestored(String.valueOf(e.getMessage()), e);
    }
    if (!now.equals(sha256)) {
      throw notRestored("the SSD gives back other bytes", null);
    }
  }

  private NotRestoredException notRestored(String why, @Nullable Throwable cause) {
    return new NotRestoredException(
        "what was in the %d bytes from LBA %d on is not back on the SSD: %s. They are in %s"
                .formatted(bytes, lba, why, copy)
            + "; gpunvme write DEVICE --nsid %d --lba %d --in FILE --allow-write puts them back"
                .formatted(namespace.nsid(), lba),
        copy,
        cause);
  }
}
