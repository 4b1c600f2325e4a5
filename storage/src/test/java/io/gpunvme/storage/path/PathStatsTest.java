package io.gpunvme.storage.path;

import static org.assertj.core.api.Assertions.assertThat;

import org.HdrHistogram.Histogram;
import org.junit.jupiter.api.Test;

/** Statistics as text. */
class PathStatsTest {
  @Test
  void theyAreOneLine() {
    Histogram latency = new Histogram(3);
    for (int i = 1; i <= 100; i++) {
      latency.recordValue(i);
    }
    assertThat(new PathStats(1, 2, 3, 4, 5, 6, latency))
        .hasToString(
            "PathStats[readBytes=1, writtenBytes=2, operations=3, retries=4, stagedBytes=5,"
                + " overreadBytes=6, latency=[count=100, median=50 ns, p99=99 ns, max=100 ns]]");
    assertThat(new PathStats(0, 0, 0, 0, 0, 0, new Histogram(3)).toString()).contains("count=0");
  }
}
