package io.gpunvme.sim;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.nvme.memory.DmaBuffer;
import io.gpunvme.nvme.spec.Csts;
import io.gpunvme.nvme.spec.IoOpcode;
import io.gpunvme.nvme.spec.Registers;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Workers, host threads, resets and close at once. */
@Timeout(300)
class EngineThreadTest {
  private final ConcurrentLinkedQueue<Throwable> failures = new ConcurrentLinkedQueue<>();

  private Thread start(Runnable body) {
    Thread t = new Thread(body);
    t.setUncaughtExceptionHandler((x, e) -> failures.add(e));
    t.start();
    return t;
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3})
  void queuesOfManyThreads(int workers) throws InterruptedException {
    SimConfig config =
        SimConfig.builder().workers(workers).latencyNanos(1_000).outOfOrder(true).build();
    try (RawHost host = RawHost.start(config)) {
      List<RawQueue> queues = new ArrayList<>();
      List<DmaBuffer> buffers = new ArrayList<>();
      for (int i = 1; i <= 4; i++) {
        queues.add(host.createQueue(i, 32, 32));
        buffers.add(host.buffer(4096));
      }
      List<Thread> threads = new ArrayList<>();
      for (int t = 0; t < 4; t++) {
        RawQueue q = queues.get(t);
        DmaBuffer data = buffers.get(t);
        long base = t * 1000L;
        threads.add(start(() -> writeAndCheck(host, q, data, base)));
      }
      for (Thread t : threads) {
        t.join();
      }
      assertThat(failures).isEmpty();
      assertThat(host.controller.stats().failed()).isZero();
      assertThat(host.controller.stats().ioCommands(IoOpcode.WRITE)).isEqualTo(4 * 150);
    }
  }

  private static void writeAndCheck(RawHost host, RawQueue q, DmaBuffer data, long base) {
    for (int i = 0; i < 150; i++) {
      byte value = (byte) (q.qid * 31 + i);
      data.memory().fill(value);
      long slba = base + i % 50;
      host.execute(q, RawHost.io(IoOpcode.WRITE, 1, slba, 1, data.busAddress(0), 0));
      data.memory().fill((byte) 0);
      host.execute(q, RawHost.io(IoOpcode.READ, 1, slba, 1, data.busAddress(0), 0));
      byte got = data.memory().get(java.lang.foreign.ValueLayout.JAVA_BYTE, 511);
      if (got != value) {
        throw new AssertionError("block " + slba + ": " + got + " instead of " + value);
      }
    }
  }

  /** Close arrives while commands are in flight and registers are being used. */
  @ParameterizedTest
  @ValueSource(ints = {1, 2})
  void closingIsSafeAndQuickAtAnyTime(int workers) throws InterruptedException {
    for (int round = 0; round < 20; round++) {
      SimConfig config =
          SimConfig.builder().workers(workers).latencyNanos(round % 2 * 20_000L).build();
      RawHost host = RawHost.start(config);
      RawQueue q = host.createQueue(1, 64, 64);
      DmaBuffer data = host.buffer(65536);
      AtomicBoolean stop = new AtomicBoolean();
      AtomicInteger done = new AtomicInteger();
      Thread io =
          start(
              () -> {
                try {
                  while (!stop.get()) {
                    for (int i = 0; i < 32; i++) {
                      q.push(RawHost.io(IoOpcode.READ, 1, i, 8, data.busAddress(0), 0));
                    }
                    q.ring();
                    for (int i = 0; i < 32 && !stop.get(); ) {
                      if (q.poll() != null) {
                        i++;
                        done.incrementAndGet();
                      } else {
                        Thread.yield();
                      }
                    }
                  }
                } catch (IllegalStateException e) {
                  // The doorbells went away with the controller.
                }
              });
      Thread registers =
          start(
              () -> {
                while (!stop.get()) {
                  host.bar.write32(Registers.INTMS, 1);
                  host.bar.read32(Registers.CSTS);
                }
              });
      host.await(() -> done.get() > 50, "some reads");
      long start = System.nanoTime();
      host.controller.close();
      assertThat(System.nanoTime() - start).isLessThan(5_000_000_000L);
      assertThat(host.bar.read32(Registers.CSTS)).isEqualTo(-1);
      stop.set(true);
      io.join();
      registers.join();
      assertThat(failures).isEmpty();
      assertThat(host.controller.internalError()).isNull();
      host.buffers.forEach(DmaBuffer::close);
    }
  }

  /** Resets under load: afterwards nothing of the old life may be posted. */
  @ParameterizedTest
  @ValueSource(ints = {1, 3})
  void resetsUnderLoad(int workers) {
    SimConfig config =
        SimConfig.builder().workers(workers).latencyNanos(5_000).outOfOrder(true).build();
    try (RawHost host = RawHost.start(config)) {
      DmaBuffer data = host.buffer(4096);
      for (int round = 0; round < 100; round++) {
        List<RawQueue> queues = new ArrayList<>();
        for (int i = 1; i <= 3; i++) {
          queues.add(host.createQueue(i, 64, 16));
        }
        for (RawQueue q : queues) {
          for (int i = 0; i < 40; i++) {
            q.push(RawHost.io(IoOpcode.READ, 1, i, 1, data.busAddress(0), 0));
          }
          q.ring();
        }
        host.next(queues.get(round % 3));
        if (round % 2 == 0) {
          host.disable();
        } else {
          host.controller.reset();
          host.busMaster(true);
          host.resetAdmin();
        }
        byte[] before = queues.get(0).cq.memory().toArray(java.lang.foreign.ValueLayout.JAVA_BYTE);
        for (RawQueue q : queues) {
          q.sq.range().close();
        }
        host.enable();
        assertThat(
                queues.get(0).cq.memory().mismatch(java.lang.foreign.MemorySegment.ofArray(before)))
            .isEqualTo(-1);
        for (RawQueue q : queues) {
          q.cq.range().close();
          host.buffers.remove(q.sq);
          host.buffers.remove(q.cq);
          q.sq.close();
          q.cq.close();
        }
      }
      assertThat(host.csts().isSet(Csts.CFS)).isFalse();
    }
  }

  /** Queues of all workers are created and deleted while others are busy. */
  @Test
  void queuesComeAndGoUnderLoad() throws InterruptedException {
    SimConfig config = SimConfig.builder().workers(3).latencyNanos(0).build();
    try (RawHost host = RawHost.start(config)) {
      RawQueue busy = host.createQueue(1, 32, 32);
      DmaBuffer data = host.buffer(4096);
      AtomicBoolean stop = new AtomicBoolean();
      Thread load =
          start(
              () -> {
                while (!stop.get()) {
                  host.execute(busy, RawHost.io(IoOpcode.READ, 1, 0, 1, data.busAddress(0), 0));
                }
              });
      for (int i = 0; i < 200; i++) {
        RawQueue q = host.createQueue(2 + i % 5, 8, 8);
        q.push(RawHost.io(IoOpcode.READ, 1, 0, 1, data.busAddress(0), 0));
        q.ring();
        host.deleteQueue(q);
        host.buffers.remove(q.sq);
        host.buffers.remove(q.cq);
        q.sq.close();
        q.cq.close();
      }
      stop.set(true);
      load.join();
      assertThat(failures).isEmpty();
      assertThat(host.controller.fatalReason()).isNull();
    }
  }

  @Test
  void anIdleControllerRests() throws InterruptedException {
    try (RawHost host = RawHost.start(SimConfig.builder().workers(1).build())) {
      Thread.sleep(200);
      Thread worker =
          Thread.getAllStackTraces().keySet().stream()
              .filter(t -> t.getName().equals(host.controller.name() + "-worker-0"))
              .findFirst()
              .orElseThrow();
      java.lang.management.ThreadMXBean mx =
          java.lang.management.ManagementFactory.getThreadMXBean();
      long before = mx.getThreadCpuTime(worker.threadId());
      Thread.sleep(500);
      long used = mx.getThreadCpuTime(worker.threadId()) - before;
      assertThat(used).as("CPU time in 500 ms").isLessThan(100_000_000L);
      RawQueue q = host.createQueue(1, 8, 8);
      assertThat(host.execute(q, RawHost.sqe(IoOpcode.FLUSH, 1, 0, 0, 0, 0, 0)).status()).isZero();
    }
  }
}
