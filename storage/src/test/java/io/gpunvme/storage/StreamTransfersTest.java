package io.gpunvme.storage;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.cuda.CudaException;
import io.gpunvme.cuda.CudaStream;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.storage.path.Range;
import io.gpunvme.storage.path.StorageException;
import io.gpunvme.storage.path.StorageException.Kind;
import io.gpunvme.storage.path.cufile.FakeGpuDirect;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Who waits for whom, and what is left behind, with a stand-in for the driver whose streams do
 * their work at once; what streams see of the data is for a GPU.
 */
@Timeout(120)
class StreamTransfersTest {
  private static final int PIECE = 4 << 20;
  private static final int SIZE = 3 * PIECE;
  private static final int CALLS_OF_A_PIECE = 3;

  /** More than there are slots. */
  private static final int OFTEN = 20;

  private final FakeGpuDirect fake = FakeGpuDirect.fresh();
  private final GpuAccelerator gpu = fake.accelerator();
  private final DeviceBuffer buffer = gpu.allocate(SIZE);
  private final CudaStream stream = gpu.context().stream();

  /** Reads and writes that the storage has begun, and ended. */
  private final Semaphore begun = new Semaphore(0);

  private final Semaphore allowed = new Semaphore(0);
  private final AtomicInteger working = new AtomicInteger();

  private final GpuStorage storage =
      new GpuStorage(
          StorageAddress.of("held"),
          gpu,
          StorageOptions.defaults().withWrite(true),
          new HeldStorage(new byte[SIZE], this::hold));

  private final StreamTransfers streams;

  StreamTransfersTest() {
    allowed.release(2);
    streams = storage.streams();
    assertThat(begun.tryAcquire(2)).as("opened by a long read and a short one").isTrue();
  }

  /** The ways to the storage, each in as many pieces as fit. */
  private enum Way {
    READ {
      @Override
      CompletableFuture<Void> start(StreamTransfersTest t, long offset, long at, long n) {
        return t.streams.read(offset, t.buffer, at, n, t.stream);
      }
    },
    WRITE {
      @Override
      CompletableFuture<Void> start(StreamTransfersTest t, long offset, long at, long n) {
        return t.streams.write(offset, t.buffer, at, n, t.stream);
      }
    };

    abstract CompletableFuture<Void> start(StreamTransfersTest t, long offset, long at, long n);

    CompletableFuture<Void> start(StreamTransfersTest t) {
      return start(t, 0, 0, SIZE);
    }
  }

  private void hold(Range range) {
    working.incrementAndGet();
    begun.release();
    try {
      allowed.acquireUninterruptibly();
      if (range.length() == 1) {
        throw new StorageException(Kind.IO, "held", range.offset(), 1, "no", null);
      }
    } finally {
      working.decrementAndGet();
    }
  }

  private void allowAll() {
    allowed.release(1 << 20);
  }

  @AfterEach
  void close() {
    fake.blockCuda("");
    allowAll();
    storage.close();
    stream.close();
    buffer.close();
    gpu.close();
    fake.assertClean();
  }

  private int inTheStream() {
    return fake.callsCuda("cuStreamWaitValue32_v2")
        + fake.callsCuda("cuMemcpyHtoDAsync_v2")
        + fake.callsCuda("cuMemcpyDtoHAsync_v2")
        + fake.callsCuda("cuEventRecord");
  }

  private static void await(CompletableFuture<Void> future)
      throws ExecutionException, InterruptedException, TimeoutException {
    future.get(60, TimeUnit.SECONDS);
  }

  private static void assertFails(CompletableFuture<Void> future, Kind kind) {
    assertThatExceptionOfType(ExecutionException.class)
        .isThrownBy(() -> await(future))
        .withCauseInstanceOf(StorageException.class)
        .satisfies(e -> assertThat(((StorageException) e.getCause()).kind()).isEqualTo(kind));
  }

  private static void assertRefused(ThrowingCallable call, Kind kind) {
    assertThatExceptionOfType(StorageException.class)
        .isThrownBy(call)
        .satisfies(e -> assertThat(e.kind()).isEqualTo(kind));
  }

  /** All slots are there: each of these takes one and keeps it. */
  private void assertNoSlotIsLost() throws Exception {
    int before = begun.availablePermits();
    allowed.drainPermits();
    List<CompletableFuture<Void>> all = new ArrayList<>();
    for (int i = 0; i < StreamSlots.COUNT; i++) {
      all.add(streams.read(i, buffer, 0, 512, stream));
    }
    begun.acquire(before);
    allowAll();
    for (CompletableFuture<Void> one : all) {
      await(one);
    }
  }

