package io.gpunvme.cli;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import io.gpunvme.gpu.device.Device;
import io.gpunvme.gpu.queue.CpuCuda;
import io.gpunvme.nvme.driver.ControllerOptions;
import io.gpunvme.sim.SimConfig;
import io.gpunvme.sim.SimulatedController;
import io.gpunvme.sim.serve.VfioUserServer;
import io.gpunvme.storage.StorageAddress;
import io.gpunvme.testing.Images;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * What owners of an SSD run, with the code that a GPU runs as the initiator: on SSDs of another
 * process that fail now and then or for good, on sets, on partitions, on files.
 */
@Timeout(180)
class KernelCommandsTest {
  private static final int BYTES = 4 << 20;

  /** Each transfer meets some of these. */
  private static final String NOW_AND_THEN =
      "status=generic/namespace-not-ready on read every=40; delay=1ms on read every=100";

  private static CliLines gpu;

  @TempDir private Path folder;
  private byte[] a;

  @BeforeAll
  static void start() throws IOException {
    gpu = CliLines.withGpu(CpuCuda.library());
  }

  @AfterAll
  static void end() {
    if (gpu != null) {
      gpu.close();
    }
  }

  @BeforeEach
  void write() throws IOException {
    Files.write(folder.resolve("a"), bytes(1));
    model(folder.resolve("a"));
    a = Files.readAllBytes(folder.resolve("a"));
    Files.write(folder.resolve("b"), bytes(2));
    Files.write(folder.resolve("c"), a);
  }

  /** At the beginning; behind it is what was there. */
  private void model(Path image) throws IOException {
    String header =
        "{\"w\":{\"dtype\":\"U8\",\"shape\":[%d],\"data_offsets\":[0,%<d]}}".formatted(BYTES / 4);
    ByteBuffer file =
        ByteBuffer.allocate(8 + header.length() + BYTES / 4).order(ByteOrder.LITTLE_ENDIAN);
    file.putLong(header.length()).put(header.getBytes(StandardCharsets.UTF_8));
    Path model = Files.write(folder.resolve("m.safetensors"), file.array());
    String device = "sim:latency=0,file=" + image;
    Cli.run("write-model", model, "--device", device, "--allow-write", "--accelerator", "cpu")
        .succeeded();
  }

  @AfterEach
  void nothingIsWritten() throws IOException {
    assertThat(Files.mismatch(folder.resolve("a"), folder.resolve("c"))).isEqualTo(-1);
    assertThat(Files.readAllBytes(folder.resolve("a"))).isEqualTo(a);
  }

  private static byte[] bytes(int seed) {
    byte[] all = new byte[BYTES];
    new Random(seed).nextBytes(all);
    return all;
  }

  private String named(String address) {
    return address.replaceAll("file=(?=[a-z])", "latency=0,readonly=on,file=" + folder + "/");
  }

  private Cli.Result run(String line, String device) throws IOException {
    List<String> words = new ArrayList<>();
    for (String word : line.strip().split(" +")) {
      words.add(word.equals("DEVICE") ? device : word);
    }
    return gpu.run(words);
  }

  private SimulatedController ssd(String faults) {
    SimulatedController ssd =
        SimulatedController.create(
            SimConfig.parse("latency=0,readonly=on,file=" + folder.resolve("a")));
    ssd.faults().add(faults);
    return ssd;
  }

  /** Also of the SSDs behind an address, one after the other. */
  @ParameterizedTest
  @CsvSource({
    "sim:file=a,1",
    "'stripe:sim:file=a,sim:file=b;unit=8KiB',2",
    "'replica:sim:file=a,sim:file=c',2",
    "'sim:file=disk#2',1",
    "'stripe:sim:file=disk#1,sim:file=disk#2',1",
    "'sim:file=ext4:/data',1"
  })
  void checkP2pTriesEachSsd(String address, int ssds) throws IOException {
    images();
    JsonObject json = run("check-p2p DEVICE --json", named(address)).succeeded().json();
    assertThat(json.get("gpu_drives_all").getAsBoolean()).isTrue();
    assertThat(json.get("device").getAsString()).isEqualTo(named(address));
    assertThat(json.getAsJsonArray("ssds")).hasSize(ssds);
    for (JsonElement ssd : json.getAsJsonArray("ssds")) {
      assertThat(ssd.getAsJsonObject().get("result").getAsString()).isEqualTo("gpu-drives-ssd");
      for (JsonElement count : ssd.getAsJsonObject().getAsJsonArray("arrivals")) {
        assertThat(count.getAsJsonObject().get("late").getAsLong()).isZero();
      }
    }
    assertThat(run("check-p2p DEVICE", named(address)).succeeded().out().split("Placements"))
        .hasSize(ssds + 1);
  }

