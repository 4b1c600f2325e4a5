package io.gpunvme.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import io.gpunvme.cuda.Cuda;
import io.gpunvme.gpu.device.Device;
import io.gpunvme.nvme.driver.BlockDevice;
import io.gpunvme.nvme.driver.ControllerOptions;
import io.gpunvme.nvme.driver.Namespace;
import io.gpunvme.nvme.memory.DmaBuffer;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * What an owner of an SSD does with it first, on a real controller. Whatever it is, the SSD is as
 * it was afterwards. Each by the CPU, and by the code that a GPU runs: where {@code
 * GPUNVME_LIBCUDA} names the library that runs it on the CPU, it rings the real doorbells.
 */
@Tag("qemu")
class RealCommandsTest {
  private static final String DEVICE = System.getProperty("gpunvme.device", "");

  /** At the front; more than any command is given. */
  private static final int BYTES = 8 << 20;

  /** In seconds: where the processor is emulated, a start takes one of them. */
  private static final int LONGEST_WATCH = 16;

  @TempDir Path folder;

  /** Before the first test. */
  private static byte[] before = {};

  @BeforeEach
  void look() {
    assumeTrue(!DEVICE.isEmpty(), "no real controller: none is named by -Dgpunvme.device");
    if (before.length == 0) {
      before = content();
    }
  }

  @AfterEach
  void nothingHasChanged() {
    if (!DEVICE.isEmpty()) {
      assertThat(Arrays.mismatch(before, content())).as("first byte that differs").isEqualTo(-1);
    }
  }

  /** Not by a command: what a command makes of it takes longer than to read it. */
  private static byte[] content() {
    try (Device device = Device.open(DEVICE, ControllerOptions.defaults());
        DmaBuffer buffer = DmaBuffer.allocate(device.controller().function(), 1 << 20)) {
      Namespace namespace = device.controller().namespaces().getFirst();
      int blocks = (int) buffer.size() / namespace.blockSize();
      ByteBuffer content = ByteBuffer.allocate(BYTES);
      try (BlockDevice reader = BlockDevice.open(device.controller(), namespace, 8)) {
        for (long lba = 0; content.hasRemaining(); lba += blocks) {
          reader.read(lba, blocks, buffer.range(), 0);
          content.put(buffer.memory().asByteBuffer());
        }
      }
      return content.array();
    }
  }

  static List<String> initiators() {
    return Cuda.isAvailable() ? List.of("cpu", "gpu") : List.of("cpu");
  }

  private static JsonObject run(String initiator, Object... command) {
    Stream<Object> more =
        Stream.of("--device", DEVICE, "--initiator", initiator, "--placement", "host", "--json");
    return Cli.run(Stream.concat(Stream.of(command), more).toArray()).succeeded().json();
  }

  @ParameterizedTest
  @MethodSource("initiators")
  void demoReadsAndCompares(String initiator) {
    JsonObject json = run(initiator, "demo", "--read", "1MiB+4MiB", "--queues", 2, "--depth", 2);
    assertThat(json.get("verified").getAsBoolean()).isTrue();
    assertThat(json.get("bytes").getAsLong()).isEqualTo(4 << 20);
    assertThat(json.get("initiator").getAsString()).isEqualToIgnoringCase(initiator);
    assertThat(json.get("placement").getAsString()).isEqualTo("host");
  }

  @ParameterizedTest
  @MethodSource("initiators")
  void demoBringsAFileAndTakesItAwayAgain(String initiator) {
    JsonObject json =
        run(
            initiator,
            "demo",
            "--write",
            "2MiB+4MiB",
            "--allow-write",
            "--queues",
            2,
            "--depth",
            2);
    assertThat(json.get("verified").getAsBoolean()).isTrue();
    assertThat(json.get("restored").getAsBoolean()).isTrue();
    assertThat(json.get("bytes").getAsLong()).isEqualTo(4 << 20);
  }

  @ParameterizedTest
  @MethodSource("initiators")
  void benchMeasures(String initiator) throws Exception {
    for (String what : List.of("random", "stream", "queue")) {
      JsonObject json =
          what.equals("random") ? watchedBench(what, initiator) : bench(what, initiator, 1);
      assertThat(json.get("initiator").getAsString()).isEqualToIgnoringCase(initiator);
      for (JsonElement one : json.getAsJsonArray("results")) {
        assertThat(one.getAsJsonObject().get("median").getAsDouble()).isPositive();
      }
      JsonObject ssd = json.getAsJsonArray("ssds").get(0).getAsJsonObject();
      assertThat(DEVICE).startsWith(ssd.get("device").getAsString());
      assertThat(ssd.get("read_commands").getAsLong()).isPositive();
    }
  }

