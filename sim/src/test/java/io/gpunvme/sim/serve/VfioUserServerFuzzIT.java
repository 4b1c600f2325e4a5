package io.gpunvme.sim.serve;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.ffi.EventFd;
import io.gpunvme.ffi.Posix;
import io.gpunvme.nvme.Footprint;
import io.gpunvme.nvme.fuzz.FuzzSeed;
import io.gpunvme.sim.NamespaceConfig;
import io.gpunvme.sim.SimConfig;
import io.gpunvme.sim.SimulatedController;
import java.nio.file.Path;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * Whatever clients send, the server serves the next one, reaches no memory but what it was given,
 * and keeps nothing. {@code -Dgpunvme.messages=N} for more.
 */
@Timeout(value = 1200, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class VfioUserServerFuzzIT {
  private static final int MESSAGES = Integer.getInteger("gpunvme.messages", 20_000);
  private static final int MOST_IN_CONNECTION = 120;
  private static final int HONEST_EVERY = 50;
  private static final byte MARK = 0x5C;

  /** Commands of a client that does not answer may each wait for the server's patience. */
  private static final long CONNECTION_NANOS = 30_000_000_000L;

  @TempDir Path folder;

  private long sent;
  private long taken;
  private long refused;
  private long slowest;

  @Test
  void servesTheNextOneWhateverItIsSent() {
    FuzzSeed seed = FuzzSeed.announce("VfioUserServerFuzzIT");
    long start = System.nanoTime();
    Footprint before = Footprint.here();
    int connections = 0;
    SimConfig config =
        SimConfig.builder()
            .namespace(NamespaceConfig.ram(1 << 20, 512))
            .ioQueues(4)
            .workers(2)
            .latencyNanos(50_000)
            .build();
    try (SimulatedController controller = SimulatedController.create(config);
        VfioUserServer server = VfioUserServer.start(controller, folder.resolve("ssd"));
        Pages pages = Pages.allocate(64 * Pages.PAGE);
        Pages spare = Pages.allocate(64 * Pages.PAGE);
        EventFd event = EventFd.create()) {
      pages.memory().fill(MARK);
      int[] oddities = {
        event.fd(),
        pages.fd(),
        FuzzedConnection.readOnly(pages),
        Posix.open("/dev/zero", Posix.O_RDONLY | Posix.O_CLOEXEC, 0),
        Posix.open(folder.toString(), Posix.O_RDONLY | Posix.O_CLOEXEC, 0)
      };
      Footprint idle = Footprint.here();
      while (sent < MESSAGES) {
        int number = connections++;
        try {
          connection(server.socket(), seed.random(number), pages, spare.fd(), event, oddities);
          if (number % HONEST_EVERY == 0) {
            honest(server.socket(), number);
            idle.awaitHere("after " + connections + " connections");
          }
          assertThat(controller.internalError()).isNull();
        } catch (RuntimeException | AssertionError e) {
          throw new AssertionError(seed.describe(number), e);
        }
      }
      honest(server.socket(), connections);
      idle.awaitHere("after all connections");
      assertThat(FuzzedConnection.isUntouched(pages, MARK))
          .as("memory that was not given")
          .isTrue();
      assertThat(controller.internalError()).isNull();
      for (int i = 2; i < oddities.length; i++) {
        Posix.close(oddities[i]);
      }
    }
    before.awaitHere("the server");
    System.out.printf(
        "VfioUserServerFuzzIT: %d messages in %d connections, %d answers, %d of them errors;"
            + " slowest connection %d ms; %d descriptors and %d mappings as before; %.1f s%n",
        sent,
        connections,
        taken,
        refused,
        slowest / 1_000_000,
        before.descriptorCount(),
        before.mappingCount(),
        (System.nanoTime() - start) / 1e9);
  }

  private void connection(
      Path socket, SplittableRandom random, Pages pages, int spare, EventFd event, int[] oddities) {
    long start = System.nanoTime();
    FuzzedConnection connection = new FuzzedConnection(random, pages, spare, event, oddities);
    sent += connection.run(socket, 1 + random.nextInt(MOST_IN_CONNECTION));
    taken += connection.taken();
    refused += connection.refused();
    long nanos = System.nanoTime() - start;
    slowest = Math.max(slowest, nanos);
    assertThat(nanos).as("time of a connection").isLessThan(CONNECTION_NANOS);
  }

  private static void honest(Path socket, int number) {
    try (RawNvme nvme = RawNvme.start(RawClient.greeted(socket))) {
      nvme.roundTrip(number % 200 * 8, number);
    }
  }
}
