package io.gpunvme.capi;

import io.gpunvme.base.CloseAll;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.storage.GpuStorage;
import io.gpunvme.storage.TransferResult;
import io.gpunvme.storage.path.PathCall;
import io.gpunvme.storage.path.Range;
import io.gpunvme.storage.path.StorageException;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Transfers between a storage and host memory that its own transfers do not reach: through pieces
 * of pinned memory, many short ranges in one, two pieces of a long transfer at a time. Completes
 * when nothing is at work in the host memory any more.
 */
final class HostTransfer extends CompletableFuture<Void> implements Runnable {
  /** Ranges lie in a piece as they do in blocks of this, so that they need no other staging. */
  private static final int BLOCK = 512;

  private static final int PIECES_AT_A_TIME = 2;

  private final GpuStorage storage;
  private final HostPieces pieces;
  private final boolean write;
  private final List<Storage.Item> items;

  /** The oldest first. Changed by the thread that runs this, and guarded by this. */
  private final Deque<Flight> flying = new ArrayDeque<>();

  private boolean cancelled;

  /** Whether to end early, as the thread that waits is told. */
  private @Nullable BooleanSupplier asked;

  /**
   * Begins nothing yet.
   *
   * @param items inside the storage; their addresses are the host's
   */
  HostTransfer(GpuStorage storage, HostPieces pieces, boolean write, List<Storage.Item> items) {
    this.storage = storage;
    this.pieces = pieces;
    this.write = write;
    this.items = items;
  }

  /** A range, and where in the piece it goes. */
  private record Part(long offset, MemorySegment host, long at) {}

  /** Parts that are under way in a piece. */
  private record Flight(
      DeviceBuffer piece, List<Part> parts, CompletableFuture<TransferResult> future) {}

  /** What fits into a piece each. */
  private List<List<Part>> loads() {
    List<List<Part>> loads = new ArrayList<>();
    List<Part> load = new ArrayList<>();
    long end = 0;
    for (Storage.Item item : items) {
      long done = 0;
      while (done < item.bytes()) {
        long offset = item.offset() + done;
        long at = Math.ceilDiv(end, BLOCK) * BLOCK + offset % BLOCK;
        if (at >= pieces.bytes()) {
          loads.add(load);
          load = new ArrayList<>();
          at = offset % BLOCK;
        }
        long bytes = Math.min(item.bytes() - done, pieces.bytes() - at);
        load.add(new Part(offset, CTypes.at(item.address() + done, bytes), at));
        done += bytes;
        end = at + bytes;
      }
    }
    if (!load.isEmpty()) {
      loads.add(load);
    }
    return loads;
  }

  @Override
  public void run() {
    try {
      for (List<Part> load : loads()) {
        begin(load, piece());
        if (flying.size() == PIECES_AT_A_TIME) {
          land();
        }
      }
      while (!flying.isEmpty()) {
        land();
      }
      complete(null);
    } catch (Throwable e) {
      abandon();
      completeExceptionally(e);
    }
  }

  /** A free one, or else one of its own, or else that of somebody else. */
  private DeviceBuffer piece() throws InterruptedException {
    DeviceBuffer piece = pieces.tryTake();
    while (piece == null && !flying.isEmpty()) {
      land();
      piece = pieces.tryTake();
    }
    return piece == null ? waitForPiece() : piece;
  }

  private DeviceBuffer waitForPiece() throws InterruptedException {
    DeviceBuffer piece = pieces.take(this::givenUp);
    if (piece == null) {
      throw cancelled();
    }
    return piece;
  }

  private StorageException cancelled() {
    return new StorageException(
        StorageException.Kind.CANCELLED,
        storage.address().toString(),
        items.getFirst().offset(),
        -1,
        "cancelled",
        null);
  }

  private synchronized boolean givenUp() {
    return cancelled || (asked != null && asked.getAsBoolean());
  }

  private void begin(List<Part> parts, DeviceBuffer piece) {
    // From its start on, only its end gives the piece back.
    CompletableFuture<TransferResult> future =
        CloseAll.orClose(() -> start(parts, piece), () -> pieces.give(piece));
    synchronized (this) {
      flying.add(new Flight(piece, parts, future));
      if (cancelled) {
        future.cancel(true);
      }
    }
  }

  private CompletableFuture<TransferResult> start(List<Part> parts, DeviceBuffer piece) {
    if (write) {
      parts.forEach(p -> piece.copyFromHost(p.host, p.at));
    }
    List<Range> ranges = ranges(parts, piece);
    return write ? storage.writeAsync(ranges) : storage.readAsync(ranges);
  }

  /** Waits for the end of the oldest, and gives its piece back whatever it is. */
  private void land() {
    Flight flight = flying.getFirst();
    try {
      await(flight.future);
      if (!write) {
        flight.parts.forEach(p -> flight.piece.copyToHost(p.at, p.host));
      }
    } finally {
      synchronized (this) {
        flying.removeFirst();
      }
      pieces.give(flight.piece);
    }
  }

  private void await(CompletableFuture<TransferResult> future) {
    boolean interrupted = false;
    while (asked != null && !future.isDone()) {
      try {
        future.get(PathCall.ASKS_NANOS, TimeUnit.NANOSECONDS);
      } catch (TimeoutException e) {
        if (asked.getAsBoolean()) {
          cancel(true);
        }
      } catch (InterruptedException e) {
        interrupted = true;
      } catch (ExecutionException | CancellationException e) {
        break; // as join says
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
    future.join();
  }

  private void abandon() {
    flying.forEach(f -> f.future.cancel(true));
    for (Flight f : flying) {
      f.future.exceptionally(_ -> null).join();
      pieces.give(f.piece);
    }
    synchronized (this) {
      flying.clear();
    }
  }

  /**
   * Asks it to end early; it completes when nothing is at work in the memory any more.
   *
   * @return whether it was still going on
   */
  @Override
  public boolean cancel(boolean mayInterruptIfRunning) {
    synchronized (this) {
      cancelled = true;
      flying.forEach(f -> f.future.cancel(true));
    }
    pieces.wake();
    return !isDone();
  }

  /**
   * Does it in this thread; throws what it failed with.
   *
   * @param ends asked now and then whether to end early; null if nobody wants that
   */
  void carryOut(@Nullable BooleanSupplier ends) {
    asked = ends;
    List<List<Part>> loads = loads();
    if (loads.size() > 1) {
      run();
      join();
      return;
    }
    DeviceBuffer piece;
    try {
      piece = waitForPiece();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw cancelled();
    }
    try {
      move(loads.getFirst(), piece);
    } finally {
      pieces.give(piece);
    }
  }

  private void move(List<Part> parts, DeviceBuffer piece) {
    List<Range> ranges = ranges(parts, piece);
    if (write) {
      parts.forEach(p -> piece.copyFromHost(p.host, p.at));
      Storage.write(storage, ranges, asked);
    } else {
      Storage.read(storage, ranges, asked);
      parts.forEach(p -> piece.copyToHost(p.at, p.host));
    }
  }

  private static List<Range> ranges(List<Part> parts, DeviceBuffer piece) {
    return parts.stream().map(p -> new Range(p.offset, piece, p.at, p.host.byteSize())).toList();
  }
}
