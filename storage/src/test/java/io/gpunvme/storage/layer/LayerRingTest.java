package io.gpunvme.storage.layer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.storage.GpuStorage;
import io.gpunvme.storage.layer.FakeStreams.FakeStream;
import io.gpunvme.storage.layer.LayerException.Reason;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** What streams see of layers, with threads for streams. */
@Timeout(300)
class LayerRingTest {
  private static final int SIZE = 1 << 20;
  private static final int LAYER = 16 << 10;

  @TempDir Path folder;

  private final Accelerator cpu = CpuAccelerator.open();
  private final FakeStreams streams = new FakeStreams();
  private final List<String> wrong = Collections.synchronizedList(new ArrayList<>());
  private Sources source;
  private GpuStorage storage;
  private DeviceBuffer memory;

  @BeforeEach
  void prepare() throws IOException {
    source = Sources.in(folder, SIZE);
  }

  @AfterEach
  void close() {
    if (storage != null) {
      storage.close();
    }
    cpu.close();
  }

  private LayerRing<FakeStream> ring(int depth, String more, LayerOptions options) {
    storage = GpuStorage.open(source.ssd(more), cpu);
    memory = cpu.allocate((long) depth * LAYER);
    return new LayerRing<>(
        new LayerSource(List.of(storage)), memory, LAYER, depth, streams, options);
  }

  private LayerRing<FakeStream> ring(int depth, String more) {
    return ring(depth, more, LayerOptions.defaults());
  }

  /** A stream's work with a layer. */
  private void use(FakeStream stream, Ticket<FakeStream> ticket) {
    long at = ticket.place().offset;
    stream.put(
        () -> {
          if (!source.isIn(memory, at, ticket.layer)) {
            wrong.add(ticket.layer.toString());
          }
        });
  }

  /** All of it is put in without anybody waiting: the slots' releases are far behind. */
  @Test
  void aStreamIsFilledAheadOfItsData() throws InterruptedException {
    CountDownLatch start = new CountDownLatch(1);
    try (LayerRing<FakeStream> ring = ring(3, "");
        FakeStream stream = new FakeStream()) {
      stream.put(() -> await(start));
      ring.append(Sources.equal(60, LAYER));
      for (int i = 0; i < 60; i++) {
        Ticket<FakeStream> ticket = ring.take(stream);
        use(stream, ticket);
        ring.release(ticket, stream);
      }
      start.countDown();
      assertThat(stream.ends()).isTrue();
      ring.awaitTaken();
      assertThat(wrong).isEmpty();
      assertThat(ring.stats().layers()).isEqualTo(60);
    }
    assertThat(streams.isClosed()).isTrue();
  }

