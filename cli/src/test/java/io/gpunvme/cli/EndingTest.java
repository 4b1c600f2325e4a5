package io.gpunvme.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** What is told of a command that a signal ends, and of one that ends by itself. */
class EndingTest {
  /** A command that returns because it is cancelled, before any other shutdown hook has run. */
  static final class Cancelled {
    private Cancelled() {}

    public static void main(String[] args) throws InterruptedException {
      CountDownLatch cancelled = new CountDownLatch(1);
      CountDownLatch told = new CountDownLatch(1);
      try (CancelledAtExit exit = new CancelledAtExit()) {
        exit.now(
            () -> {
              cancelled.countDown();
              awaitOrGiveUp(told);
            });
        Thread.ofPlatform().start(() -> System.exit(3));
        awaitOrGiveUp(cancelled);
      }
      Ending.over();
      System.out.println(Ending.begun() ? "interrupted" : "over");
      told.countDown();
    }

    private static void awaitOrGiveUp(CountDownLatch latch) {
      try {
        if (!latch.await(30, TimeUnit.SECONDS)) {
          System.out.println("nothing happened");
        }
      } catch (InterruptedException e) {
        System.out.println(e);
      }
    }
  }

  /** A command that ends by itself: its exit is no interruption. */
  static final class Whole {
    private Whole() {}

    public static void main(String[] args) {
      Ending.over();
      Ending.begin();
      System.out.println(Ending.begun() ? "interrupted" : "over");
      System.exit(3);
    }
  }

  /** A command that wants a folder after everything was deleted. */
  static final class Late {
    private Late() {}

    public static void main(String[] args) throws IOException {
      Ending.begin();
      Path folder = Files.createTempDirectory("gpunvme-late-");
      try {
        Leftovers.add(folder);
      } catch (IllegalStateException e) {
        System.out.println(Files.exists(folder) ? "left" : "deleted");
      }
      System.exit(3);
    }
  }

  private static String said(Class<?> program) throws Exception {
    Process child =
        new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-cp",
                System.getProperty("java.class.path"),
                program.getName())
            .redirectErrorStream(true)
            .start();
    String said = new String(child.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertThat(child.waitFor()).as(said).isEqualTo(3);
    return said.strip();
  }

  @Test
  void whatReturnsBecauseItWasCancelledIsInterrupted() throws Exception {
    assertThat(said(Cancelled.class)).isEqualTo("interrupted");
  }

  @Test
  void whatIsOverIsNotInterrupted() throws Exception {
    assertThat(said(Whole.class)).isEqualTo("over");
  }

  @Test
  void nothingIsLeftThatIsMadeAfterwards() throws Exception {
    assertThat(said(Late.class)).isEqualTo("deleted");
  }
}
