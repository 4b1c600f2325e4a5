package io.gpunvme.core.storage;

import io.gpunvme.core.accel.Accelerator;
import io.gpunvme.core.accel.DeviceBuffer;
import io.gpunvme.core.accel.GpuAccelerator;
import io.gpunvme.core.path.Failures;
import io.gpunvme.core.path.Range;
import io.gpunvme.core.path.StorageException;
import io.gpunvme.core.path.StorageException.Kind;
import io.gpunvme.cuda.CudaEvent;
import io.gpunvme.cuda.CudaStream;
import io.gpunvme.nvme.InvalidRequestException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.CompletableFuture;

/**
 * Transfers in the order of CUDA streams. Safe for all threads.
 *
 * <p>Data of a read goes to pinned memory first, while the stream's earlier work goes on. What is
 * put into the stream is a wait for that memory's word and a copy: nothing that would need another
 * stream to get its turn, so streams cannot wait for each other in a circle. A write is copied to
 * pinned memory by the stream and goes on from there.
 */
public final class StreamTransfers {
  /** Bytes of pinned memory per piece of a transfer. */
  private static final long PIECE = 4 << 20;

  private static final long OPENING = 4096;

  /** Pieces at a time; a call that needs more waits for the stream to use earlier ones. */
  private static final int MOST = 8;

  private final GpuStorage storage;
  private final GpuAccelerator accelerator;
  private final Deque<Slot> free = new ArrayDeque<>();
  private boolean closed;

  StreamTransfers(GpuStorage storage, Accelerator accelerator) {
    if (!(accelerator instanceof GpuAccelerator gpu)) {
      throw new StorageException(
          Kind.UNSUPPORTED,
          storage.address().toString(),
          -1,
          -1,
          accelerator.name() + " has no streams; use readAsync and writeAsync",
          null);
    }
    this.storage = storage;
    this.accelerator = gpu;
    // All of it before any stream waits: the driver may wait for that stream to allocate more.
    try {
      for (int i = 0; i < MOST; i++) {
        free.add(new Slot());
      }
      open(free.getFirst());
    } catch (RuntimeException e) {
      free.forEach(Slot::close);
      throw e;
    }
  }

  /** Has the storage open its paths. */
  private void open(Slot slot) {
    try {
      storage.read(0, slot.memory, 0, Math.min(storage.size(), OPENING));
    } catch (StorageException e) {
      // Whoever reads this will hear of it.
    }
  }

  /** Pinned memory, the word that tells that it is filled, and the event after its use. */
  private final class Slot implements AutoCloseable {
    private final DeviceBuffer memory = accelerator.allocatePinned(PIECE);
    private final DeviceBuffer word = accelerator.allocatePinned(StreamGate.BYTES);
    private final StreamGate gate = new StreamGate(word, 0);
    private final CudaEvent used = accelerator.context().event();
    private int turn;

    /** Lets the stream wait until {@link #open} is called for this turn. */
    void await(CudaStream stream) {
      turn++;
      gate.await(stream, turn);
    }

    void open() {
      gate.open(turn);
    }

    @Override
    public void close() {
      used.close();
      word.close();
      memory.close();
    }
  }

  /**
   * Reads into a buffer when the stream comes to it. Work that is put into the stream afterwards
   * sees the data; if the future fails, it sees what happens to be there.
   *
   * @return completes when the data is in pinned memory: the copy from there is the stream's
   */
  public CompletableFuture<Void> read(
      long offset, DeviceBuffer buffer, long bufferOffset, long length, CudaStream stream) {
    requireInside(buffer, bufferOffset, length);
    List<CompletableFuture<?>> all = new ArrayList<>();
    for (long done = 0; done < length; done += PIECE) {
      long n = Math.min(PIECE, length - done);
      all.add(piece(offset + done, buffer, bufferOffset + done, n, stream));
    }
    return allOf(all);
  }