  /** What was there is compared after each test. */
  @ParameterizedTest
  @MethodSource("initiators")
  void benchWritesAndPutsBack(String initiator) {
    JsonObject json =
        run(
            initiator,
            "bench",
            "random",
            "--queues",
            2,
            "--depth",
            16,
            "--range",
            "1MiB+1MiB",
            "--mix",
            50,
            "--allow-write");
    assertThat(json.get("restored").getAsBoolean()).isTrue();
    JsonObject conditions =
        json.getAsJsonArray("results").get(0).getAsJsonObject().getAsJsonObject("conditions");
    assertThat(conditions.get("mix").getAsInt()).isEqualTo(50);
    assertThat(conditions.get("initiator").getAsString()).isEqualToIgnoringCase(initiator);
    assertThat(conditions.get("written_commands").getAsLong()).isPositive();
  }

  private static JsonObject bench(String what, String initiator, int seconds) {
    Object[] command = {
      "bench", what, "--queues", 2, "--depth", 16, "--range", "1MiB+4MiB", "--seconds", seconds
    };
    return run(initiator, command);
  }

  /**
   * Looks with {@code top} how it gets on. That needs two looks while the commands run, and each
   * takes as long as the machine lets it; so the benchmark lasts longer until one is seen.
   */
  private static JsonObject watchedBench(String what, String initiator) throws Exception {
    for (int seconds = 1; seconds <= LONGEST_WATCH; seconds *= 4) {
      int lasting = seconds;
      FutureTask<JsonObject> task = new FutureTask<>(() -> bench(what, initiator, lasting));
      Thread thread = Thread.ofPlatform().daemon().start(task);
      double most = 0;
      while (thread.isAlive()) {
        most = Math.max(most, mostCommandsPerSecond(initiator));
      }
      JsonObject json = task.get();
      if (most > 0) {
        return json;
      }
    }
    throw new AssertionError("top has seen none of the commands of " + initiator);
  }

  private static double mostCommandsPerSecond(String initiator) {
    Cli.Result top = Cli.run("top", DEVICE, "--interval", "300ms", "--count", 2, "--json");
    return top.succeeded()
        .out()
        .lines()
        .mapToDouble(round -> commandsPerSecond(round, initiator))
        .max()
        .orElse(0);
  }

  private static double commandsPerSecond(String round, String initiator) {
    double most = 0;
    for (JsonElement device :
        JsonParser.parseString(round).getAsJsonObject().getAsJsonArray("devices")) {
      assertThat(DEVICE).isEqualTo(device.getAsJsonObject().get("address").getAsString());
      for (JsonElement queue : device.getAsJsonObject().getAsJsonArray("queues")) {
        JsonElement rate = queue.getAsJsonObject().get("commands_per_s");
        boolean own =
            queue.getAsJsonObject().get("initiator").getAsString().equalsIgnoreCase(initiator);
        most = rate.isJsonNull() || !own ? most : Math.max(most, rate.getAsDouble());
      }
    }
    return most;
  }

  /** How it is bound for this address. */
  private static List<String> target() {
    return DEVICE.startsWith("kmod:")
        ? List.of("--kmod")
        : DEVICE.startsWith("sysfs:") ? List.of("--no-driver") : List.of();
  }

  private static void bind() {
    Stream<String> words = Stream.of("bind", pciAddress());
    Cli.run(Stream.concat(words, target().stream()).toArray()).succeeded();
  }

  private static String pciAddress() {
    return DEVICE.replaceAll("^\\w+:([0-9a-f:.]+).*", "$1");
  }

  @Test
  void tryGivesTheSsdBackWhenItIsInterrupted() throws Exception {
    String command = System.getProperty("gpunvme.command", "");
    assumeTrue(!command.isEmpty(), "no program is named by -Dgpunvme.command");
    Cli.run("unbind", pciAddress()).succeeded();
    Path log = folder.resolve("log");
    List<String> words =
        List.of(command, "try", pciAddress(), "--yes", "--initiator", "cpu", "--seconds", "100");
    Process process =
        new ProcessBuilder(Stream.concat(words.stream(), target().stream()).toList())
            .redirectErrorStream(true)
            .redirectOutput(log.toFile())
            .start();
    try {
      long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(90);
      while (!Files.readString(log).contains("demo") && System.nanoTime() < end) {
        Thread.sleep(50);
      }
      String pid = Long.toString(process.pid());
      assertThat(new ProcessBuilder("kill", "-INT", pid).start().waitFor()).isZero();
      assertThat(process.waitFor(60, TimeUnit.SECONDS)).as("ended").isTrue();
      assertThat(process.exitValue()).isEqualTo(128 + 2);
      assertThat(Files.readString(log))
          .containsPattern("done +demo")
          .containsPattern("failed +bench +interrupted")
          .containsPattern("done +unbind +nvme has it again")
          .contains("gpunvme: interrupted; " + pciAddress() + " is given back");
    } finally {
      process.destroyForcibly();
      bind();
    }
  }

