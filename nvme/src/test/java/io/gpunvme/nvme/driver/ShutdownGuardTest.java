package io.gpunvme.nvme.driver;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.ffi.SharedMemory;
import io.gpunvme.nvme.spec.Cc;
import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** A process that is told to end (SIGTERM, as Ctrl-C does) shuts its controllers down in order. */
class ShutdownGuardTest {
  /** The process: opens a controller and waits to be ended. */
  static final class Victim {
    private Victim() {}

    public static void main(String[] args) throws InterruptedException {
      ShutdownGuard.install();
      ShutdownGuard.install();
      FakeFunction function = new FakeFunction();
      function.onClose =
          () ->
              System.out.println(
                  (function.ccWrites.getLast().get(Cc.SHN) == Cc.SHN_NORMAL ? "in order" : "abrupt")
                      + opening());
      NvmeController controller = NvmeController.open(function, ControllerOptions.defaults());
      controller.createQueuePair(4);
      ShutdownGuard.Delay delay = ShutdownGuard.delay();
      System.out.println("ready");
      while (!ShutdownGuard.ended()) {
        Thread.sleep(10);
      }
      Thread.sleep(200);
      System.out.println(function.closed ? "closed too early" : "still open");
      delay.close();
      delay.close();
      Thread.sleep(60_000);
    }

    /** What becomes of a controller that is opened while others are shut down. */
    private static String opening() {
      FakeFunction late = new FakeFunction();
      try {
        NvmeController.open(late, ControllerOptions.defaults());
        return ", a late one is opened";
      } catch (InvalidRequestException e) {
        return late.closed ? ", a late one is closed" : ", a late one is left";
      }
    }
  }

  /** Where the classes come from, whatever the test runner's class loader looks like. */
  private static String classPath(Class<?>... classes) {
    return Stream.of(classes)
        .map(c -> c.getProtectionDomain().getCodeSource().getLocation())
        .map(url -> Path.of(URI.create(url.toString())).toString())
        .distinct()
        .collect(Collectors.joining(File.pathSeparator));
  }

  @Test
  void shutsDownWhenTheProcessIsTerminated() throws IOException, InterruptedException {
    Process process =
        new ProcessBuilder(
                List.of(
                    Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                    "--enable-native-access=ALL-UNNAMED",
                    "-cp",
                    classPath(Victim.class, NvmeController.class, SharedMemory.class),
                    Victim.class.getName()))
            .redirectErrorStream(true)
            .start();
    try (BufferedReader out =
        new BufferedReader(
            new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8))) {
      assertThat(out.readLine()).isEqualTo("ready");
      process.toHandle().destroy();
      assertThat(out.readLine()).isEqualTo("still open");
      assertThat(out.readLine()).isEqualTo("in order, a late one is closed");
      assertThat(process.waitFor(20, TimeUnit.SECONDS)).isTrue();
    } finally {
      process.destroyForcibly();
    }
  }
}
