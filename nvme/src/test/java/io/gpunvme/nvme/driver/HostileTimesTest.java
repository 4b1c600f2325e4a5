package io.gpunvme.nvme.driver;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import org.junit.jupiter.api.Test;

/** Times a controller asks for are not taken at any price. */
class HostileTimesTest {
  private static final long OPTION = Duration.ofMillis(5).toNanos();

  @Test
  void shutdownWaitsForRtd3eButNotForAnHour() {
    assertThat(Lifecycle.shutdownNanos(OPTION, 0)).isEqualTo(OPTION);
    assertThat(Lifecycle.shutdownNanos(OPTION, 300_000))
        .isEqualTo(Duration.ofMillis(300).toNanos());
    assertThat(Lifecycle.shutdownNanos(OPTION, 0xFFFF_FFFFL))
        .isEqualTo(Duration.ofMinutes(1).toNanos());
  }

  @Test
  void theCallerMayWaitLonger() {
    long option = Duration.ofMinutes(5).toNanos();
    assertThat(Lifecycle.shutdownNanos(option, 0xFFFF_FFFFL)).isEqualTo(option);
  }
}
