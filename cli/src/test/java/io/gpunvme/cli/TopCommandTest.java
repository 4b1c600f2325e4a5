package io.gpunvme.cli;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import com.google.gson.stream.JsonReader;
import io.gpunvme.gpu.device.Device;
import io.gpunvme.nvme.driver.BlockDevice;
import io.gpunvme.nvme.driver.ControllerOptions;
import io.gpunvme.nvme.memory.DmaBuffer;
import java.io.IOException;
import java.io.InputStream;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** {@code top}: controllers of this process and of others, as text, JSON and metrics. */
@Timeout(120)
class TopCommandTest {
  /** Other tests that run at the same time have others. */
  private static final String ADDRESS =
      "sim:serial=TOP%d,latency=0".formatted(ProcessHandle.current().pid());

  @TempDir Path folder;
  private final List<Process> others = new ArrayList<>();

  @AfterEach
  void end() throws Exception {
    for (Process other : others) {
      other.destroyForcibly();
      assertThat(other.waitFor(20, TimeUnit.SECONDS)).isTrue();
    }
  }

  private Process start(String... args) throws IOException {
    List<String> command =
        new ArrayList<>(
            List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-XX:TieredStopAtLevel=1",
                "-XX:+UseSerialGC",
                "--enable-native-access=ALL-UNNAMED",
                "-cp",
                System.getProperty("java.class.path"),
                "io.gpunvme.cli.Main"));
    command.addAll(List.of(args));
    Process other =
        new ProcessBuilder(command).redirectError(folder.resolve("log").toFile()).start();
    others.add(other);
    return other;
  }

  private static JsonObject said(Process other) {
    JsonReader said = new JsonReader(other.inputReader(StandardCharsets.UTF_8));
    return JsonParser.parseReader(said).getAsJsonObject();
  }

  private static Device open() {
    return Device.open(ADDRESS, ControllerOptions.defaults());
  }

  /** The devices of one round, once there are some. */
  private static JsonObject round(String address) {
    JsonObject round;
    do {
      round =
          Cli.run("top", "--count", 1, "--interval", "50ms", "--json", address).succeeded().json();
    } while (round.getAsJsonArray("devices").isEmpty());
    return round;
  }

  @Test
  void roundsAsJsonAreALineEach() {
    try (Device device = open();
        BlockDevice blocks =
            BlockDevice.open(device.controller(), device.controller().namespace(1), 4);
        DmaBuffer buffer = DmaBuffer.allocate(device.controller().function(), 4096)) {
      round(ADDRESS);
      AtomicBoolean over = new AtomicBoolean();
      CompletableFuture<Void> reader =
          CompletableFuture.runAsync(
              () -> {
                while (!over.get()) {
                  blocks.read(0, 8, buffer.range(), 0);
                }
              });
      Cli.Result result;
      try {
        result =
            Cli.run("top", "--count", 2, "--interval", "200ms", "--json", ADDRESS, "sim:lba=1")
                .succeeded();
      } finally {
        over.set(true);
        reader.join();
      }
      List<JsonObject> rounds =
          result.out().lines().map(l -> JsonParser.parseString(l).getAsJsonObject()).toList();
      assertThat(rounds).hasSize(2);
      for (JsonObject round : rounds) {
        JsonArray devices = round.getAsJsonArray("devices");
        assertThat(devices).hasSize(1);
        JsonObject one = devices.get(0).getAsJsonObject();
        assertThat(one.get("pid").getAsLong()).isEqualTo(ProcessHandle.current().pid());
        assertThat(one.get("side").getAsString()).isEqualTo("driver");
        assertThat(one.get("address").getAsString()).isEqualTo(ADDRESS);
        assertThat(one.get("commands_per_s").getAsDouble()).isPositive();
        assertThat(one.get("gb_per_s").getAsDouble()).isPositive();
        assertThat(one.get("written_gb_per_s").getAsDouble()).isZero();
        assertThat(one.get("latency_mean_us").getAsDouble()).isPositive();
        assertThat(one.get("recoveries").getAsLong()).isZero();
        JsonObject queue = one.getAsJsonArray("queues").get(0).getAsJsonObject();
        assertThat(queue.get("qid").getAsString()).isEqualTo("1");
        assertThat(queue.get("initiator").getAsString()).isEqualTo("cpu");
        assertThat(queue.get("outstanding").getAsLong()).isBetween(0L, 4L);
        assertThat(queue.get("retries").getAsLong()).isZero();
        assertThat(round.getAsJsonObject("totals").get("devices").getAsInt()).isEqualTo(1);
        assertThat(round.getAsJsonArray("not_driven").toString()).isEqualTo("[\"sim:lba=1\"]");
      }
    }
  }

  @Test
  void asText() {
    try (Device _ = open()) {
      round(ADDRESS);
      String out = Cli.run("top", "--count", 2, "--interval", "50ms", ADDRESS).succeeded().out();
      assertThat(out).doesNotContain("\u001b");
      assertThat(out.lines().filter(line -> line.startsWith("DEVICE "))).hasSize(2);
      assertThat(out.lines().filter(line -> line.startsWith(ADDRESS + "  driver"))).hasSize(2);
      String screen =
          Cli.onTerminal("top", "--count", 2, "--interval", "50ms", ADDRESS).succeeded().out();
      assertThat(screen.split("\u001b\\[H", -1)).as("drawn from the top twice").hasSize(3);
      assertThat(screen).endsWith("\u001b[J").doesNotContain("[?");
      assertThat(screen.replaceAll("\u001b\\[[HKJ]", "").lines())
          .allMatch(line -> line.length() <= 80);
    }
  }

  @Test
  void nobodyNeedsToBeThere() {
    Cli.Result result = Cli.run("top", "--count", 1, "--interval", "1ms", "vfio:ffff:01:00.0");
    assertThat(result.succeeded().out())
        .contains("no process that can be seen", "vfio:ffff:01:00.0: nobody drives it now");
  }

  @Test
  void bothSidesOfAServedControllerAreSeen() throws Exception {
    Path socket = folder.resolve("s");
    String address =
        said(start("sim", "serve", "--socket", socket.toString(), "--json"))
            .get("address")
            .getAsString();
    JsonObject alone = round(address);
    assertThat(alone.getAsJsonArray("not_driven").toString()).contains(address);
    JsonObject controller = alone.getAsJsonArray("devices").get(0).getAsJsonObject();
    assertThat(controller.get("side").getAsString()).isEqualTo("controller");
    assertThat(controller.get("program").getAsString()).isEqualTo("gpunvme sim");
    assertThat(controller.get("latency_mean_us").isJsonNull()).isTrue();
    assertThat(controller.get("outstanding").isJsonNull()).isTrue();

    try (Device _ = Device.open(address, ControllerOptions.defaults())) {
      JsonObject both = round(address);
      while (both.getAsJsonArray("devices").size() < 2) {
        both = round(address);
      }
      assertThat(both.getAsJsonArray("not_driven")).isEmpty();
    }
  }

  @Test
  void metricsAreServedUntilASignal() throws Exception {
    Process server = start("top", "--metrics", "0", "--json", ADDRESS);
    String url = said(server).get("url").getAsString();
    String text;
    try (Device _ = open()) {
      do {
        try (InputStream body = URI.create(url).toURL().openStream()) {
          text = new String(body.readAllBytes(), StandardCharsets.UTF_8);
        }
      } while (!text.contains("gpunvme_controller_info"));
    }
    assertThat(text)
        .contains("# TYPE gpunvme_recoveries_total counter")
        .contains("device=\"" + ADDRESS + "\"")
        .contains("pid=\"" + ProcessHandle.current().pid() + "\"");

    assertThat(new ProcessBuilder("kill", "-TERM", "" + server.pid()).start().waitFor()).isZero();
    assertThat(server.waitFor(60, TimeUnit.SECONDS)).isTrue();
    assertThat(server.exitValue()).isEqualTo(143);
    assertThat(Files.readString(folder.resolve("log")))
        .isEqualTo("gpunvme: interrupted; nobody serves metrics at " + url + " any more\n");
  }
}