  @Test
  void tryTakesTheSsdFromTheKernelAndGivesItBack() {
    String ssd = pciAddress();
    assertThat(Cli.run("try", DEVICE, "--initiator", "cpu").succeeded().out())
        .containsPattern("done +bench");
    Cli.run("unbind", ssd).succeeded();
    try {
      Stream<String> words = Stream.of("try", ssd, "--yes", "--initiator", "cpu", "--json");
      JsonObject json =
          Cli.run(Stream.concat(words, target().stream()).toArray()).succeeded().json();
      List<String> done = new ArrayList<>();
      for (JsonElement step : json.getAsJsonArray("steps")) {
        if (step.getAsJsonObject().get("outcome").getAsString().equals("done")) {
          done.add(step.getAsJsonObject().get("step").getAsString());
        }
      }
      assertThat(done).containsExactly("look", "bind", "identify", "demo", "bench", "unbind");
    } finally {
      bind();
    }
  }

  /** Longer rings than those of depth 32 are not contiguous where there is no IOMMU. */
  @ParameterizedTest
  @MethodSource("initiators")
  void gatherWalks(String initiator) {
    JsonObject json =
        run(
            initiator,
            "gather",
            "--rows",
            500,
            "--threads",
            16,
            "--hops",
            4,
            "--queues",
            2,
            "--depth",
            32);
    assertThat(json.get("queue_pairs").getAsInt()).isEqualTo(2);
    assertThat(json.get("depth").getAsInt()).isEqualTo(32);
    assertThat(json.get("verified").getAsBoolean()).isTrue();
    assertThat(json.get("reads").getAsLong()).isEqualTo(64);
    assertThat(json.get("initiator").getAsString()).isEqualToIgnoringCase(initiator);
  }

  /** What opens an SSD, with nothing else to complain about. */
  private static List<String> openers(String device) {
    List<String> all =
        new ArrayList<>(
            List.of(
                "identify " + device,
                "demo --initiator cpu --device " + device,
                "bench random --initiator cpu --device " + device,
                "bench stream --initiator cpu --device " + device,
                "gather --initiator cpu --device " + device,
                "load --accelerator cpu --device " + device));
    if (Cuda.isAvailable()) {
      all.add("check-p2p " + device);
      all.add("demo --initiator gpu --device " + device);
      all.add("gather --initiator gpu --device " + device);
    }
    return all;
  }

  private static void eachIsRefused(String device, String why) {
    for (String line : openers(device)) {
      Cli.Result result = Cli.run((Object[]) line.split(" "));
      assertThat(result.code()).as(line).isIn(ExitCode.FAILURE, ExitCode.USAGE);
      assertThat(result.err()).as(line).hasLineCount(1).containsPattern(why);
    }
  }

  /** One in use, one of the kernel's, and what is none. */
  @Test
  void anSsdThatCannotBeHadIsRefused() throws IOException {
    try (Device first = Device.open(DEVICE, ControllerOptions.defaults())) {
      assertThat(first.controller().namespaces()).isNotEmpty();
      eachIsRefused(DEVICE, "in use|busy|another process|already|somebody");
    }
    Cli.run("unbind", pciAddress()).succeeded();
    try {
      eachIsRefused(DEVICE, "gpunvme bind " + pciAddress());
    } finally {
      bind();
    }
    String other;
    try (Stream<Path> functions = Files.list(Path.of("/sys/bus/pci/devices"))) {
      other =
          functions
              .filter(one -> !text(one.resolve("class")).startsWith("0x0108"))
              .map(one -> one.getFileName().toString())
              .sorted()
              .findFirst()
              .orElseThrow();
    }
    eachIsRefused(
        DEVICE.replace(pciAddress(), other), other + " is no NVMe controller but another device");
  }

  private static String text(Path file) {
    try {
      return Files.readString(file);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
