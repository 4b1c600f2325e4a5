package io.gpunvme.nvme.fuzz;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.nvme.driver.Backoff;
import io.gpunvme.nvme.driver.ControllerOptions;
import io.gpunvme.nvme.driver.DataPointerMode;
import io.gpunvme.nvme.fuzz.Malice.Kind;
import io.gpunvme.nvme.spec.Vs;
import io.gpunvme.sim.NamespaceConfig;
import io.gpunvme.sim.SimConfig;
import io.gpunvme.sim.SimulatedController;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.EnumSet;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Whatever a controller says and does, the driver returns something sensible or throws an exception
 * of its own, in time; it keeps nothing mapped and shows nobody control characters.
 */
@Timeout(value = 400, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class FuzzControllerToHostIT {
  private static final int CASES = 1_000;
  private static final int STEPS = 70;
  private static final int AT_LEAST = 100_000;
  private static final int BLOCK = 512;
  private static final long MEDIA_BYTES = 256 << 10;

  private int lies;
  private int calls;
  private int verified;

  @Test
  void survivesAnyController() throws IOException {
    FuzzSeed seed = FuzzSeed.announce("controller to host");
    long start = System.nanoTime();
    try (Printable.Log ignored = new Printable.Log("io.gpunvme.nvme.driver")) {
      seed.cases(1).forEach(number -> run(seed, number));
      long files = openFiles();
      seed.cases(CASES).forEach(number -> run(seed, number));
      assertThat(openFiles()).as("open files afterwards").isLessThanOrEqualTo(files);
    }
    System.out.printf(
        "controller to host: %d lies, %d calls, %d Reads verified in %.1f s%n",
        lies, calls, verified, (System.nanoTime() - start) / 1e9);
    if (!seed.isReplay()) {
      assertThat(lies).isGreaterThanOrEqualTo(AT_LEAST);
      assertThat(verified).isPositive();
    }
  }

  private static long openFiles() throws IOException {
    try (Stream<Path> files = Files.list(Path.of("/proc/self/fd"))) {
      return files.count();
    }
  }

  private void run(FuzzSeed seed, int number) {
    try {
      run(seed.random(number));
    } catch (Throwable e) {
      throw new AssertionError(seed.describe(number) + ": " + e.getMessage(), e);
    }
  }

  private void run(SplittableRandom random) {
    Set<Kind> kinds = kinds(random);
    Malice malice = new Malice(kinds, random);
    try (SimulatedController sim = SimulatedController.create(config(random))) {
      HostileFunction function = new HostileFunction(sim, malice);
      HostScript script = new HostScript(random, malice, BLOCK);
      try (DeviceThread device = new DeviceThread(function.queues(), malice)) {
        script.run(function, options(random, kinds), STEPS);
      }
      function.queues().close();
      assertThat(sim.internalError()).isNull();
      assertThat(function.isClosed()).as("closed").isTrue();
      assertThat(function.mappedRanges()).as("ranges left mapped").isZero();
      lies += malice.lies();
      calls += script.calls();
      verified += script.verified();
    }
  }

  private static Set<Kind> kinds(SplittableRandom random) {
    return switch (random.nextInt(40)) {
      case 0 -> EnumSet.of(Kind.FLOOD);
      case 1 -> EnumSet.of(Kind.COMPLETIONS);
      case 2 -> EnumSet.allOf(Kind.class);
      case 3, 4, 5, 6, 7, 8 -> EnumSet.of(Kind.REGISTERS);
      case 9, 10, 11 -> EnumSet.of(Kind.REGISTERS, Kind.DATA, Kind.STATUS);
      case 12, 13, 14 -> EnumSet.of(Kind.STATUS);
      case 15, 16, 17 -> EnumSet.of(Kind.ECHOES, Kind.DATA);
      case 18, 19, 20, 21 -> EnumSet.of(Kind.DATA, Kind.STATUS);
      default -> EnumSet.of(Kind.DATA);
    };
  }

  private static SimConfig config(SplittableRandom random) {
    return SimConfig.builder()
        .workers(0)
        .latencyNanos(0)
        .to(1)
        .seed(random.nextLong())
        .mqes(63)
        .ioQueues(4)
        .strict(false)
        .keepAlive(true)
        .hmbPreferred(random.nextInt(3) * 8)
        .version(random.nextBoolean() ? Vs.V1_4 : Vs.V2_0)
        .dstrd(random.nextInt(4) == 0 ? 1 : 0)
        .namespace(NamespaceConfig.ram(MEDIA_BYTES, BLOCK))
        .namespace(NamespaceConfig.ram(MEDIA_BYTES, BLOCK))
        .build();
  }

  /**
   * Time-outs are short where lies make commands expire, and long enough for a busy machine else.
   */
  private static ControllerOptions options(SplittableRandom random, Set<Kind> kinds) {
    boolean completes = EnumSet.of(Kind.DATA, Kind.STATUS, Kind.ECHOES).containsAll(kinds);
    Duration patience = Duration.ofMillis(completes ? 200 : 10);
    return ControllerOptions.builder()
        .allowWrite(true)
        .adminEntries(16)
        .queuePairs(4)
        .adminTimeout(patience)
        .ioTimeout(patience)
        .recoveryTimeout(patience.dividedBy(2))
        .formatTimeout(patience)
        .shutdownTimeout(Duration.ofMillis(10))
        .hostMemoryBufferBytes(random.nextInt(3) * (64L << 10))
        .dataPointers(random.nextInt(4) == 0 ? DataPointerMode.SGL : DataPointerMode.PRP)
        .retries(random.nextInt(3))
        .asyncEvents(random.nextInt(4) != 0)
        .build();
  }

  /** Plays the controller. */
  private static final class DeviceThread implements AutoCloseable {
    private final Thread thread;
    private final Malice malice;
    private volatile boolean stopped;
    private volatile Throwable failure;

    DeviceThread(HostileQueues queues, Malice malice) {
      this.malice = malice;
      thread = Thread.ofPlatform().daemon().name("hostile device").start(() -> run(queues));
    }

    private void run(HostileQueues queues) {
      // Most of the time the host waits for something that never comes.
      Backoff idle = new Backoff();
      try {
        while (!stopped) {
          if (queues.pass()) {
            idle.reset();
          } else {
            idle.pause();
          }
        }
      } catch (Throwable e) {
        failure = e;
        malice.vanish();
      }
    }

    @Override
    public void close() {
      stopped = true;
      try {
        thread.join();
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      }
      if (failure != null) {
        throw new AssertionError("the device itself failed", failure);
      }
    }
  }
}
