package io.gpunvme.storage;

import io.gpunvme.cuda.CudaStream;
import io.gpunvme.gpu.transfer.Direction;
import io.gpunvme.storage.path.PathCall;
import io.gpunvme.storage.path.Range;
import io.gpunvme.storage.path.StorageException;
import io.gpunvme.storage.path.StorageFailures;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * One transfer in the order of a stream, in pieces of a slot each. {@link #cancel} asks it to end;
 * it is over when it says so.
 *
 * <p>A read that succeeded is over when its last byte is in pinned memory. Anything else is over
 * when the storage and the stream do nothing for it any more: what was put into the stream cannot
 * be taken out, so its gates open and its copies run.
 */
final class StreamTransfer extends CompletableFuture<Void> {
  private final GpuStorage storage;
  private final StreamSlots slots;
  private final WritesInStreams writes;
  private final PathCall call;
  private final Direction direction;
  private final Range range;
  private final CudaStream stream;
  private final Consumer<StreamTransfer> ended;

  /** What the storage does for each piece; over when its slot was given back. */
  private final List<CompletableFuture<?>> pieces = new ArrayList<>();

  /** Of a read: behind this slot's event the stream does nothing for it any more. */
  private @Nullable StreamSlot last;

  private boolean copying;

  /** Ends waits for the writes of others. */
  private final CompletableFuture<Void> givenUp = new CompletableFuture<>();

  /**
   * @param call the whole, whose range was checked
   * @param ended told when it is over, once
   */
  StreamTransfer(
      GpuStorage storage,
      StreamSlots slots,
      WritesInStreams writes,
      PathCall call,
      Direction direction,
      Range range,
      CudaStream stream,
      Consumer<StreamTransfer> ended) {
    this.storage = storage;
    this.slots = slots;
    this.writes = writes;
    this.call = call;
    this.direction = direction;
    this.range = range;
    this.stream = stream;
    this.ended = ended;
  }

  /**
   * Asks it to end early. It completes, with its result or with a {@code StorageException} that
   * says that it was cancelled, when nothing is at work for it any more.
   *
   * @return whether it was still going on
   */
  @Override
  public boolean cancel(boolean mayInterruptIfRunning) {
    giveUp();
    return !isDone();
  }

  private void giveUp() {
    call.cancel();
    givenUp.complete(null);
  }

  /**
   * Puts all of it into the stream, and begins. Waits for slots.
   *
   * @throws RuntimeException if a piece could not be put into the stream: nothing is at work for
   *     the others any more either
   */
  void begin() {
    boolean begun = false;
    try {
      for (long done = 0; done < range.length(); done += StreamSlots.BYTES) {
        long n = Math.min(StreamSlots.BYTES, range.length() - done);
        if (direction == Direction.READ) {
          read(done, n);
        } else {
          write(done, n);
        }
      }
      begun = true;
    } catch (RuntimeException e) {
      throw StorageFailures.of(e, call.source(), range.offset(), range.length());
    } finally {
      if (!begun) {
        giveUp();
        pieces.forEach(StreamTransfer::awaitQuietly);
        awaitCopies();
        range.buffer().release();
        ended.accept(this);
      }
    }
    var _ =
        CompletableFuture.allOf(pieces.toArray(CompletableFuture[]::new))
            .whenComplete((_, failure) -> over(failure));
  }

  private void read(long done, long n) {
    StreamSlot slot = slots.take();
    slot.begin();
    CompletableFuture<?> filled = null;
    boolean put = false;
    try {
      // Opened whatever became of the read: a stream that waits for ever would be worse.
      filled =
          fill(new Range(range.offset() + done, slot.memory(), 0, n))
              .whenComplete((_, _) -> slot.open());
      slot.await(stream);
      stream.copyToDeviceAsync(address(done), slot.bytes(n));
      copying = true;
      slot.record(stream);
      put = true;
    } finally {
      if (!put) {
        withdraw(slot, filled);
      }
    }
    if (done + n == range.length()) {
      last = slot;
      pieces.add(filled);
    } else {
      pieces.add(filled.whenComplete((_, _) -> slots.giveBack(slot)));
    }
  }

  /** Reads at once, unless the same bytes are still to be written by earlier work. */
  private CompletableFuture<TransferResult> fill(Range piece) {
    CompletableFuture<Void> written = writes.before(piece.offset(), piece.length());
    return written.isDone()
        ? start(piece)
        : CompletableFuture.anyOf(written, givenUp).thenCompose(_ -> start(piece));
  }

  private CompletableFuture<TransferResult> start(Range piece) {
    return storage.start(Direction.READ, List.of(piece), call.part(call.source()));
  }

  private void write(long done, long n) {
    StreamSlot slot = slots.take();
    long offset = range.offset() + done;
    boolean put = false;
    try {
      stream.copyToHostAsync(slot.bytes(n), address(done));
      copying = true;
      slot.record(stream);
      CompletableFuture<Void> written = writes.before(offset, n);
      CompletableFuture<Void> stored =
          CompletableFuture.runAsync(
              () -> store(slot, written, offset, n), StreamTransfer::startThread);
      writes.add(offset, n, stored);
      pieces.add(stored.whenComplete((_, _) -> slots.giveBack(slot)));
      put = true;
    } finally {
      if (!put) {
        withdraw(slot, null);
      }
    }
  }

  private long address(long done) {
    return range.buffer().deviceAddress() + range.bufferOffset() + done;
  }

  private void store(StreamSlot slot, CompletableFuture<Void> written, long offset, long n) {
    try {
      slot.awaitUse();
    } catch (RuntimeException e) {
      throw StorageFailures.of(e, call.source(), offset, n);
    }
    CompletableFuture.anyOf(written, givenUp).join();
    call.throwIfCancelled(offset, n);
    storage.transfer(
        Direction.WRITE, List.of(new Range(offset, slot.memory(), 0, n)), call.part(call.source()));
  }

  // ---- pieces that could not be put into the stream

  private void withdraw(StreamSlot slot, @Nullable CompletableFuture<?> filled) {
    giveUp();
    if (filled != null) {
      awaitQuietly(filled);
    }
    slot.open();
    awaitCopies();
    slots.giveBack(slot);
  }

  /** The event behind the last copy may be what failed, so this waits for all of the stream. */
  private void awaitCopies() {
    if (copying) {
      try {
        stream.synchronize();
      } catch (RuntimeException e) {
        // A stream that failed, or is none, does nothing any more; why is what the caller hears.
      }
    }
  }

  private static void awaitQuietly(CompletableFuture<?> piece) {
    piece.handle((_, _) -> true).join();
  }

  // ---- the end

  /** What the storage does is over. */
  private void over(@Nullable Throwable failure) {
    StreamSlot held = last;
    Throwable why = failure instanceof CompletionException e ? e.getCause() : failure;
    if (call.isCancelled()) {
      StorageException cancelled = call.cancelled(range.offset(), range.length());
      if (why != null) {
        cancelled.addSuppressed(why);
      }
      why = cancelled;
    }
    if (held == null || why == null) {
      end(held, why);
      return;
    }
    Throwable told = why;
    Runnable late =
        () -> {
          awaitUseQuietly(held);
          end(held, told);
        };
    try {
      startThread(late);
    } catch (OutOfMemoryError e) {
      // No thread is left, and those who wait for the end are to hear of it all the same.
      late.run();
    }
  }

  private static void awaitUseQuietly(StreamSlot slot) {
    try {
      slot.awaitUse();
    } catch (RuntimeException | Error e) {
      // The context is lost, and its work with it.
    }
  }

  private void end(@Nullable StreamSlot held, @Nullable Throwable failure) {
    if (held != null) {
      // Before those who hear of the end may want one.
      slots.giveBack(held);
    }
    // Who hears of the end may close it and ask what is free.
    range.buffer().release();
    if (failure == null) {
      complete(null);
    } else {
      completeExceptionally(failure);
    }
    ended.accept(this);
  }

  /** Threads that wait for a stream are no pool's: reads that the stream waits for need that. */
  private static void startThread(Runnable work) {
    Thread.ofPlatform().daemon().name("gpunvme-stream").start(work);
  }
}
