package io.gpunvme.storage;

import io.gpunvme.base.CloseAll;
import io.gpunvme.base.Uninterrupted;
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
 * <p>Data of a read goes to pinned memory first, while the stream's earlier work goes on. The
 * stream itself gets only a wait for a word in that memory and a copy. For a write, the stream
 * copies the data to pinned memory, and it is written from there.
 *
 * <p>A read or write of bytes that an earlier call writes, in whichever stream and for whichever
 * GPU, begins when those are written, thus when that call's stream has come to it. Streams wait for
 * nothing else of each other. So what lets a stream come to its write (a word, a host function)
 * must not lie in another stream behind a transfer of the same bytes.
 *
 * <p>All transfers of a storage share 32 MiB of that memory, in 8 pieces of up to 4 MiB; what is
 * staged on its way to an SSD takes more ({@link GpuStorage#takeStaging}). A read holds a piece
 * until the stream has copied it, a write until it is written. A call that finds no free piece
 * waits for one. A transfer of more than 32 MiB waits until the stream has come to its first
 * pieces; a short one waits if streams that do not move hold all 8 pieces. So if your thread lets a
 * stream go on, by an event, a word or a host function, do that before the call, or have no more
 * than 8 pieces in streams that wait for your thread, reads behind their writes included. Events
 * that are recorded in other streams before the call are safe.
 *
 * <p>The future of a successful read completes when the data is in pinned memory; the stream then
 * copies it. The future of a write completes when the data is written. {@code cancel} of the future
 * asks the transfer to end. A transfer that fails or is cancelled (kind {@code CANCELLED})
 * completes with a {@link StorageException} once neither the storage nor the stream uses the buffer
 * any more: the stream has come past the transfer. A failure never holds up the stream.
 */
public final class StreamTransfers {
  /** Short reads may go another way than long ones. */
  private static final long SHORT = 4096;

  private final GpuStorage storage;
  private final StreamSlots slots;
  private final WritesInStreams writes;
  private final Set<StreamTransfer> underWay = new HashSet<>();
  private boolean closed;

  /**
   * @param writes of all that write to the same bytes
   */
  StreamTransfers(GpuStorage storage, Accelerator accelerator, WritesInStreams writes) {
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
    this.writes = writes;
    slots = new StreamSlots(gpu, name);
    try {
      open();
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, slots::close);
      throw e;
    }
  }

  /** Has the storage open its paths, and take what they may need while streams wait for them. */
  private void open() {
    StreamSlot slot = slots.take();
    try {
      attempt(() -> storage.read(0, slot.memory(), 0, Math.min(storage.size(), StreamSlots.BYTES)));
      attempt(() -> storage.read(0, slot.memory(), 0, Math.min(storage.size(), SHORT)));
      attempt(storage::takeStaging);
    } finally {
      slots.giveBack(slot);
    }
  }

  private static void attempt(Runnable step) {
    try {
      step.run();
    } catch (StorageException e) {
      // Who transfers what this needs will hear of it.
    }
  }

  /**
   * Reads into a buffer when the stream comes to it. Later work in the stream sees the data; if the
   * future fails, it sees undefined data. Waits while streams that do not move hold all pieces.
   *
   * @return completes when the data is in pinned memory; the stream then copies it
   * @throws io.gpunvme.base.InvalidRequestException if the range is not inside the storage or the
   *     buffer
   * @throws StorageException if it cannot be put into the stream, e.g. because the stream is being
   *     captured; nothing uses the buffer then
   */
  public CompletableFuture<Void> read(
      long offset, DeviceBuffer buffer, long bufferOffset, long length, CudaStream stream) {
    return begin(Direction.READ, new Range(offset, buffer, bufferOffset, length), stream);
  }

  /**
   * Writes the data that the buffer holds when the stream comes to it. Later work in the stream may
   * change the buffer. Waits while all pieces are taken.
   *
   * @return completes when the data is written
   * @throws io.gpunvme.base.InvalidRequestException if the range is not inside the storage or the
   *     buffer
   * @throws StorageException if the storage is open for reading only, or the write cannot be put
   *     into the stream; in the latter case a part of it may be written, and nothing is running any
   *     more
   */
  public CompletableFuture<Void> write(
      long offset, DeviceBuffer buffer, long bufferOffset, long length, CudaStream stream) {
    return begin(Direction.WRITE, new Range(offset, buffer, bufferOffset, length), stream);
  }

  private StreamTransfer begin(Direction direction, Range range, CudaStream stream) {
    PathCall call = storage.call(direction, List.of(range));
    requireNoCapture(call, range, stream);
    StreamTransfer transfer =
        new StreamTransfer(storage, slots, writes, call, direction, range, stream, this::ended);
    range.buffer().lease();
    CloseAll.orClose(() -> add(transfer), range.buffer()::release);
    transfer.begin();
    return transfer;
  }

  private synchronized boolean add(StreamTransfer transfer) {
    if (closed) {
      throw new StorageClosedException(storage.address().toString());
    }
    return underWay.add(transfer);
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
    synchronized (this) {
      Uninterrupted.await(this, underWay::isEmpty);
    }
    slots.close();
  }
}
