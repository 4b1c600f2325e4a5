package io.gpunvme.capi;

import io.gpunvme.base.WorkScope;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.storage.GpuStorage;
import io.gpunvme.storage.path.Range;
import io.gpunvme.storage.path.StorageException;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * A transfer with host memory that a storage does not reach: through pieces of pinned memory, many
 * short ranges in one, two pieces of a long transfer at a time. What the storage reaches goes along
 * with it. Over when nothing is at work in the memory any more.
 *
 * <p>Carried out once: by {@link #carryOut} in the caller's thread, or by {@link #run} in one of
 * its own, which completes it.
 */
final class HostTransfer extends CompletableFuture<Void> implements Runnable {
  /** Ranges lie in a piece as they do in blocks of this, so that they need no other staging. */
  private static final int BLOCK = 512;

  private static final int PIECES_AT_A_TIME = 2;

  private final GpuStorage storage;
  private final HostPieces pieces;
  private final boolean write;
  private final List<Storage.Item> items;

  private final List<Load> loads = new ArrayList<>();

  /** The next of them that nobody has begun. */
  private final AtomicInteger next = new AtomicInteger();

  /** Somebody has cancelled it, or a part has failed. */
  private volatile boolean ending;

  /**
   * Begins nothing yet.
   *
   * @param ranges what the storage reaches
   * @param items what it does not: at least one, inside the storage; their addresses are the host's
   */
  HostTransfer(
      GpuStorage storage,
      HostPieces pieces,
      boolean write,
      List<Range> ranges,
      List<Storage.Item> items) {
    this.storage = storage;
    this.pieces = pieces;
    this.write = write;
    this.items = items;
    if (!ranges.isEmpty()) {
      loads.add(ends -> move(ranges, ends));
    }
    addItems();
  }

  /** What one thread does at a time. */
  private interface Load {
    /**
     * @param ends asked now and then whether to end early; null if nobody wants that
     */
    void carryOut(@Nullable BooleanSupplier ends);
  }

  /** A range, and where in the piece it goes. */
  private record Part(long offset, MemorySegment host, long at) {}

  /** As many of them as fit into a piece each. */
  private void addItems() {
    List<Part> load = new ArrayList<>();
    long end = 0;
    for (Storage.Item item : items) {
      long done = 0;
      while (done < item.bytes()) {
        long offset = item.offset() + done;
        long at = Math.ceilDiv(end, BLOCK) * BLOCK + offset % BLOCK;
        if (at >= pieces.bytes()) {
          add(load);
          load = new ArrayList<>();
          at = offset % BLOCK;
        }
        long bytes = Math.min(item.bytes() - done, pieces.bytes() - at);
        load.add(new Part(offset, CTypes.at(item.address() + done, bytes), at));
        done += bytes;
        end = at + bytes;
      }
    }
    add(load);
  }

  private void add(List<Part> parts) {
    loads.add(ends -> move(parts, piece(ends), ends));
  }

  @Override
  public void run() {
    try {
      carryOut(() -> ending);
      complete(null);
    } catch (Throwable e) {
      completeExceptionally(e);
    }
  }

  /**
   * Asks it to end early; it completes when nothing is at work in the memory any more.
   *
   * @return whether it was still going on
   */
  @Override
  public boolean cancel(boolean mayInterruptIfRunning) {
    end();
    return !isDone();
  }

  private void end() {
    ending = true;
    pieces.wake();
  }

  /**
   * Does it in this thread; throws what it failed with.
   *
   * @param ends asked now and then by this thread whether to end early; null if nobody wants that
   */
  void carryOut(@Nullable BooleanSupplier ends) {
    if (loads.size() == 1) {
      loads.getFirst().carryOut(ends);
      return;
    }
    WorkScope scope = new WorkScope(HostTransfer::startThread);
    Runnable other = () -> work(() -> ending);
    Runnable own =
        () -> {
          Collections.nCopies(PIECES_AT_A_TIME - 1, other).forEach(scope::help);
          work(() -> asked(ends));
        };
    WorkScope.rethrow(scope.finish(own, () -> asked(ends), () -> {}));
  }

  static void startThread(Runnable work) {
    Thread.ofPlatform().daemon().name("gpunvme-host-transfer").start(work);
  }

  /** By the thread that carries it out, which tells the others. */
  private boolean asked(@Nullable BooleanSupplier ends) {
    if (!ending && ends != null && ends.getAsBoolean()) {
      end();
    }
    return ending;
  }

  private void work(BooleanSupplier ends) {
    try {
      for (int i = next.getAndIncrement(); i < loads.size(); i = next.getAndIncrement()) {
        loads.get(i).carryOut(ends);
      }
    } catch (Throwable e) {
      end();
      throw e;
    }
  }

  /** Nobody waits for one that has one, so they do not wait for each other in a circle. */
  private DeviceBuffer piece(@Nullable BooleanSupplier ends) {
    DeviceBuffer piece = null;
    try {
      piece = pieces.take(ends == null ? () -> false : ends);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    if (piece == null) {
      throw new StorageException(
          StorageException.Kind.CANCELLED,
          storage.address().toString(),
          items.getFirst().offset(),
          -1,
          "cancelled",
          null);
    }
    return piece;
  }

  private void move(List<Part> parts, DeviceBuffer piece, @Nullable BooleanSupplier ends) {
    try {
      List<Range> ranges =
          parts.stream().map(p -> new Range(p.offset, piece, p.at, p.host.byteSize())).toList();
      if (write) {
        parts.forEach(p -> piece.copyFromHost(p.host, p.at));
      }
      move(ranges, ends);
      if (!write) {
        parts.forEach(p -> piece.copyToHost(p.at, p.host));
      }
    } finally {
      pieces.give(piece);
    }
  }

  private void move(List<Range> ranges, @Nullable BooleanSupplier ends) {
    Storage.move(storage, write, ranges, ends);
  }
}
