package io.gpunvme.storage.path.cufile;

import io.gpunvme.cuda.DeviceMemory;
import io.gpunvme.cuda.cufile.CuFileException;
import io.gpunvme.cuda.cufile.CuFileHandle;
import io.gpunvme.cuda.cufile.CuFileRange;
import io.gpunvme.ffi.PosixException;
import io.gpunvme.gpu.transfer.Direction;
import io.gpunvme.storage.path.PathCall;
import io.gpunvme.storage.path.StorageException;
import io.gpunvme.storage.path.StorageException.Kind;
import io.gpunvme.storage.path.cufile.CuFilePieces.Piece;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/**
 * One transfer, worked on by several threads: each takes pieces until none is left or one has
 * failed.
 */
final class CuFileJob implements Runnable {
  private static final int MOST_RETRIES = 3;
  private static final long RETRY_NANOS = 1_000_000;

  private final CuFilePath path;
  private final CuFileHandle file;
  private final boolean writing;
  private final CuFilePieces pieces;
  private final PathCall call;
  private final AtomicReference<@Nullable Throwable> failure = new AtomicReference<>();

  CuFileJob(
      CuFilePath path, CuFileHandle file, boolean writing, CuFilePieces pieces, PathCall call) {
    this.path = path;
    this.file = file;
    this.writing = writing;
    this.pieces = pieces;
    this.call = call;
  }

  boolean writing() {
    return writing;
  }

  CuFileHandle file() {
    return file;
  }

  PathCall call() {
    return call;
  }

  Optional<DeviceMemory> memory(Piece piece) {
    return path.memory(piece.buffer());
  }

  /** The next piece; null if there is none, or all are to stop. */
  @Nullable Piece next() {
    return failure.get() == null ? pieces.next() : null;
  }

  boolean failed() {
    return failure.get() != null;
  }

  void fail(Throwable t) {
    failure.compareAndSet(null, t);
  }

  /** After all threads have left it. */
  void throwFailure() {
    switch (failure.get()) {
      case null -> {}
      case RuntimeException e -> throw e;
      case Error e -> throw e;
      case Throwable t -> throw new AssertionError(t);
    }
  }

  @Override
  public void run() {
    try {
      Piece piece;
      while ((piece = next()) != null) {
        move(piece);
      }
    } catch (RuntimeException | Error e) {
      fail(e);
    }
  }

  /** Moves all of a piece, by as many calls as cuFile takes for it. */
  void move(Piece piece) {
    if (!piece.aligned()) {
      call.counters().staged(piece.length());
    }
    Piece rest = piece;
    int failures = 0;
    while (rest.length() > 0) {
      call.throwIfCancelled(rest.offset(), rest.length());
      long start = System.nanoTime();
      long count;
      try {
        count = once(rest);
      } catch (PosixException | CuFileException e) {
        if (!CuFileFailures.passing(e) || failures == MOST_RETRIES) {
          throw CuFileFailures.of(e, call.source(), rest.offset(), rest.length());
        }
        failures++;
        call.retried(1);
        LockSupport.parkNanos(RETRY_NANOS);
        continue;
      }
      call.operation(System.nanoTime() - start);
      rest = after(rest, count);
    }
  }

  /**
   * What is left after a call that moved {@code count} bytes; fewer bytes are not a failure by
   * itself.
   */
  Piece after(Piece piece, long count) {
    if (count == 0) {
      throw new StorageException(
          writing ? Kind.IO : Kind.SHORT_READ,
          call.source(),
          piece.offset(),
          piece.length(),
          writing ? "cuFile wrote nothing" : "the file ends here; it was longer when it was opened",
          null);
    }
    call.counters().moved(writing ? Direction.WRITE : Direction.READ, count);
    if (count < piece.length()) {
      call.retried(1);
    }
    return piece.after(count);
  }

  private long once(Piece piece) {
    if (piece.buffer().isHost()) {
      return path.host().move(writing, piece);
    }
    CuFileRange range = new CuFileRange(piece.offset(), piece.bufferOffset(), piece.length());
    DeviceMemory memory = path.requireMemory(piece.buffer());
    return writing ? file.write(memory, range) : file.read(memory, range);
  }
}