  private static CompletableFuture<Void> allOf(List<CompletableFuture<?>> all) {
    return CompletableFuture.allOf(all.toArray(CompletableFuture[]::new));
  }

  private CompletableFuture<TransferResult> piece(
      long offset, DeviceBuffer buffer, long bufferOffset, long n, CudaStream stream) {
    Slot slot = take();
    CompletableFuture<TransferResult> read;
    try {
      read = storage.readAsync(List.of(new Range(offset, slot.memory, 0, n)));
    } catch (RuntimeException e) {
      giveBack(slot);
      throw e;
    }
    slot.await(stream);
    stream.copyToDeviceAsync(
        buffer.deviceAddress() + bufferOffset, slot.memory.segment().asSlice(0, n));
    stream.record(slot.used);
    // Opened whatever became of the read: a stream that waits for ever would be worse.
    return read.whenComplete(
        (_, _) -> {
          slot.open();
          giveBack(slot);
        });
  }

  /**
   * Writes what the buffer holds when the stream comes to it. Work that is put into the stream
   * afterwards may change the buffer.
   *
   * @return completes when it is written
   */
  public CompletableFuture<Void> write(
      long offset, DeviceBuffer buffer, long bufferOffset, long length, CudaStream stream) {
    requireInside(buffer, bufferOffset, length);
    List<CompletableFuture<?>> all = new ArrayList<>();
    for (long done = 0; done < length; done += PIECE) {
      long n = Math.min(PIECE, length - done);
      Slot slot = take();
      stream.copyToHostAsync(
          slot.memory.segment().asSlice(0, n), buffer.deviceAddress() + bufferOffset + done);
      stream.record(slot.used);
      long at = offset + done;
      CompletableFuture<Void> part =
          CompletableFuture.runAsync(() -> store(slot, at, n), StreamTransfers::startThread);
      all.add(part.whenComplete((_, _) -> giveBack(slot)));
    }
    return allOf(all);
  }

  /** Threads that wait for a stream are no pool's: reads that the stream waits for need that. */
  private static void startThread(Runnable work) {
    Thread.ofPlatform().daemon().name("gpunvme-stream-write").start(work);
  }

  private void store(Slot slot, long offset, long n) {
    try {
      slot.used.synchronize();
    } catch (RuntimeException e) {
      throw Failures.of(e, storage.address().toString(), offset, n);
    }
    storage.write(offset, slot.memory, 0, n);
  }

  private static void requireInside(DeviceBuffer buffer, long offset, long length) {
    if (offset < 0 || length < 0 || length > buffer.size() - offset) {
      throw new InvalidRequestException(
          "%d bytes at %d leave the buffer of %d bytes".formatted(length, offset, buffer.size()));
    }
  }

  /** A slot whose last use by a stream is over; waits for one if all are in use. */
  private Slot take() {
    Slot slot = takeFree();
    slot.used.synchronize();
    return slot;
  }

  /** A free slot, best one whose event is over. */
  private synchronized Slot takeFree() {
    boolean interrupted = false;
    while (free.isEmpty() && !closed) {
      try {
        wait();
      } catch (InterruptedException e) {
        interrupted = true;
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
    if (closed) {
      throw new IllegalStateException(storage.address() + " is closed");
    }
    for (Slot slot : free) {
      if (slot.used.isDone()) {
        free.remove(slot);
        return slot;
      }
    }
    return free.removeFirst();
  }

  private void giveBack(Slot slot) {
    synchronized (this) {
      if (!closed) {
        free.addLast(slot);
        notifyAll();
        return;
      }
    }
    slot.used.synchronize();
    slot.close();
  }

  /** No transfer is started any more; waits for the streams to use what was read. */
  void close() {
    List<Slot> all;
    synchronized (this) {
      closed = true;
      all = List.copyOf(free);
      free.clear();
      notifyAll();
    }
    for (Slot slot : all) {
      slot.used.synchronize();
      slot.close();
    }
  }
}
