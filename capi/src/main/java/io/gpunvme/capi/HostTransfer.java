package io.gpunvme.capi;

import io.gpunvme.core.accel.DeviceBuffer;
import io.gpunvme.core.path.StorageException;
import io.gpunvme.core.storage.GpuStorage;
import io.gpunvme.core.storage.TransferResult;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/** A transfer between a storage and host memory that its transfers do not reach, piece by piece. */
final class HostTransfer extends CompletableFuture<Void> implements Runnable {
  private final GpuStorage storage;
  private final Memory memory;
  private final boolean write;
  private final long offset;
  private final MemorySegment host;
  private boolean cancelled;
  private @Nullable CompletableFuture<TransferResult> current;

  HostTransfer(GpuStorage storage, Memory memory, boolean write, long offset, MemorySegment host) {
    this.storage = storage;
    this.memory = memory;
    this.write = write;
    this.offset = offset;
    this.host = host;
  }

  @Override
  public void run() {
    DeviceBuffer piece = null;
    try {
      piece = memory.takePiece();
      for (long done = 0; done < host.byteSize(); done += Memory.PIECE) {
        move(piece, done, Math.min(Memory.PIECE, host.byteSize() - done));
      }
      memory.givePiece(piece);
      complete(null);
    } catch (Throwable e) {
      if (piece != null) {
        memory.givePiece(piece);
      }
      completeExceptionally(e);
    }
  }

  private void move(DeviceBuffer piece, long at, long bytes) {
    MemorySegment part = host.asSlice(at, bytes);
    if (write) {
      piece.copyFromHost(part, 0);
      begin(storage.writeAsync(offset + at, piece, 0, bytes)).join();
    } else {
      begin(storage.readAsync(offset + at, piece, 0, bytes)).join();
      piece.copyToHost(0, part);
    }
  }

  private synchronized CompletableFuture<TransferResult> begin(
      CompletableFuture<TransferResult> next) {
    current = next;
    if (cancelled) {
      next.cancel(true);
    }
    return next;
  }

  /**
   * Asks it to end early; it completes when nothing is at work in the memory any more.
   *
   * @return whether it was still going on
   */
  @Override
  public synchronized boolean cancel(boolean mayInterruptIfRunning) {
    cancelled = true;
    CompletableFuture<TransferResult> now = current;
    if (now != null) {
      now.cancel(true);
    }
    return !isDone();
  }

  /** For those who wait here: throws what it failed with. */
  void await() {
    run();
    try {
      join();
    } catch (CancellationException e) {
      throw new StorageException(
          StorageException.Kind.CANCELLED,
          storage.address().toString(),
          offset,
          -1,
          "cancelled",
          e);
    }
  }
}
