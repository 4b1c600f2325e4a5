package io.gpunvme.cli.output;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

class LineProgressTest {
  private static final long SECOND = 1_000_000_000;

  private final ByteArrayOutputStream out = new ByteArrayOutputStream();
  private final AtomicLong now = new AtomicLong(-5 * SECOND);
  private final Progress progress =
      new LineProgress(new PrintStream(out, true, StandardCharsets.UTF_8), now::get);

  @Test
  void saysSomethingEveryThirtySeconds() {
    progress.begin("make file", 1000);
    for (int second = 0; second < 61; second++) {
      now.addAndGet(SECOND);
      progress.moved(10);
    }
    progress.begin("read", 0);
    now.addAndGet(29 * SECOND);
    progress.begin("read again", 0);
    assertThat(out.toString(StandardCharsets.UTF_8).lines())
        .containsExactly("make file: 30 %", "make file: 60 %", "read again: 0 %");
  }

  @Test
  void whatIsSoonOverSaysNothing() {
    progress.begin("read", 10);
    now.addAndGet(29 * SECOND);
    progress.moved(10);
    progress.close();
    assertThat(out.size()).isZero();
  }
}