  @Test
  void checkP2pCountsDataThatComesLate() throws IOException {
    Path early = Files.writeString(folder.resolve("early"), "early=2ms on read after=20 every=3");
    Cli.Result result = run("check-p2p DEVICE --json --faults @" + early, named("sim:file=a"));
    assertThat(result.code()).as(result.err()).isEqualTo(ExitCode.FAILURE);
    JsonObject ssd = result.json().getAsJsonArray("ssds").get(0).getAsJsonObject();
    assertThat(ssd.get("result").getAsString()).isEqualTo("only-host-data");
    JsonObject count = ssd.getAsJsonArray("arrivals").get(0).getAsJsonObject();
    assertThat(count.get("bytes").getAsLong()).isEqualTo(4096);
    assertThat(count.get("completions").getAsString()).isEqualTo("host");
    assertThat(count.get("used").getAsBoolean()).isTrue();
    assertThat(count.get("late").getAsLong()).isBetween(1L, count.get("reads").getAsLong() - 1);
    assertThat(count.get("latest_us").getAsDouble()).isPositive();
    assertThat(run("check-p2p DEVICE --faults @" + early, named("sim:file=a")).out())
        .contains("failed   data-before-completion", "only-host-data: ", "us later");
  }

  private void images() throws IOException {
    Path source = Files.createDirectory(folder.resolve("source"));
    Files.write(source.resolve("data"), bytes(5));
    Images.ext4(folder.resolve("ext4"), "8M", source);
    Images.partition(folder.resolve("disk"), folder.resolve("ext4"));
  }

  @Test
  void checkP2pTellsOfTheOthersWhatItFoundOut() throws IOException {
    String set = named("stripe:vfio-user:/nonexistent,sim:file=a");
    Cli.Result result = run("check-p2p DEVICE --json", set);
    assertThat(result.code()).isEqualTo(ExitCode.FAILURE);
    assertThat(result.json().get("gpu_drives_all").getAsBoolean()).isFalse();
    JsonObject tried = result.json().getAsJsonArray("ssds").get(0).getAsJsonObject();
    assertThat(tried.get("result").getAsString()).isEqualTo("gpu-drives-ssd");
    JsonObject other = result.json().getAsJsonArray("ssds").get(1).getAsJsonObject();
    assertThat(other.get("error").getAsString()).contains("there is no socket /nonexistent");
    assertThat(run("check-p2p DEVICE", set).out()).contains("vfio-user:/nonexistent was not tried");
  }

