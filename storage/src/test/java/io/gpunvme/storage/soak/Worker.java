package io.gpunvme.storage.soak;

import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.storage.Batch;
import io.gpunvme.storage.GpuStorage;
import io.gpunvme.storage.TransferResult;
import io.gpunvme.storage.layer.Layer;
import io.gpunvme.storage.layer.LayerException;
import io.gpunvme.storage.layer.LayerLoader;
import io.gpunvme.storage.layer.LoadedLayer;
import io.gpunvme.storage.path.Range;
import io.gpunvme.storage.plan.Ranges;
import io.gpunvme.storage.soak.BuffersAtRest.Buffer;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** Uses one storage in every way, and looks at every byte. */
final class Worker extends Actor {
  static final String TRANSFERS = "transfers";
  static final String BYTES = "bytes checked";

  private static final int BUFFER = 1 << 20;
  private static final int LAYER = 48 << 10;
  private static final int LONGEST = 512 << 10;

  private final SoakedStorage storage;
  private final int number;
  private final OwnedRange owned;
  private final Supplier<Accelerator> accelerator;
  private final BuffersAtRest atRest;

  /** What buffers hold before a transfer. */
  private final byte[] before;

  private @Nullable Buffer buffer;
  private int failuresInTurn;
  private volatile boolean interrupted;

  /** A write that has failed and is done again until it succeeds. */
  private @Nullable Write undone;

  private record Write(int first, int count, long version) {}

  /** A part of a transfer. */
  private record Piece(long offset, int at, int length) {}

  /** A transfer of some pieces; says which of them succeeded. */
  private interface Reading {
    void of(GpuStorage open, DeviceBuffer memory, List<Piece> pieces, BitSet done) throws Exception;
  }

  Worker(
      SoakedStorage storage,
      int number,
      Supplier<Accelerator> accelerator,
      BuffersAtRest atRest,
      SplittableRandom random,
      Tally tally) {
    super(storage.name() + " " + number, random, tally);
    this.storage = storage;
    this.number = number;
    owned = storage.owned(number);
    this.accelerator = accelerator;
    this.atRest = atRest;
    before = Content.of(random.nextLong(), 0, 0, BUFFER);
  }

  synchronized void interrupt() {
    interrupted = true;
    interruptThread();
  }

  /** An interrupt that has not been noticed yet disturbs what comes now. */
  private synchronized void forgetInterrupt() {
    interrupted = Thread.currentThread().isInterrupted();
  }

  @Override
  void act() throws InterruptedException {
    Opening open = storage.current();
    if (open == null) {
      if (!succeeds("opens", () -> storage.renew(null, accelerator.get(), random))) {
        Thread.sleep(20);
      }
      return;
    }
    Buffer own = buffer;
    if (own == null) {
      if (!succeeds(
          "allocates", () -> buffer = new Buffer(accelerator.get().allocate(BUFFER), tally))) {
        Thread.sleep(1);
      }
      return;
    }
    forgetInterrupt();
    use(open, own);
    if (Thread.interrupted()) {
      tally.add("interrupts noticed");
    }
    if (failuresInTurn > (storage.isReplicated() ? 8 : 3)) {
      failuresInTurn = 0;
      succeeds("opens again", () -> storage.renew(open, accelerator.get(), random));
    }
  }

  @Override
  void end() {
    Buffer own = buffer;
    buffer = null;
    if (own != null) {
      own.close();
    }
  }

  private void use(Opening open, Buffer own) throws InterruptedException {
    switch (random.nextInt(16)) {
      case 0, 1, 2, 3 -> read(open, own, "reads", one(), Worker::readOne);
      case 4, 5 -> read(open, own, "reads many", slots(32, 8 << 10), Worker::readMany);
      case 6 -> read(open, own, "reads ranges", slots(32, 8 << 10), Worker::readRanges);
      case 7, 8 -> read(open, own, "reads later", slots(4, 128 << 10), this::readAsync);
      case 9, 10 -> read(open, own, "batch", slots(16, 32 << 10), this::readBatch);
      case 11 -> layers(open);
      case 12 -> {
        succeeds("registers", () -> open.storage().register(own.memory()));
        read(open, own, "reads", one(), Worker::readOne);
        succeeds("deregisters", () -> open.storage().deregister(own.memory()));
      }
      default -> write(open, own);
    }
  }

  // ---- reads

  private List<Piece> one() {
    int length = between(1, LONGEST);
    return List.of(
        new Piece(
            random.nextInt(SoakedStorage.SIZE - length), random.nextInt(BUFFER - length), length));
  }

