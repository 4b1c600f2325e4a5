package io.gpunvme.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** {@code gpunvme pin} on a real controller; the kernel counts pages that are pinned. */
@Tag("qemu")
class RealPinTest {
  private static final String DEVICE = System.getProperty("gpunvme.device", "");
  private static final String COMMAND = System.getProperty("gpunvme.command", "");
  private static final Duration DEADLINE = Duration.ofSeconds(60);

  @TempDir Path folder;
  private Process process;

  @BeforeEach
  void require() {
    assumeTrue(!DEVICE.isEmpty(), "no real controller: none is named by -Dgpunvme.device");
    assumeTrue(!COMMAND.isEmpty(), "no program is named by -Dgpunvme.command");
  }

  @AfterEach
  void end() {
    if (process != null) {
      process.destroyForcibly();
    }
  }

  private void start(String... words) throws IOException {
    List<String> all = new ArrayList<>(List.of(COMMAND, "pin", DEVICE));
    all.addAll(List.of(words));
    ProcessBuilder builder = new ProcessBuilder(all);
    // What runs kernels on the CPU is no driver of a GPU's memory.
    builder.environment().remove("GPUNVME_LIBCUDA");
    process =
        builder
            .redirectOutput(folder.resolve("out").toFile())
            .redirectError(folder.resolve("err").toFile())
            .start();
  }

  private int ended() throws InterruptedException {
    assertThat(process.waitFor(DEADLINE.toSeconds(), TimeUnit.SECONDS)).as("ended").isTrue();
    return process.exitValue();
  }

  private String out() throws IOException {
    return Files.readString(folder.resolve("out"));
  }

  /** Pages that are pinned for long, now. */
  private static long pinned() throws IOException {
    long count = 0;
    for (String line : Files.readAllLines(Path.of("/proc/vmstat"))) {
      if (line.startsWith("nr_foll_pin_acquired ")) {
        count += Long.parseLong(line.substring(line.indexOf(' ') + 1));
      } else if (line.startsWith("nr_foll_pin_released ")) {
        count -= Long.parseLong(line.substring(line.indexOf(' ') + 1));
      }
    }
    return count;
  }

  @Test
  void everyPageHasABusAddress() throws Exception {
    long before = pinned();
    start("1MiB", "--json");
    assertThat(ended()).as(Files.readString(folder.resolve("err"))).isZero();
    JsonObject json = JsonParser.parseString(out()).getAsJsonObject();
    long bytes = 0;
    for (JsonElement run : json.getAsJsonArray("runs")) {
      JsonObject one = run.getAsJsonObject();
      assertThat(Long.decode(one.get("bus_address").getAsString())).isPositive();
      bytes += one.get("bytes").getAsLong();
    }
    assertThat(bytes).isEqualTo(1 << 20);
    assertThat(pinned()).isEqualTo(before);
  }

  @Test
  void heldUntilItIsInterrupted() throws Exception {
    long before = pinned();
    start("1MiB", "--hold", "600s");
    long start = System.nanoTime();
    while (!out().contains("Ctrl-C unpins it")) {
      assertThat(process.isAlive()).as(Files.readString(folder.resolve("err"))).isTrue();
      assertThat(System.nanoTime() - start).isLessThan(DEADLINE.toNanos());
      LockSupport.parkNanos(Duration.ofMillis(20).toNanos());
    }
    assertThat(pinned() - before).isEqualTo((1 << 20) / 4096);
    String pid = Long.toString(process.pid());
    assertThat(new ProcessBuilder("kill", "-INT", pid).start().waitFor()).isZero();
    assertThat(ended()).isEqualTo(128 + 2);
    assertThat(pinned()).isEqualTo(before);
  }

  @Test
  void gpuMemoryNeedsAGpu() throws Exception {
    start("64KiB", "--gpu");
    assertThat(ended()).isEqualTo(ExitCode.FAILURE);
    assertThat(Files.readString(folder.resolve("err"))).contains("NVIDIA driver");
  }
}