  @Test
  void checkP2pSaysWhatItCannotTry() throws IOException {
    run("check-p2p DEVICE", folder.resolve("a").toString()).refused("Name an SSD");
    run("check-p2p DEVICE --faults drop", named("stripe:sim:file=a,sim:file=b"))
        .refused("one embedded SSD");
    Path drop = Files.writeString(folder.resolve("drop"), "drop on read");
    Cli.Result deaf =
        run("check-p2p DEVICE --timeout 200ms --faults @" + drop, named("sim:file=a"));
    assertThat(deaf.code()).isEqualTo(ExitCode.FAILURE);
    assertThat(deaf.out()).contains("doorbell-not-heard");
    Path gone = Files.writeString(folder.resolve("gone"), "gone on read nth=3");
    run("check-p2p DEVICE --faults @" + gone, named("sim:file=a"))
        .failed(ExitCode.FAILURE, "CSTS reads all ones");
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "demo --device DEVICE --read 1MiB+3MiB --max-transfer 16KiB",
        "bench random --device DEVICE --blocks 512 --depth 32 --queues 2",
        "bench stream --device DEVICE --max-transfer 16KiB",
        "bench queue --device DEVICE --depth 32",
        "gather --device DEVICE --rows 1000 --threads 64 --hops 8 --depth 32 --queues 2",
      })
  void anSsdThatFailsNowAndThenIsRead(String line) throws IOException {
    try (SimulatedController ssd = ssd(NOW_AND_THEN);
        VfioUserServer server = VfioUserServer.start(ssd, folder.resolve("socket"))) {
      String device = "vfio-user:" + server.socket();
      JsonObject json = run(line + " --initiator gpu --json", device).succeeded().json();
      assertThat(json.get("initiator").getAsString()).isEqualTo("GPU");
      JsonObject counts =
          json.has("results")
              ? json.getAsJsonArray("results")
                  .get(0)
                  .getAsJsonObject()
                  .getAsJsonObject("conditions")
              : json;
      assertThat(counts.get("retries").getAsLong()).isPositive();
    }
  }

  /** Kernels read a layer, and a kernel works with the one before: on whatever an address names. */
  @ParameterizedTest
  @CsvSource({
    "sim:file=a,host",
    "'stripe:sim:file=a,sim:file=b;unit=8KiB',vram-data",
    "'replica:sim:file=a,sim:file=c',vram",
    "'sim:file=ext4:/data',vram-data"
  })
  void layersAreReadBesideKernels(String address, String placement) throws IOException {
    images();
    String line = "bench layers --device DEVICE --range 1MiB+512KiB --initiator gpu --json";
    JsonObject json = run(line + " --placement " + placement, named(address)).succeeded().json();
    assertThat(json.getAsJsonArray("results")).hasSize(3);
    for (JsonElement result : json.getAsJsonArray("results")) {
      JsonObject conditions = result.getAsJsonObject().getAsJsonObject("conditions");
      assertThat(conditions.get("initiator").getAsString()).isEqualTo("GPU");
      assertThat(conditions.get("placement").getAsString()).isEqualTo(placement);
      assertThat(conditions.get("work_by").getAsString()).isEqualTo("a kernel");
      assertThat(conditions.get("checked_against").getAsString()).isEqualTo("what the CPU reads");
    }
  }

  private static void isLoaded(JsonObject json, String mode) {
    JsonObject model = json.getAsJsonArray("models").get(0).getAsJsonObject();
    assertThat(model.get("mode").getAsString()).isEqualToIgnoringCase(mode);
    assertThat(model.get("verified").getAsInt()).isOne();
  }

  @ParameterizedTest
  @ValueSource(strings = {"cpu", "gpu"})
  void aModelIsLoadedAsOneLikes(String initiator) throws IOException {
    String line =
        "load --device DEVICE --max-transfer 4KiB --placement host --queues 2 --depth 32 --verify"
            + " --json --initiator "
            + initiator;
    try (SimulatedController ssd = ssd(NOW_AND_THEN);
        VfioUserServer server = VfioUserServer.start(ssd, folder.resolve("socket"))) {
      String device = "vfio-user:" + server.socket();
      JsonObject json = run(line, device).succeeded().json();
      isLoaded(json, initiator + "-initiated, host, 2 queue pairs of depth 32");
      ssd.faults().add("gone on read nth=60");
      run(line, device).failed(ExitCode.FAILURE, "");
    }
  }

  @ParameterizedTest
  @CsvSource({"cpu,vram-data", "gpu,vram-data", "gpu,vram"})
  void aModelIsLoadedToWhereOneLikes(String initiator, String placement) throws IOException {
    String line =
        "load --device DEVICE --queues 2 --depth 32 --verify --json --initiator %s --placement %s"
            .formatted(initiator, placement);
    JsonObject json = run(line, named("sim:file=a")).succeeded().json();
    isLoaded(json, "%s-initiated, %s, 2 queue pairs of depth 32".formatted(initiator, placement));
  }

  /** What the pair cannot do, and what it can. */
  @ParameterizedTest
  @ValueSource(
      strings = {
        "demo --device DEVICE",
        "bench random --device DEVICE",
        "bench stream --device DEVICE",
        "bench queue --device DEVICE",
        "bench layers --device DEVICE",
        "gather --rows 100 --device DEVICE",
        "load --device DEVICE",
      })
  void aPlacementThatThePairCannotDoIsRefused(String line) throws IOException {
    try (SimulatedController ssd = ssd("");
        VfioUserServer server = VfioUserServer.start(ssd, folder.resolve("socket"))) {
      String device = "vfio-user:" + server.socket();
      for (String how : List.of("cpu --placement vram-data", "gpu --placement vram")) {
        run(line + " --initiator " + how, device)
            .failed(ExitCode.FAILURE, "host memory only; keep queues and data in host memory");
      }
      run(line + " --initiator cpu --placement vram", device)
          .refused("the CPU does not reach queues in GPU memory; placement vram needs a GPU");
    }
  }

  @Test
  void aFileOfTheKernelsHasNoInitiator() throws IOException {
    run("load DEVICE --initiator gpu", folder.resolve("m.safetensors").toString())
        .refused("is a file of a mounted file system");
  }

  /** In one line, and the next one can have the SSD: everything is given back. */
  @ParameterizedTest
  @ValueSource(
      strings = {
        "demo --device DEVICE --read 1MiB+3MiB --max-transfer 16KiB",
        "bench random --device DEVICE --blocks 512 --depth 32 --queues 2",
        "bench stream --device DEVICE --max-transfer 16KiB",
        "bench queue --device DEVICE --depth 32",
        "bench layers --device DEVICE --max-transfer 16KiB",
        "gather --device DEVICE --rows 1000 --threads 64 --hops 8 --depth 32 --queues 2",
      })
  void anSsdThatDiesIsTold(String line) throws IOException {
    try (SimulatedController ssd = ssd("gone on read nth=60");
        VfioUserServer server = VfioUserServer.start(ssd, folder.resolve("socket"))) {
      String device = "vfio-user:" + server.socket();
      for (String who : List.of("gpu", "cpu")) {
        run(line + " --initiator " + who, device).failed(ExitCode.FAILURE, "");
        ssd.faults().clear();
        assertThat(run("identify DEVICE", device).code()).isZero();
        ssd.faults().add("gone on read nth=60");
      }
    }
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "demo --device DEVICE --read 4MiB+512         | is not inside",
        "demo --device DEVICE --read 0+513            | does not end at a multiple",
        "bench random --device DEVICE --range 4MiB+1  | is not inside",
        "bench stream --device DEVICE --range 5MiB    | is not inside",
        "bench layers --device DEVICE --range 5MiB    | is not inside",
        "bench random --device DEVICE --blocks 768    | whole multiples of 512",
        "gather --device DEVICE --rows 100000         | at most --rows 1024",
        "demo --device DEVICE --nsid 2                | no active namespace 2",
        "demo --device DEVICE --queues 1000           | queue pairs",
      })
  void whatIsNotThereIsRefused(String line, String why) throws IOException {
    try (SimulatedController ssd = ssd("");
        VfioUserServer server = VfioUserServer.start(ssd, folder.resolve("socket"))) {
      run(line + " --initiator gpu", "vfio-user:" + server.socket()).refused(why);
    }
  }

  /** The first one has it. */
  @ParameterizedTest
  @ValueSource(
      strings = {
        "demo --device DEVICE",
        "bench random --device DEVICE",
        "bench stream --device DEVICE",
        "bench layers --device DEVICE",
        "gather --device DEVICE",
        "check-p2p DEVICE",
        "try DEVICE --yes",
      })
  void anSsdInUseIsRefused(String line) throws IOException {
    try (SimulatedController ssd = ssd("");
        VfioUserServer server = VfioUserServer.start(ssd, folder.resolve("socket"));
        Device first = Device.open("vfio-user:" + server.socket(), ControllerOptions.defaults())) {
      assertThat(first.controller().namespaces()).hasSize(1);
      Cli.Result result = run(line, "vfio-user:" + server.socket() + ",timeout=200ms");
      assertThat(result.code()).isEqualTo(ExitCode.FAILURE);
      assertThat(result.err() + result.out()).contains("one client at a time: end the other one");
    }
  }

  /** Of a file of ours, which an embedded SSD serves, and of what has an SSD's address. */
  @ParameterizedTest
  @ValueSource(strings = {"FILE", "sim:file=a", "stripe:sim:file=a,sim:file=b;unit=8KiB"})
  void featuresAreGathered(String address) throws IOException {
    boolean file = address.equals("FILE");
    String device = file ? folder.resolve("a").toString() : named(address);
    JsonObject json =
        run(
                "bench features DEVICE --row-bytes 1000 --batch 300 --batches 2 --cache 1MiB"
                    + " --json",
                device)
            .succeeded()
            .json();
    assertThat(json.get("initiator").getAsString()).isEqualTo("GPU");
    assertThat(json.get("benchmark").getAsString()).isEqualTo("features");
    assertThat(json.get("device").getAsString())
        .isEqualTo(
            (file ? FileAsSsd.of(folder.resolve("a"), false) : StorageAddress.parse(device))
                .toString());
    assertThat(json.get("placement").getAsString()).isEqualToIgnoringCase("host");
    assertThat(json.get("verified_rows").getAsInt()).isEqualTo(300);
    assertThat(json.get("reads").getAsLong()).isBetween(300L, 1300L);
    assertThat(json.get("read_bytes").getAsLong()).isEqualTo(4096 * json.get("reads").getAsLong());
    assertThat(json.get("hit_rate").getAsDouble()).isBetween(0.0, 0.99);
    assertThat(json.get("rows_per_second").getAsDouble()).isPositive();
    String text = run("bench features DEVICE --batch 10 --batches 1", device).succeeded().out();
    assertThat(text).contains("GPU, to ", "verified", "10 rows of the last batch");
    assertThat(text.contains("read through an embedded SSD")).isEqualTo(file);
  }

  @Test
  void rowsWrittenBackStayWhatTheyAre() throws IOException {
    Path copy = Files.copy(folder.resolve("a"), folder.resolve("copy"));
    String line =
        "bench embedding DEVICE --row-bytes 600 --batch 100 --batches 3 --cache 64KiB --json";
    assertThat(run(line, copy.toString()).code()).isEqualTo(ExitCode.USAGE);
    JsonObject json = run(line + " --allow-write", copy.toString()).succeeded().json();
    assertThat(json.get("initiator").getAsString()).isEqualTo("GPU");
    assertThat(json.get("writes").getAsLong()).isPositive();
    assertThat(json.get("write_failures").getAsLong()).isZero();
    assertThat(Files.mismatch(copy, folder.resolve("a"))).isEqualTo(-1);
    json = run(line + " --allow-write --initiator cpu", copy.toString()).succeeded().json();
    assertThat(json.get("initiator").getAsString()).isEqualTo("CPU");
    assertThat(json.has("reads")).isFalse();
    assertThat(Files.mismatch(copy, folder.resolve("a"))).isEqualTo(-1);
  }

  @Test
  void rowsThatFailAreTold() throws IOException {
    String device =
        named("sim:faults=status=media/unrecovered-read-error dnr on read every=7,file=a");
    Cli.Result result = run("bench features DEVICE --batch 500 --batches 1", device);
    assertThat(result.code()).isEqualTo(ExitCode.FAILURE);
    assertThat(result.err()).contains("that failed", "Unrecovered Read Error");
  }

  @Test
  void numbersOfRowsAreLookedAt() throws IOException {
    for (String wrong : List.of("--skew 0.5", "--row-bytes 8MiB", "--page 3000", "--cache 4KiB")) {
      Cli.Result result = run("bench features DEVICE " + wrong, named("sim:file=a"));
      assertThat(result.code()).as(wrong).isEqualTo(ExitCode.USAGE);
    }
    assertThat(run("bench features DEVICE", "/nowhere").code()).isNotEqualTo(ExitCode.OK);
  }
}