  // ---- cancelling

  @Test
  void aCancelledReadIsOverWhenStorageAndStreamAre() throws Exception {
    CompletableFuture<Void> read = Way.READ.start(this);
    begun.acquire();
    fake.blockCuda("cuEventSynchronize");
    assertThat(read.cancel(true)).isTrue();
    assertThat(read).as("the storage is at work").isNotDone();
    allowAll();
    fake.awaitBlockedCuda(1);
    assertThat(working).hasValue(0);
    assertThat(read).as("the stream may be at work").isNotDone();
    fake.blockCuda("");
    assertFails(read, Kind.CANCELLED);
    assertThat(read.cancel(true)).isFalse();
    assertNoSlotIsLost();
  }

  @ParameterizedTest
  @EnumSource
  void aBufferThatIsClosedMeanwhileStaysUntilItIsOver(Way way) throws Exception {
    CompletableFuture<Void> transfer = way.start(this);
    begun.acquire();
    int before = fake.callsCuda("cuMemFree_v2");
    buffer.close();
    assertThat(fake.callsCuda("cuMemFree_v2")).as("freed under the stream").isEqualTo(before);
    allowAll();
    await(transfer);
    // Whoever ended it tells of it before it lets go.
    streams.close();
    assertThat(fake.callsCuda("cuMemFree_v2")).isEqualTo(before + 1);
  }

  @Test
  void aWriteThatIsCancelledBeforeItsTurnLeavesTheStorageAlone() throws Exception {
    fake.blockCuda("cuEventSynchronize");
    CompletableFuture<Void> write = Way.WRITE.start(this);
    fake.awaitBlockedCuda(SIZE / PIECE);
    assertThat(write.cancel(true)).isTrue();
    assertThat(write).as("the stream may be at work").isNotDone();
    fake.blockCuda("");
    assertFails(write, Kind.CANCELLED);
    assertThat(begun.tryAcquire()).as("something was written").isFalse();
    assertNoSlotIsLost();
  }

  @Test
  void aCancelledWriteIsOverWhenTheStorageIs() throws Exception {
    CompletableFuture<Void> write = Way.WRITE.start(this);
    begun.acquire(SIZE / PIECE);
    assertThat(write.cancel(true)).isTrue();
    allowed.release(SIZE / PIECE - 1);
    assertThat(write).isNotDone();
    allowAll();
    assertFails(write, Kind.CANCELLED);
    assertThat(working).hasValue(0);
    assertNoSlotIsLost();
  }

  @Test
  void aFailedReadIsOverWhenTheStreamIsPastIt() throws Exception {
    CompletableFuture<Void> read = streams.read(5, buffer, 0, PIECE + 1, stream);
    fake.blockCuda("cuEventSynchronize");
    allowAll();
    fake.awaitBlockedCuda(1);
    assertThat(read).isNotDone();
    fake.blockCuda("");
    assertFails(read, Kind.IO);
    assertNoSlotIsLost();
  }

  @ParameterizedTest
  @EnumSource
  void whatSucceedsDoesNotWaitForTheStreamToo(Way way) throws Exception {
    allowAll();
    CompletableFuture<Void> done = way.start(this);
    await(done);
    assertThat(done.cancel(true)).isFalse();
    await(way.start(this, SIZE, 0, 0));
    assertNoSlotIsLost();
  }

  @ParameterizedTest
  @EnumSource
  void closingWaits(Way way) throws Exception {
    CompletableFuture<Void> transfer = way.start(this);
    begun.acquire();
    Thread closing = Thread.ofPlatform().start(storage::close);
    // It waits for what is begun; pieces that are not find the storage closed.
    while (closing.getState() == Thread.State.RUNNABLE && closing.isAlive()) {
      Thread.onSpinWait();
    }
    assertThat(closing.isAlive()).isTrue();
    allowAll();
    closing.join();
    assertThat(transfer).isDone();
    assertThat(working).hasValue(0);
    if (transfer.isCompletedExceptionally()) {
      assertThat(transfer.exceptionNow())
          .isInstanceOfAny(StorageException.class, IllegalStateException.class);
    }
    assertThatExceptionOfType(IllegalStateException.class)
        .isThrownBy(() -> way.start(this))
        .withMessage("held is closed");
  }

  // ---- the same bytes

