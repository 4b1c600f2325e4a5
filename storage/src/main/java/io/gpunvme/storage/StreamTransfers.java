package io.gpunvme.storage;

import io.gpunvme.cuda.CudaStream;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.transfer.Direction;
import io.gpunvme.storage.path.PathCall;
import io.gpunvme.storage.path.Range;
import io.gpunvme.storage.path.StorageException;
import io.gpunvme.storage.path.StorageException.Kind;
import io.gpunvme.storage.path.StorageFailures;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;

/**
 * Transfers in the order of CUDA streams. Safe for all threads.
 *
 * <p>Data of a read goes to pinned memory first, while the stream's earlier work goes on. What is
 * put into the stream is a wait for that memory's word and a copy: nothing that would need another
 * stream to get its turn, so streams cannot wait for each other in a circle. A write is copied to
 * pinned memory by the stream and goes on from there.
 *
 * <p>All transfers of a storage share 32 MiB of that memory, in 8 pieces of up to 4 MiB. A piece of
 * a read is taken until the stream has copied it, one of a write until it is written. A call that
 * finds none free waits for that: a transfer of more than 32 MiB does so until the stream has come
 * to its first pieces, a short one if 8 pieces are with streams that do not move. So a thread that
 * lets a stream go on, by an event, a word or a host function, does that before it calls, or has no
 * more than 8 pieces in streams that wait for it. Events that are recorded in other streams before
 * the call are no danger.
 *
 * <p>The future of a read that succeeds completes when the data is in pinned memory; the copy from
 * there is the stream's. One of a write completes when it is written. A transfer that fails, or is
 * cancelled, which {@code cancel} of the future asks for, completes with a {@link StorageException}
 * (of kind {@code CANCELLED}) when neither the storage nor the stream is at work in the buffer any
 * more: the stream has to come past it. It never holds up the stream.
 */
public final class StreamTransfers {
  private static final long OPENING = 4096;

  private final GpuStorage storage;
  private final StreamSlots slots;
  private final Set<StreamTransfer> underWay = new HashSet<>();
  private boolean closed;

  StreamTransfers(GpuStorage storage, Accelerator accelerator) {
    String name = storage.address().toString();
    GpuAccelerator gpu =
        accelerator
            .cuda()
            .orElseThrow(
                () ->
                    new StorageException(
                        Kind.UNSUPPORTED,
                        name,
                        -1,
                        -1,
                        accelerator.name() + " has no streams; use readAsync and writeAsync",
                        null));
    this.storage = storage;
    slots = new StreamSlots(gpu, name);
    try {
      open();
    } catch (RuntimeException e) {
      slots.close();
      throw e;
    }
  }

  /** Has the storage open its paths. */
  private void open() {
    StreamSlot slot = slots.take();
    try {
      storage.read(0, slot.memory(), 0, Math.min(storage.size(), OPENING));
    } catch (StorageException e) {
      // Whoever reads this will hear of it.
    } finally {
      slots.giveBack(slot);
    }
  }

  /**
   * Reads into a buffer when the stream comes to it. Work that is put into the stream afterwards
   * sees the data; if the future fails, it sees what happens to be there. Waits while all pieces
   * are with streams that do not move.
   *
   * @return completes when the data is in pinned memory: the copy from there is the stream's
   * @throws io.gpunvme.base.InvalidRequestException if the range leaves the storage or the buffer
   * @throws StorageException if it cannot be put into the stream, e.g. because that is being
   *     captured; nothing is at work in the buffer then
   */
  public CompletableFuture<Void> read(
      long offset, DeviceBuffer buffer, long bufferOffset, long length, CudaStream stream) {
    return begin(Direction.READ, new Range(offset, buffer, bufferOffset, length), stream);
  }

  /**
   * Writes what the buffer holds when the stream comes to it. Work that is put into the stream
   * afterwards may change the buffer. Waits while all pieces are taken.
   *
   * @return completes when it is written
   * @throws io.gpunvme.base.InvalidRequestException if the range leaves the storage or the buffer
   * @throws StorageException if the storage was opened to be read only, or it cannot be put into
   *     the stream; in the latter case a part of it may be written, and nothing is at work any more
   */
  public CompletableFuture<Void> write(
      long offset, DeviceBuffer buffer, long bufferOffset, long length, CudaStream stream) {
    return begin(Direction.WRITE, new Range(offset, buffer, bufferOffset, length), stream);
  }

  private StreamTransfer begin(Direction direction, Range range, CudaStream stream) {
    PathCall call = storage.call(direction, List.of(range));
    requireNoCapture(call, range, stream);
    StreamTransfer transfer =
        new StreamTransfer(storage, slots, call, direction, range, stream, this::ended);
    synchronized (this) {
      if (closed) {
        throw new StorageClosedException(storage.address().toString());
      }
      underWay.add(transfer);
    }
    transfer.begin();
    return transfer;
  }

  /** A graph would wait for a turn of a gate, and copy memory, that are others' when it runs. */
  private static void requireNoCapture(PathCall call, Range range, CudaStream stream) {
    boolean capturing;
    try {
      capturing = stream.isCapturing();
    } catch (RuntimeException e) {
      throw StorageFailures.of(e, call.source(), range.offset(), range.length());
    }
    if (capturing) {
      throw new StorageException(
          Kind.UNSUPPORTED,
          call.source(),
          range.offset(),
          range.length(),
          "the stream is being captured into a graph, and a graph cannot have transfers of a"
              + " storage; submit this before the capture begins or after it has ended",
          null);
    }
  }

  private synchronized void ended(StreamTransfer transfer) {
    underWay.remove(transfer);
    notifyAll();
  }

  /**
   * Starts no transfer any more, cancels those under way and waits for them and for the streams to
   * use what was read. Idempotent.
   */
  void close() {
    slots.refuse();
    List<StreamTransfer> all;
    synchronized (this) {
      closed = true;
      all = List.copyOf(underWay);
    }
    all.forEach(transfer -> transfer.cancel(false));
    awaitAll();
    slots.close();
  }

  private synchronized void awaitAll() {
    boolean interrupted = false;
    while (!underWay.isEmpty()) {
      try {
        wait();
      } catch (InterruptedException e) {
        interrupted = true;
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }
}
