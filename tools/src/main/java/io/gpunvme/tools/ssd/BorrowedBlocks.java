package io.gpunvme.tools.ssd;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.gpu.transfer.InitiatorKind;
import io.gpunvme.gpu.transfer.InitiatorOptions;
import io.gpunvme.gpu.transfer.TransferListener;
import io.gpunvme.nvme.driver.BlockDevice;
import io.gpunvme.nvme.driver.Namespace;
import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.storage.BlockRun;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.channels.Channels;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * Blocks of somebody's SSDs that may be overwritten for a while. What was in them is kept in a
 * file, put back, and read to be sure. For one thread.
 */
public final class BorrowedBlocks {
  private static final InitiatorOptions CPU =
      InitiatorOptions.defaults().with(InitiatorKind.CPU, Placement.HOST);
  private static final long WINDOW = 64L << 20;

  private final List<Share> shares;
  private final Path copy;

  /** Has this name while the blocks are not what they were. */
  private final Path script;

  /** Before that. */
  private final Path prepared;

  private final BorrowListener listener;

  /** What is borrowed of one SSD: it is put back whether or not others take theirs. */
  private static final class Share {
    final NvmeController controller;
    final Namespace namespace;
    final List<BlockRun> runs;
    final long bytes;

    /** The first byte in the copy. */
    final long at;

    String sha256 = "";

    Share(List<BlockRun> runs, long at) {
      this.runs = runs;
      this.at = at;
      controller = runs.getFirst().controller();
      namespace = runs.getFirst().namespace();
      bytes = Ssds.bytes(runs);
    }

    BlockMover mover(CpuAccelerator host, TransferListener listener) {
      return BlockMover.open(controller, namespace, host, CPU, bytes, WINDOW, listener);
    }
  }

  /** What nobody stops: the listener may only watch. */
  private record Watched(BorrowListener listener) implements TransferListener {
    @Override
    public void moved(long bytes) {
      listener.moved(bytes);
    }
  }

  private BorrowedBlocks(List<Share> shares, Path copy, Path prepared, BorrowListener listener)
      throws IOException {
    this.shares = shares;
    this.copy = copy;
    this.prepared = prepared;
    this.script = copy.resolveSibling(PutBackScript.NAME);
    this.listener = listener;
    listener.begin(BorrowListener.Step.SAVE, bytes());
    try (OutputStream out = Files.newOutputStream(copy);
        CpuAccelerator host = CpuAccelerator.open()) {
      for (Share share : shares) {
        try (BlockMover mover = share.mover(host, listener)) {
          share.sha256 = mover.read(share.runs, out);
        }
      }
    }
    // The machine may go down while the blocks are overwritten.
    force(copy);
    force(prepared);
  }

  private static void force(Path file) throws IOException {
    try (FileChannel open = FileChannel.open(file, StandardOpenOption.WRITE)) {
      open.force(true);
    }
  }

  /**
   * The script that puts back what is kept in a folder; empty if all blocks there are as they were.
   */
  public static Optional<Path> missing(Path folder) {
    Path script = folder.resolve(PutBackScript.NAME);
    return Files.exists(script) ? Optional.of(script) : Optional.empty();
  }

  /**
   * Reads the blocks into a file.
   *
   * @param runs at least one, as {@link Ssds#blocksToWrite} gives them; open for writing, and
   *     longer than this is used
   * @param folder takes the file, and a script that puts back what is in it; both are deleted when
   *     everything is back
   * @throws InvalidRequestException if a namespace is write-protected
   * @throws IOException if the folder has no room
   */
  public static BorrowedBlocks borrow(List<BlockRun> runs, Path folder, BorrowListener listener)
      throws IOException {
    List<Share> shares = new ArrayList<>();
    long at = 0;
    for (List<BlockRun> own : Ssds.bySsd(runs)) {
      Share share = new Share(joined(own), at);
      if (share.namespace.writeProtected()) {
        throw new InvalidRequestException(
            "namespace %d of %s is write-protected"
                .formatted(share.namespace.nsid(), share.controller.name()));
      }
      shares.add(share);
      at += share.bytes;
    }
    FreeSpace.require(folder, at);
    Path copy = folder.resolve("borrowed.blocks");
    List<BlockRun> all = shares.stream().flatMap(share -> share.runs.stream()).toList();
    Path prepared = PutBackScript.write(all, copy);
    return new BorrowedBlocks(shares, copy, prepared, listener);
  }