  /** Of the same storage, or of what is open for another accelerator too. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void whatIsReadBehindAWriteIsReadWhenItIsWritten(boolean elsewhere) throws Exception {
    if (elsewhere) {
      allowed.release(2);
    }
    StreamTransfers readers = elsewhere ? storage.on(gpu).streams() : streams;
    begun.drainPermits();
    fake.blockCuda("cuEventSynchronize");
    CompletableFuture<Void> write = streams.write(0, buffer, 0, 512, stream);
    CompletableFuture<Void> read = readers.read(511, buffer, 0, 100, stream);
    CompletableFuture<Void> other = readers.read(512, buffer, 0, 100, stream);
    begun.acquire();
    allowed.release();
    await(other);
    assertThat(begun.tryAcquire()).as("the stream has not come to the write").isFalse();
    fake.blockCuda("");
    begun.acquire();
    assertThat(begun.tryAcquire()).as("it is being written").isFalse();
    allowed.release();
    await(write);
    begun.acquire();
    allowed.release();
    await(read);
    assertThat(begun.tryAcquire()).isFalse();
  }

  @Test
  void twoWritesKeepTheirOrder() throws Exception {
    CompletableFuture<Void> first = streams.write(0, buffer, 0, 512, stream);
    CompletableFuture<Void> second = streams.write(0, buffer, 0, 512, stream);
    begun.acquire();
    assertThat(begun.tryAcquire(50, TimeUnit.MILLISECONDS)).as("beside the first").isFalse();
    allowed.release();
    await(first);
    begun.acquire();
    allowed.release();
    await(second);
  }

  /** What it waits for may be another stream's, which does not come to its write. */
  @ParameterizedTest
  @EnumSource
  void whatWaitsForAWriteCanBeCancelled(Way way) throws Exception {
    allowAll();
    fake.blockCuda("cuEventSynchronize");
    CompletableFuture<Void> write = streams.write(0, buffer, 0, 512, stream);
    fake.awaitBlockedCuda(1);
    CompletableFuture<Void> behind = way.start(this, 0, 0, 512);
    assertThat(behind.cancel(true)).isTrue();
    // It waits for its own stream, and the storage has done nothing for it.
    fake.awaitBlockedCuda(2);
    fake.blockCuda("");
    assertFails(behind, Kind.CANCELLED);
    await(write);
    begun.drainPermits();
    assertNoSlotIsLost();
  }

  // ---- refusals

  @ParameterizedTest
  @EnumSource
  void rangesOutsideAreRefusedBeforeAnythingIsPutIn(Way way) {
    int before = inTheStream();
    for (long[] range :
        new long[][] {
          {SIZE - 9, 0, 10}, {-1, 0, 10}, {SIZE + 1L, 0, 0}, {0, SIZE - 9, 10}, {0, -1, 10},
          {0, 0, -1}, {5, 0, SIZE}, {0, 5, SIZE}, {Long.MAX_VALUE, 0, 10}, {0, 0, Long.MAX_VALUE}
        }) {
      assertThatExceptionOfType(InvalidRequestException.class)
          .as("%d to %d, %d bytes", range[0], range[1], range[2])
          .isThrownBy(() -> way.start(this, range[0], range[1], range[2]));
    }
    assertThat(inTheStream()).isEqualTo(before);
    assertThat(begun.tryAcquire()).isFalse();
  }

  @Test
  void writingNeedsToBeAllowed() {
    allowAll();
    try (GpuStorage readOnly = HeldStorage.open(new byte[SIZE], gpu, this::hold)) {
      StreamTransfers own = readOnly.streams();
      int before = inTheStream();
      assertRefused(() -> own.write(0, buffer, 0, SIZE, stream), Kind.PERMISSION);
      assertThat(inTheStream()).isEqualTo(before);
    }
  }

  @ParameterizedTest
  @EnumSource
  void aStreamThatIsBeingCapturedIsRefused(Way way) throws Exception {
    int before = inTheStream();
    for (int status : new int[] {1, 2}) {
      fake.captureCuda(status);
      assertThatExceptionOfType(StorageException.class)
          .isThrownBy(() -> way.start(this))
          .withMessageContaining("the stream is being captured into a graph")
          .satisfies(e -> assertThat(e.kind()).isEqualTo(Kind.UNSUPPORTED));
    }
    fake.captureCuda(0);
    fake.failCuda("cuStreamIsCapturing", CudaException.INVALID_VALUE);
    assertRefused(() -> way.start(this), Kind.ACCELERATOR);
    assertThat(inTheStream()).isEqualTo(before);
    assertThat(begun.tryAcquire()).isFalse();
    assertNoSlotIsLost();
  }

  // ---- what the driver refuses

