package io.gpunvme.sim;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.nvme.fuzz.FuzzSeed;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Whatever a host does, the controller answers each command with a status of the specification, or
 * stops with CSTS.CFS for a reason of the specification; it never fails itself, never touches
 * memory it was not given, and works after a reset.
 */
@Timeout(value = 200, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class FuzzHostToControllerIT {
  private static final int ROUNDS = 500;
  private static final int THREADED_ROUNDS = 30;
  private static final int STEPS = 100;
  private static final int AT_LEAST = 100_000;
  private static final Duration LIMIT = Duration.ofSeconds(60);

  @Test
  void survivesAnyHost() {
    FuzzSeed seed = FuzzSeed.announce("host to controller");
    long start = System.nanoTime();
    int sent = seed.cases(ROUNDS).map(number -> round(seed, number, 0)).sum();
    System.out.printf(
        "host to controller: %d commands in %.1f s%n", sent, (System.nanoTime() - start) / 1e9);
    if (!seed.isReplay()) {
      assertThat(sent).isGreaterThanOrEqualTo(AT_LEAST);
    }
  }

  @Test
  void survivesAnyHostWithSeveralThreads() {
    FuzzSeed seed = FuzzSeed.announce("host to controller, 2 workers");
    seed.cases(THREADED_ROUNDS).forEach(number -> round(seed, number, 2));
  }

  private static int round(FuzzSeed seed, int number, int workers) {
    long start = System.nanoTime();
    try (FuzzRound round = new FuzzRound(seed.random(number), workers)) {
      round.run(STEPS);
      FuzzHost.require(System.nanoTime() - start < LIMIT.toNanos(), "took too long");
      return round.sent();
    } catch (Throwable e) {
      throw new AssertionError(seed.describe(number) + ": " + e.getMessage(), e);
    }
  }
}