  private static void await(CountDownLatch latch) {
    try {
      latch.await();
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }

  @Test
  void severalStreamsAndThreadsTakeTurns() throws InterruptedException {
    long seed = Long.getLong("gpunvme.seed", System.nanoTime());
    System.out.println("LayerRingTest: -Dgpunvme.seed=" + seed);
    SplittableRandom random = new SplittableRandom(seed);
    for (int round = 0; round < 20; round++) {
      int depth = 1 + random.nextInt(4);
      List<FakeStream> all = List.of(new FakeStream(), new FakeStream(), new FakeStream());
      LayerOptions options = LayerOptions.defaults().withReads(1 + random.nextInt(3));
      try (LayerRing<FakeStream> ring = ring(depth, "", options)) {
        for (int step = 0; step < 100; step++) {
          int bytes = random.nextInt(LAYER + 1);
          ring.append(List.of(new Layer("s" + step, random.nextInt(SIZE - bytes), bytes)));
          if (random.nextInt(20) == 0) {
            ring.cancel();
            continue;
          }
          FakeStream stream = all.get(random.nextInt(3));
          boolean byCpu = random.nextInt(4) == 0;
          Ticket<FakeStream> ticket = byCpu ? ring.take() : ring.take(stream);
          use(stream, ticket);
          ring.release(ticket, byCpu || random.nextBoolean() ? stream : null);
          ring.release(ticket, null);
        }
        for (FakeStream stream : all) {
          assertThat(stream.ends()).isTrue();
        }
        ring.awaitTaken();
        assertThat(wrong).isEmpty();
      }
      storage.close();
    }
  }

  @Test
  void aFailureIsToldAndHoldsUpNobody() throws InterruptedException {
    // In a late block of the third layer.
    String fault = ",faults=status=media/unrecovered-read dnr on read lba=90..91";
    try (LayerRing<FakeStream> ring = ring(2, fault);
        FakeStream stream = new FakeStream()) {
      CountDownLatch start = new CountDownLatch(1);
      stream.put(() -> await(start));
      ring.append(Sources.equal(8, LAYER));
      List<Ticket<FakeStream>> taken = new ArrayList<>();
      for (int i = 0; i < 8; i++) {
        Ticket<FakeStream> ticket = ring.take(stream);
        taken.add(ticket);
        if (i != 2) {
          use(stream, ticket);
        }
        ring.release(ticket, null);
      }
      start.countDown();
      assertThat(stream.ends()).isTrue();
      assertThat(wrong).isEmpty();
      assertThatExceptionOfType(LayerException.class)
          .isThrownBy(ring::awaitTaken)
          .satisfies(e -> assertThat(e.layer().name()).isEqualTo("l2"));
      ring.awaitTaken();
      assertThatExceptionOfType(LayerException.class).isThrownBy(() -> ring.await(taken.get(2)));
      ring.await(taken.get(3));
    }
  }

  @Test
  void aStreamDoesNotWaitForEver() throws InterruptedException {
    LayerOptions options = LayerOptions.defaults().withPatience(Duration.ofNanos(1));
    try (LayerRing<FakeStream> ring = ring(2, ",latency=100ms", options);
        FakeStream stream = new FakeStream()) {
      ring.append(Sources.equal(1, LAYER));
      Ticket<FakeStream> ticket = ring.take(stream);
      ring.release(ticket, null);
      assertThat(stream.ends()).isTrue();
      assertThatExceptionOfType(LayerException.class)
          .isThrownBy(() -> ring.await(ticket))
          .satisfies(e -> assertThat(e.reason()).isEqualTo(Reason.STALLED));
      ring.awaitTaken();
    }
  }

  @Test
  void closingLetsStreamsGoOn() throws InterruptedException {
    for (boolean released : new boolean[] {true, false}) {
      LayerRing<FakeStream> ring = ring(3, ",latency=50ms");
      FakeStream stream = new FakeStream();
      FakeStream refusing = new FakeStream();
      ring.append(Sources.equal(9, LAYER));
      Ticket<FakeStream> first = ring.take(stream);
      Ticket<FakeStream> second = ring.take(refusing);
      refusing.refuse();
      if (released) {
        ring.release(first, stream);
        Ticket<FakeStream> third = ring.take(stream);
        ring.release(third, stream);
        assertThatIllegalStateException().isThrownBy(() -> ring.release(second, null));
        assertThat(ring.isReleased(second)).isFalse();
      }
      ring.close();
      ring.close();
      ring.release(first, null);
      assertThat(stream.ends()).isTrue();
      assertThat(refusing.ends()).isTrue();
      assertThatIllegalStateException().isThrownBy(() -> ring.take(stream));
      storage.close();
    }
  }

  @Test
  void whereAStreamMayNotWaitTheCallerDoes() throws InterruptedException {
    streams.refuseWaits();
    try (LayerRing<FakeStream> ring = ring(2, "");
        FakeStream stream = new FakeStream()) {
      ring.append(Sources.equal(6, LAYER));
      for (int i = 0; i < 6; i++) {
        Ticket<FakeStream> ticket = ring.take(stream);
        assertThat(ticket.done).isTrue();
        assertThat(ticket.gated).isFalse();
        use(stream, ticket);
        ring.release(ticket, null);
      }
      assertThat(stream.ends()).isTrue();
      assertThat(wrong).isEmpty();
    }
  }

  @Test
  void aLoadBesideStreamsWaitsForTheirLayers() throws Exception {
    try (LayerRing<FakeStream> ring = ring(2, ",latency=20ms");
        FakeStream stream = new FakeStream()) {
      ring.append(Sources.equal(2, LAYER));
      Ticket<FakeStream> ticket = ring.take(stream);
      CompletableFuture<Void> load = CompletableFuture.runAsync(ring::beginLoad);
      load.get(30, TimeUnit.SECONDS);
      assertThat(ticket.done).isTrue();
      Ticket<FakeStream> beside = ring.take(stream);
      assertThat(beside.gated).isFalse();
      ring.endLoad();
      ring.release(ticket, null);
      ring.release(beside, null);
      assertThat(stream.ends()).isTrue();
    }
  }
}
