package io.gpunvme.nvme.fuzz;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.nvme.Footprint;
import io.gpunvme.nvme.NvmeException;
import io.gpunvme.nvme.driver.BlockDevice;
import io.gpunvme.nvme.driver.ControllerOptions;
import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.nvme.memory.DmaBuffer;
import io.gpunvme.nvme.pci.ConfigSpace;
import io.gpunvme.nvme.pci.vfiouser.VfioUserFunction;
import io.gpunvme.nvme.pci.vfiouser.VfioUserOptions;
import io.gpunvme.sim.NamespaceConfig;
import io.gpunvme.sim.SimConfig;
import io.gpunvme.sim.SimulatedController;
import io.gpunvme.sim.serve.VfioUserServer;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * Whatever a server says, opening and using its function returns or throws an exception of ours in
 * time, and keeps nothing. {@code -Dgpunvme.messages=N} for more.
 */
@Timeout(value = 1200, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class VfioUserClientFuzzIT {
  private static final int MESSAGES = Integer.getInteger("gpunvme.messages", 20_000);
  private static final Duration TIMEOUT = Duration.ofMillis(150);
  private static final Duration DRIVER_TIMEOUT = Duration.ofMillis(300);
  private static final int BLOCK = 512;
  private static final int HONEST_EVERY = 50;

  /** Opening waits for one answer in vain at most, and for as long again until it can ask. */
  private static final long OPEN_NANOS = 2_000_000_000L;

  private static final long SESSION_NANOS = 10_000_000_000L;

  @TempDir Path folder;

  private final Map<String, Integer> outcomes = new TreeMap<>();
  private long slowestOpen;
  private long slowest;

  @Test
  void endsProperlyWhateverTheServerSays() {
    FuzzSeed seed = FuzzSeed.announce("VfioUserClientFuzzIT");
    long start = System.nanoTime();
    Footprint before = Footprint.here();
    int sessions = 0;
    SimConfig config =
        SimConfig.builder().namespace(NamespaceConfig.ram(1 << 20, BLOCK)).ioQueues(4).build();
    try (Printable.Log log = new Printable.Log("io.gpunvme.nvme");
        SimulatedController controller = SimulatedController.create(config);
        VfioUserServer server = VfioUserServer.start(controller, folder.resolve("ssd"));
        HostileProxy proxy = new HostileProxy(folder.resolve("hostile"), server.socket())) {
      Footprint idle = Footprint.here();
      proxy.prepare(new SplittableRandom(1), 0);
      honest(proxy);
      while (proxy.messages() < MESSAGES) {
        int number = sessions++;
        SplittableRandom random = seed.random(number);
        proxy.prepare(random.split(), 1 + random.nextInt(40));
        try {
          session(proxy, random);
          if (number % HONEST_EVERY == 0) {
            proxy.prepare(random.split(), 0);
            honest(proxy);
            idle.awaitHere("after " + sessions + " sessions");
          }
          assertThat(controller.internalError()).isNull();
        } catch (RuntimeException | Error e) {
          throw new AssertionError(seed.describe(number), e);
        }
      }
      idle.awaitHere("after all sessions");
      System.out.printf(
          "VfioUserClientFuzzIT: %d messages, %d lies in %d sessions; slowest open %d ms, session"
              + " %d ms; %d descriptors and %d mappings as before; %s; %.1f s%n",
          proxy.messages(),
          proxy.lies(),
          sessions,
          slowestOpen / 1_000_000,
          slowest / 1_000_000,
          idle.descriptorCount(),
          idle.mappingCount(),
          outcomes,
          (System.nanoTime() - start) / 1e9);
    }
    before.awaitHere("the server");
  }

  private void session(HostileProxy proxy, SplittableRandom random) {
    long start = System.nanoTime();
    try {
      use(proxy.path(), random, start);
      outcome("success");
    } catch (NvmeException | InvalidRequestException e) {
      Printable.require(e);
      outcome(e.getClass().getSimpleName());
    }
    long nanos = System.nanoTime() - start;
    slowest = Math.max(slowest, nanos);
    assertThat(nanos).as("time of a session").isLessThan(SESSION_NANOS);
  }

  private void outcome(String name) {
    outcomes.merge(name, 1, Integer::sum);
  }

  private void use(Path path, SplittableRandom random, long start) {
    VfioUserOptions options =
        VfioUserOptions.defaults().withTimeout(TIMEOUT).withMessages(random.nextInt(4) == 0);
    VfioUserFunction function;
    try {
      function = VfioUserFunction.open(path, options);
    } finally {
      long nanos = System.nanoTime() - start;
      slowestOpen = Math.max(slowestOpen, nanos);
      assertThat(nanos).as("time of open").isLessThan(OPEN_NANOS);
    }
    if (random.nextInt(4) == 0) {
      raw(function, random);
    } else {
      driver(function, random);
    }
  }

  /** What a function can do, without a driver. */
  private static void raw(VfioUserFunction function, SplittableRandom random) {
    try (function) {
      for (int i = 0; i < 20; i++) {
        switch (random.nextInt(5)) {
          case 0 -> DmaBuffer.allocate(function, 4096L << random.nextInt(4)).close();
          case 1 -> function.config().read(random.nextInt(64), 1);
          case 2 -> function.config().write(ConfigSpace.COMMAND, 2, 6);
          case 3 -> function.bar(0).read64(0);
          default -> function.reset();
        }
      }
    }
  }

  private static void driver(VfioUserFunction function, SplittableRandom random) {
    try (NvmeController controller = NvmeController.open(function, options())) {
      io(function, controller, random);
    }
  }

  private static void io(
      VfioUserFunction function, NvmeController controller, SplittableRandom random) {
    try (DmaBuffer buffer = DmaBuffer.allocate(function, 8192);
        BlockDevice device = BlockDevice.open(controller, controller.namespace(1), 4)) {
      for (int i = 0; i < 20; i++) {
        long slba = random.nextInt(1000);
        if (random.nextBoolean()) {
          device.read(slba, 8, buffer.range(), 0);
        } else {
          device.write(slba, 8, buffer.range(), 4096);
        }
        if (random.nextInt(8) == 0) {
          controller.reset();
        }
      }
    }
  }

  private static ControllerOptions options() {
    return ControllerOptions.builder()
        .allowWrite(true)
        .queuePairs(2)
        .adminTimeout(DRIVER_TIMEOUT)
        .ioTimeout(DRIVER_TIMEOUT)
        .recoveryTimeout(DRIVER_TIMEOUT)
        .shutdownTimeout(DRIVER_TIMEOUT)
        .retries(0)
        .build();
  }

  /** Without lies everything works. */
  private static void honest(HostileProxy proxy) {
    VfioUserOptions patient = VfioUserOptions.defaults();
    try (NvmeController controller =
        NvmeController.open(
            VfioUserFunction.open(proxy.path(), patient),
            ControllerOptions.builder().allowWrite(true).build())) {
      assertThat(controller.namespaces()).hasSize(1);
    }
  }
}