  /** In any call of any piece; as many times as it takes to lose all slots. */
  @ParameterizedTest
  @ValueSource(strings = {"cuStreamWaitValue32_v2", "cuMemcpyHtoDAsync_v2", "cuEventRecord"})
  void aReadThatCannotBePutInLeavesNothing(String call) throws Exception {
    assertLeavesNothing(Way.READ, call);
  }

  @ParameterizedTest
  @ValueSource(strings = {"cuMemcpyDtoHAsync_v2", "cuEventRecord"})
  void aWriteThatCannotBePutInLeavesNothing(String call) throws Exception {
    assertLeavesNothing(Way.WRITE, call);
  }

  private void assertLeavesNothing(Way way, String call) throws Exception {
    allowAll();
    for (int i = 0; i < OFTEN; i++) {
      int piece = 1 + i % (SIZE / PIECE);
      fake.failCuda(call, piece, CudaException.INVALID_VALUE);
      int waited = fake.callsCuda("cuStreamSynchronize");
      assertThatExceptionOfType(StorageException.class)
          .as("piece %d", piece)
          .isThrownBy(() -> way.start(this))
          .withMessageContaining(call.replace("_v2", ""))
          .satisfies(e -> assertThat(e.kind()).isEqualTo(Kind.ACCELERATOR));
      assertThat(working).as("at work in the storage").hasValue(0);
      boolean copies = piece > 1 || call.equals("cuEventRecord");
      assertThat(fake.callsCuda("cuStreamSynchronize") > waited)
          .as("waits for the copies of piece %d and before", piece)
          .isEqualTo(copies);
    }
    begun.drainPermits();
    assertNoSlotIsLost();
  }

  /** The caller gets no future, so it may not go on before the pieces that were put in are over. */
  @Test
  void piecesBeforeOneThatCannotBePutInAreWaitedFor() throws Exception {
    fake.failCuda("cuStreamWaitValue32_v2", 2, CudaException.INVALID_VALUE);
    CompletableFuture<CompletableFuture<Void>> call =
        CompletableFuture.supplyAsync(() -> Way.READ.start(this));
    begun.acquire(2);
    assertThat(call).isNotDone();
    allowed.release();
    assertThat(call).isNotDone();
    allowAll();
    assertThatExceptionOfType(ExecutionException.class)
        .isThrownBy(() -> call.get(60, TimeUnit.SECONDS))
        .withCauseInstanceOf(StorageException.class);
    assertThat(working).hasValue(0);
    assertNoSlotIsLost();
  }

  // ---- slots

  /** A stream that does not move keeps its slot, and no more. */
  @Test
  void aCallTakesAnySlotThatIsFree() throws Exception {
    allowAll();
    fake.blockCuda("cuEventSynchronize");
    for (int i = 0; i < OFTEN; i++) {
      fake.failCuda("cuEventQuery", CudaException.NOT_READY);
      await(streams.read(i, buffer, 0, 512, stream));
    }
    // Only one is free, and asked again until the stream is past it.
    allowed.drainPermits();
    List<CompletableFuture<Void>> held = new ArrayList<>();
    for (int i = 1; i < StreamSlots.COUNT; i++) {
      held.add(streams.read(i, buffer, 0, 512, stream));
    }
    int asked = fake.callsCuda("cuEventQuery");
    fake.failCuda("cuEventQuery", CudaException.NOT_READY);
    held.add(streams.read(0, buffer, 0, 512, stream));
    assertThat(fake.callsCuda("cuEventQuery")).isEqualTo(asked + 2);
    allowAll();
    for (CompletableFuture<Void> one : held) {
      await(one);
    }
  }

  @Test
  void aTransferThatIsLongerThanAllSlotsTakesTurns() throws Exception {
    allowAll();
    for (Way way : Way.values()) {
      int before = inTheStream();
      long n = (long) PIECE * (StreamSlots.COUNT + 2);
      try (DeviceBuffer large = gpu.allocate(n);
          GpuStorage all =
              new GpuStorage(
                  StorageAddress.of("held"),
                  gpu,
                  StorageOptions.defaults().withWrite(true),
                  new HeldStorage(new byte[(int) n], this::hold))) {
        await(
            way == Way.READ
                ? all.streams().read(0, large, 0, n, stream)
                : all.streams().write(0, large, 0, n, stream));
        int each = way == Way.READ ? CALLS_OF_A_PIECE : CALLS_OF_A_PIECE - 1;
        assertThat(inTheStream() - before).isGreaterThanOrEqualTo(each * (StreamSlots.COUNT + 2));
      }
    }
  }
}