  private List<Piece> slots(int count, int most) {
    int slot = BUFFER / count;
    List<Piece> pieces = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      int length = between(1, Math.min(most, slot - 1));
      pieces.add(
          new Piece(
              random.nextInt(SoakedStorage.SIZE - length),
              i * slot + random.nextInt(slot - length),
              length));
    }
    return pieces;
  }

  private void read(Opening open, Buffer own, String what, List<Piece> pieces, Reading reading)
      throws InterruptedException {
    own.fill(before);
    BitSet done = new BitSet();
    boolean whole = open.isWholeButForOne() && storage.isReplicated();
    boolean good = succeeds(what, () -> reading.of(open.storage(), own.memory(), pieces, done));
    String doubt = own.inDoubt();
    byte[] seen = own.bytes();
    verifyRead(what, pieces, done, seen);
    tally.add(TRANSFERS);
    boolean whollyDone = good && done.cardinality() == pieces.size();
    if (whollyDone) {
      open.used();
    }
    if (whole && open.isWholeButForOne() && !interrupted && !cancelled) {
      if (!whollyDone) {
        throw new AssertionError(
            "%s fails although a copy is left: %s".formatted(this, lastFailure()), lastFailure());
      }
      if (open.isDisturbed()) {
        tally.add("reads past a disturbed copy");
      }
    }
    cancelled = false;
    settle(what, own, whollyDone, doubt, seen);
  }

  private boolean cancelled;

  private void verifyRead(String what, List<Piece> pieces, BitSet done, byte[] seen) {
    byte[] rest = before.clone();
    for (int i = 0; i < pieces.size(); i++) {
      Piece p = pieces.get(i);
      Allowed allowed = storage.allowed(number, p.offset(), p.length(), seen, p.at());
      if (!done.get(i)) {
        allowed.put(0, Arrays.copyOfRange(before, p.at(), p.at() + p.length()), true);
      }
      int wrong = allowed.mismatch(seen, p.at());
      if (wrong >= 0) {
        throw new AssertionError(
            "%s: byte %d of %s is wrong (%s): %s"
                .formatted(
                    this,
                    wrong,
                    p,
                    done.get(i) ? what : what + " failed",
                    storage.origin(seen, p.at() + wrong)));
      }
      System.arraycopy(seen, p.at(), rest, p.at(), p.length());
    }
    int outside = Arrays.mismatch(rest, seen);
    if (outside >= 0) {
      throw new AssertionError(
          "%s: byte %d is outside of what was read, and changed".formatted(this, outside));
    }
    tally.add(BYTES, seen.length);
  }

  /** What becomes of the buffer. */
  private void settle(String what, Buffer own, boolean good, @Nullable String doubt, byte[] seen) {
    failuresInTurn = good ? 0 : failuresInTurn + 1;
    if (doubt != null) {
      tally.add(good ? "in doubt though read" : "in doubt");
      atRest.add(own, toString(), null);
      buffer = null;
    } else if (!good && atRest.hasRoom()) {
      atRest.add(own, toString(), seen);
      buffer = null;
    }
  }

  private static void readOne(GpuStorage open, DeviceBuffer memory, List<Piece> all, BitSet done) {
    Piece p = all.getFirst();
    open.read(p.offset(), memory, p.at(), p.length());
    done.set(0);
  }

  private static List<Range> ranges(List<Piece> pieces, DeviceBuffer memory) {
    return pieces.stream().map(p -> new Range(p.offset(), memory, p.at(), p.length())).toList();
  }

  private static void readMany(
      GpuStorage open, DeviceBuffer memory, List<Piece> pieces, BitSet done) {
    open.read(ranges(pieces, memory));
    done.set(0, pieces.size());
  }

  private static void readRanges(
      GpuStorage open, DeviceBuffer memory, List<Piece> pieces, BitSet done) {
    Ranges.Builder all = Ranges.builder();
    pieces.forEach(p -> all.add(p.offset(), p.length(), 0, p.at()));
    open.read(all.build(), List.of(memory));
    done.set(0, pieces.size());
  }

  private void readAsync(GpuStorage open, DeviceBuffer memory, List<Piece> pieces, BitSet done)
      throws Exception {
    List<CompletableFuture<TransferResult>> all = new ArrayList<>();
    Throwable failure = null;
    try {
      for (Piece p : pieces) {
        all.add(open.readAsync(p.offset(), memory, p.at(), p.length()));
      }
    } catch (RuntimeException | Error e) {
      failure = e;
    }
    if (!all.isEmpty() && oneIn(3)) {
      all.get(random.nextInt(all.size())).cancel(true);
      cancelled = true;
      tally.add("cancels");
    }
    for (int i = 0; i < all.size(); i++) {
      Throwable e = outcome(all.get(i));
      done.set(i, e == null);
      failure = failure == null ? e : failure;
    }
    rethrow(failure);
  }

  /** Of a transfer that is waited for, whoever interrupts. */
  private @Nullable Throwable outcome(CompletableFuture<TransferResult> transfer) {
    boolean again = true;
    Throwable failure = null;
    while (again) {
      again = false;
      try {
        transfer.get();
      } catch (InterruptedException e) {
        again = true;
        tally.add("interrupts noticed");
      } catch (ExecutionException e) {
        failure = e.getCause();
      }
    }
    return failure;
  }

  private static void rethrow(@Nullable Throwable e) throws Exception {
    if (e instanceof Exception exception) {
      throw exception;
    }
    if (e instanceof Error error) {
      throw error;
    }
  }

  private void readBatch(GpuStorage open, DeviceBuffer memory, List<Piece> pieces, BitSet done)
      throws Exception {
    RuntimeException failure = null;
    try (Batch batch = open.batch()) {
      for (Piece p : pieces) {
        batch.read(p.offset(), memory, p.at(), p.length());
      }
      if (oneIn(8)) {
        batch.cancel();
        cancelled = true;
        tally.add("cancels");
      }
      while (batch.outstanding() > 0) {
        for (Batch.Outcome one : poll(batch)) {
          done.set((int) one.id(), one.ok());
          failure = one.ok() ? failure : one.failure();
        }
      }
    }
    rethrow(failure);
  }

  private List<Batch.Outcome> poll(Batch batch) {
    try {
      return batch.poll(1, Duration.ofSeconds(10));
    } catch (InterruptedException e) {
      tally.add("interrupts noticed");
      return List.of();
    }
  }

  private void layers(Opening open) throws InterruptedException {
    succeeds(
        "layers",
        () -> {
          LayerLoader loader = LayerLoader.open(open.storage(), LAYER, 3);
          try {
            layers(loader);
          } finally {
            untilItSucceeds("close layers", tally, loader::close);
          }
        });
  }

  private void layers(LayerLoader loader) {
    List<Layer> all = new ArrayList<>();
    for (int i = 0; i < 8; i++) {
      int length = between(1, LAYER);
      all.add(new Layer("l" + i, random.nextInt(SoakedStorage.SIZE - length), length));
    }
    loader.prefetch(all);
    LayerException failure = null;
    for (Layer layer : all) {
      try (LoadedLayer loaded = loader.next()) {
        loaded.await();
        byte[] seen = new byte[(int) layer.bytes()];
        look(() -> loaded.buffer().copyToHost(loaded.bufferOffset(), MemorySegment.ofArray(seen)));
        int wrong = storage.allowed(number, layer.offset(), seen.length, seen, 0).mismatch(seen, 0);
        if (wrong >= 0) {
          throw new AssertionError(
              "%s: byte %d of %s is wrong: %s"
                  .formatted(this, wrong, layer, storage.origin(seen, wrong)));
        }
        tally.add(BYTES, seen.length);
        tally.add(TRANSFERS);
      } catch (LayerException e) {
        failure = e;
      }
    }
    if (failure != null) {
      throw failure;
    }
  }

  // ---- writes

  private void write(Opening open, Buffer own) throws InterruptedException {
    Write again = undone;
    if (again == null) {
      int count = between(1, Math.min(owned.count(), BUFFER / OwnedRange.bytes(1)) - 1);
      again = new Write(random.nextInt(owned.count() - count), count, owned.newVersion());
    }
    Write write = again;
    byte[] bytes = owned.content(write.first(), write.count(), write.version());
    byte[] filled = before.clone();
    int at = random.nextInt(BUFFER - bytes.length);
    System.arraycopy(bytes, 0, filled, at, bytes.length);
    own.fill(filled);
    long offset = owned.offset(write.first());
    boolean later = oneIn(3);
    boolean good =
        succeeds(
            "writes",
            () -> {
              if (later) {
                rethrow(outcome(open.storage().writeAsync(offset, own.memory(), at, bytes.length)));
              } else {
                open.storage().write(offset, own.memory(), at, bytes.length);
              }
            });
    if (good) {
      owned.written(write.first(), write.count(), write.version());
      undone = null;
    } else {
      owned.mayBeWritten(write.first(), write.count(), write.version());
      undone = write;
    }
    String doubt = own.inDoubt();
    byte[] seen = own.bytes();
    int changed = Arrays.mismatch(filled, seen);
    if (changed >= 0) {
      throw new AssertionError("%s: byte %d was changed by a write".formatted(this, changed));
    }
    tally.add(TRANSFERS);
    settle("writes", own, good, doubt, seen);
    if (good && buffer != null && oneIn(2)) {
      succeeds("flushes", () -> open.storage().flush());
      Piece back = new Piece(offset, at, bytes.length);
      read(open, own, "reads back", List.of(back), Worker::readOne);
    }
  }
}
