package io.gpunvme.tools.report;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;

/** The line that scripts look for. */
class GdsioLineTest {
  @Test
  void readsAsGdsioWritesIt() {
    GdsioLine line =
        new GdsioLine(
            GdsioLine.Pattern.RANDREAD,
            GdsioLine.Transfer.GPUD,
            32,
            71_313_540L << 10,
            16_384_000L << 10,
            4096,
            17_828_385,
            214_448.246,
            119.477201);

    assertThat(line)
        .hasToString(
            "IoType: RANDREAD XferType: GPUD Threads: 32 DataSetSize: 71313540/16384000(KiB)"
                + " IOSize: 4(KiB) Throughput: 0.569229 GiB/sec, Avg_Latency: 214.448246 usecs"
                + " ops: 17828385 total_time 119.477201 secs");
  }

  @Test
  void noTimeIsNoResult() {
    assertThatThrownBy(
            () ->
                new GdsioLine(
                    GdsioLine.Pattern.READ, GdsioLine.Transfer.DIRECT, 1, 1, 1, 1, 1, 1, 0))
        .isInstanceOf(IllegalArgumentException.class);
  }
}