  /** In ascending order, those that follow each other as one. */
  private static List<BlockRun> joined(List<BlockRun> runs) {
    List<BlockRun> all = new ArrayList<>();
    for (BlockRun run : runs.stream().sorted(Comparator.comparingLong(BlockRun::slba)).toList()) {
      BlockRun last = all.isEmpty() ? null : all.getLast();
      if (last != null && last.slba() + last.blocks() == run.slba()) {
        long blocks = last.blocks() + run.blocks();
        all.set(
            all.size() - 1, new BlockRun(last.controller(), last.namespace(), last.slba(), blocks));
      } else {
        all.add(run);
      }
    }
    return all;
  }

  /** How many bytes are borrowed. */
  public long bytes() {
    return shares.stream().mapToLong(share -> share.bytes).sum();
  }

  /** What is done with the blocks. */
  public interface Work<T> {
    /** Does it. */
    T run() throws IOException;
  }

  /**
   * Does something, and puts back what was there, whatever comes of it.
   *
   * @throws NotRestoredException if an SSD does not take it; why the work failed, if it did, is
   *     then a suppressed exception
   */
  public <T> T during(Work<T> work) throws IOException {
    T done;
    Files.move(prepared, script, StandardCopyOption.ATOMIC_MOVE);
    try {
      done = work.run();
    } catch (IOException | RuntimeException | Error e) {
      try {
        putBack();
      } catch (IOException worse) {
        worse.addSuppressed(e);
        throw worse;
      }
      throw e;
    }
    putBack();
    return done;
  }

  private void putBack() throws IOException {
    // A file that is read by an interrupted thread is closed instead.
    boolean interrupted = Thread.interrupted();
    try {
      putAllBack();
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  private void putAllBack() throws IOException {
    listener.begin(BorrowListener.Step.PUT_BACK, 2 * bytes());
    NotRestoredException failure = null;
    for (Share share : shares) {
      try {
        putBack(share);
      } catch (IOException | RuntimeException | Error e) {
        NotRestoredException now = notRestored(share, e);
        if (failure == null) {
          failure = now;
        } else {
          failure.addSuppressed(now);
        }
      }
    }
    if (failure != null) {
      throw failure;
    }
    Files.delete(script);
    Files.delete(copy);
  }

  private void putBack(Share share) throws IOException {
    // One after the other: an SSD may have one queue pair.
    try (CpuAccelerator host = CpuAccelerator.open()) {
      try (BlockMover mover = share.mover(host, new Watched(listener));
          FileChannel kept = FileChannel.open(copy);
          InputStream in = Channels.newInputStream(kept.position(share.at))) {
        mover.write(in, share.runs, share.bytes, new Checksum());
      }
      try (BlockDevice cache = BlockDevice.open(share.controller, share.namespace, 1)) {
        cache.flush();
      }
      try (BlockMover mover = share.mover(host, new Watched(listener))) {
        String now = mover.read(share.runs, OutputStream.nullOutputStream());
        if (!now.equals(share.sha256)) {
          throw new IOException("the SSD gives back other bytes");
        }
      }
    }
  }

  private NotRestoredException notRestored(Share share, Throwable cause) {
    @Nullable String why = cause.getMessage();
    return new NotRestoredException(
        "what was in %d bytes from LBA %d of %s on is not back: %s. It is in %s; sh %s puts it back"
            .formatted(
                share.bytes,
                share.runs.getFirst().slba(),
                share.controller.name(),
                why == null ? cause.toString() : why,
                copy,
                script),
        copy,
        cause);
  }
}
