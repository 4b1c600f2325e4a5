package io.gpunvme.nvme.driver;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.nvme.Footprint;
import io.gpunvme.nvme.NvmeException;
import io.gpunvme.nvme.fuzz.FuzzSeed;
import io.gpunvme.sim.NamespaceConfig;
import io.gpunvme.sim.SimConfig;
import io.gpunvme.sim.SimulatedController;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * Either side is killed in the middle of its work: the other one learns of it in time, gives
 * everything back and goes on with the next. {@code -Dgpunvme.kills=N} for more.
 */
@Timeout(value = 1500, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class VfioUserKillIT {
  private static final int KILLS = Integer.getInteger("gpunvme.kills", 4);

  /** Where a process may be in its life: most of them work after that long. */
  private static final int START_MILLIS = 700;

  private static final int WORK_MILLIS = 60;

  /** From the kill until every thread knows; a busy machine included. */
  private static final long DEADLINE_NANOS = 6_000_000_000L;

  @TempDir Path folder;

  private final Logger log = Logger.getLogger("io.gpunvme.nvme");
  private final Map<String, Integer> outcomes = new TreeMap<>();
  private long slowest;
  private long commands;

  /** The driver tells of each controller that it could not shut down. */
  @BeforeEach
  void quiet() {
    log.setLevel(Level.OFF);
  }

  @AfterEach
  void loud() {
    log.setLevel(null);
  }

  @Test
  void theServer() throws Exception {
    FuzzSeed seed = FuzzSeed.announce("VfioUserKillIT.theServer");
    long start = System.nanoTime();
    Path socket = folder.resolve("ssd");
    Footprint before = Footprint.here();
    for (int round : seed.cases(KILLS).toArray()) {
      try (ServedController served =
          ServedController.apart(socket, "size=64MiB,latency=20us,queues=8")) {
        killServer(served, socket, seed.random(round));
      } catch (RuntimeException | Error e) {
        throw new AssertionError(seed.describe(round), e);
      }
      before.awaitHere("after round " + round);
    }
    report("servers", start);
  }

  private void killServer(ServedController served, Path socket, SplittableRandom random)
      throws InterruptedException {
    try (VfioUserLoad load = VfioUserLoad.open(socket, random.nextInt(4) == 0)) {
      load.once();
      ConcurrentLinkedQueue<Throwable> ends = new ConcurrentLinkedQueue<>();
      List<Thread> threads = new ArrayList<>();
      for (int i = 0; i < VfioUserLoad.QUEUES; i++) {
        long seed = i;
        threads.add(
            Thread.ofPlatform()
                .start(
                    () -> {
                      try {
                        load.run(seed);
                      } catch (Throwable e) {
                        ends.add(e);
                      }
                    }));
      }
      LockSupport.parkNanos(random.nextLong(WORK_MILLIS * 1_000_000L));
      long killed = System.nanoTime();
      served.kill();
      for (Thread thread : threads) {
        thread.join(DEADLINE_NANOS / 1_000_000);
        assertThat(thread.isAlive()).as("it learned of it").isFalse();
      }
      for (Throwable end : ends) {
        assertThat(end).isInstanceOf(NvmeException.class);
        outcomes.merge(end.getClass().getSimpleName(), 1, Integer::sum);
      }
      time(killed);
      commands += load.done();
    }
  }

  private void time(long since) {
    long nanos = System.nanoTime() - since;
    slowest = Math.max(slowest, nanos);
    assertThat(nanos).as("time since the kill").isLessThan(DEADLINE_NANOS);
  }

  @Test
  void theClient() throws Exception {
    FuzzSeed seed = FuzzSeed.announce("VfioUserKillIT.theClient");
    long start = System.nanoTime();
    Path socket = folder.resolve("ssd");
    Footprint before = Footprint.here();
    SimConfig config =
        SimConfig.builder()
            .namespace(NamespaceConfig.ram(64 << 20, 512))
            .latencyNanos(20_000)
            .ioQueues(8)
            .workers(2)
            .build();
    try (ServedController served = ServedController.here(socket, config)) {
      SimulatedController controller = served.controller();
      Footprint idle = Footprint.here();
      next(socket);
      for (int round : seed.cases(KILLS).toArray()) {
        try {
          killClient(socket, seed.random(round));
          long killed = System.nanoTime();
          commands += next(socket);
          time(killed);
          idle.awaitHere("after round " + round);
          assertThat(controller.internalError()).isNull();
        } catch (RuntimeException | Error e) {
          throw new AssertionError(seed.describe(round), e);
        }
      }
    }
    before.awaitHere("the server");
    report("clients", start);
  }

  private void killClient(Path socket, SplittableRandom random)
      throws IOException, InterruptedException {
    Process process = VfioUserLoad.start(socket, random.nextInt(4) == 0);
    try {
      boolean starting = random.nextInt(4) == 0;
      if (starting) {
        Thread.sleep(random.nextInt(START_MILLIS));
      } else {
        assertThat(VfioUserLoad.awaitReady(process)).as("the client works").isTrue();
        LockSupport.parkNanos(random.nextLong(WORK_MILLIS * 1_000_000L));
      }
      outcomes.merge(starting ? "starting" : "working", 1, Integer::sum);
    } finally {
      process.destroyForcibly();
      assertThat(process.waitFor(20, TimeUnit.SECONDS)).isTrue();
      process.getInputStream().close();
      process.getOutputStream().close();
    }
  }

  /** The next client works. */
  private static long next(Path socket) {
    try (VfioUserLoad load = VfioUserLoad.open(socket, false)) {
      load.once();
      return load.done();
    }
  }

  private void report(String who, long start) {
    System.out.printf(
        "VfioUserKillIT: %d %s killed, slowest to be noticed %d ms; %s; %d commands; %.1f s%n",
        KILLS, who, slowest / 1_000_000, outcomes, commands, (System.nanoTime() - start) / 1e9);
  }
}
