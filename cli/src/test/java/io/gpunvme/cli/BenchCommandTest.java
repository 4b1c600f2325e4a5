package io.gpunvme.cli;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import io.gpunvme.cuda.Cuda;
import io.gpunvme.testing.Images;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** {@code bench}. */
class BenchCommandTest {
  private static final int BYTES = 4 << 20;

  @TempDir Path folder;

  @Test
  void theCpuReadsAtRandom() {
    JsonObject json =
        Cli.run("bench", "random", "--initiator", "cpu", "--queues", 1, "--depth", 8, "--json")
            .succeeded()
            .json();

    assertThat(json.get("benchmark").getAsString()).isEqualTo("random");
    assertThat(json.get("initiator").getAsString()).isEqualTo("CPU");
    List<String> ids = new ArrayList<>();
    for (JsonElement element : json.getAsJsonArray("results")) {
      JsonObject result = element.getAsJsonObject();
      ids.add(result.get("id").getAsString());
      assertThat(result.get("verified").getAsBoolean()).isTrue();
      assertThat(result.get("unit").getAsString()).isEqualTo("commands/s");
      assertThat(result.get("samples").getAsInt()).isGreaterThanOrEqualTo(3);
      assertThat(result.get("min").getAsDouble())
          .isPositive()
          .isLessThanOrEqualTo(result.get("median").getAsDouble());
      assertThat(result.get("median").getAsDouble())
          .isLessThanOrEqualTo(result.get("max").getAsDouble());
      JsonObject conditions = result.getAsJsonObject("conditions");
      assertThat(conditions.get("queue_pairs").getAsInt()).isEqualTo(1);
      assertThat(conditions.get("depth").getAsInt()).isEqualTo(8);
    }
    assertThat(ids).containsExactly("random.4k.cpu", "random.512.cpu");
  }

  @Test
  void aStreamEndsWithATable() {
    Cli.Result result = Cli.run("bench", "stream", "--initiator", "cpu").succeeded();

    assertThat(result.out())
        .startsWith("initiator CPU")
        .containsPattern("stream.1m.cpu +\\d+\\.\\d\\d +\\d+\\.\\d\\d +\\d+\\.\\d\\d +GB/s")
        .containsPattern("command bytes +1048576")
        .containsPattern("queue pairs +\\d");
  }

  private String image() throws IOException {
    byte[] bytes = new byte[BYTES];
    new Random(1).nextBytes(bytes);
    return "sim:latency=0,file=" + Files.write(folder.resolve("ssd.img"), bytes);
  }

  @Test
  void somebodysSsdIsOnlyRead() throws IOException {
    String address = image();
    byte[] before = Files.readAllBytes(folder.resolve("ssd.img"));
    JsonObject json =
        Cli.run(
                "bench",
                "random",
                "--device",
                address,
                "--initiator",
                "cpu",
                "--range",
                "1MiB+2MiB",
                "--blocks",
                "512,4KiB,64KiB",
                "--json")
            .succeeded()
            .json();
    assertThat(json.get("initiator").getAsString()).isEqualTo("CPU");
    assertThat(json.get("accelerator").getAsString()).isNotEmpty();
    List<String> ids = new ArrayList<>();
    long commands = 0;
    for (JsonElement element : json.getAsJsonArray("results")) {
      JsonObject result = element.getAsJsonObject();
      ids.add(result.get("id").getAsString());
      JsonObject conditions = result.getAsJsonObject("conditions");
      assertThat(conditions.get("range_bytes").getAsLong()).isEqualTo(2 << 20);
      assertThat(conditions.get("latency_p50_us").getAsDouble())
          .isPositive()
          .isLessThanOrEqualTo(conditions.get("latency_p99_us").getAsDouble());
      assertThat(conditions.get("doorbells_per_command").getAsDouble()).isBetween(0.01, 2.0);
      commands += conditions.get("commands").getAsLong();
    }
    assertThat(ids).containsExactly("random.512.cpu", "random.4k.cpu", "random.64k.cpu");
    JsonObject ssd = json.getAsJsonArray("ssds").get(0).getAsJsonObject();
    assertThat(ssd.get("link").isJsonNull()).isTrue();
    assertThat(ssd.get("read_commands").getAsLong()).isGreaterThan(commands);
    assertThat(ssd.get("media_errors").getAsLong()).isZero();
    assertThat(folder.resolve("ssd.img")).hasBinaryContent(before);
  }

  private static Object[] writing(String device, Object... more) {
    Object[] words = {
      "bench", "random", "--device", device, "--initiator", "cpu", "--mix", 70, "--allow-write"
    };
    return with(words, more);
  }

  @Test
  void whatIsWrittenIsPutBack() throws IOException {
    String address = image();
    Path image = folder.resolve("ssd.img");
    byte[] before = Files.readAllBytes(image);
    Path other = Files.write(folder.resolve("other.img"), before);
    Path data = Files.createDirectory(folder.resolve("source")).resolve("data");
    Files.write(data, Arrays.copyOf(before, 1_500_300));
    Path ext4 = Images.ext4(folder.resolve("ext4"), "8M", data.getParent());
    byte[] whole = Files.readAllBytes(ext4);
    String set = "stripe:" + address + ",sim:latency=0,file=" + other;
    for (String where : List.of(address, set, "sim:latency=0,file=" + ext4 + ":/data")) {
      JsonObject json =
          Cli.run(writing(where, "--range", "4096+1400000", "--blocks", "512,4KiB", "--json"))
              .succeeded()
              .json();
      assertThat(json.get("restored").getAsBoolean()).isTrue();
      long written = 0;
      for (JsonElement result : json.getAsJsonArray("results")) {
        JsonObject conditions = result.getAsJsonObject().getAsJsonObject("conditions");
        long reads = conditions.get("read_commands").getAsLong();
        long writes = conditions.get("written_commands").getAsLong();
        assertThat(reads * 3).isEqualTo(writes * 7).isPositive();
        assertThat(conditions.get("mix").getAsInt()).isEqualTo(70);
        written += writes;
      }
      long counted = 0;
      for (JsonElement ssd : json.getAsJsonArray("ssds")) {
        counted += ssd.getAsJsonObject().get("write_commands").getAsLong();
      }
      assertThat(counted).as(where).isGreaterThan(written);
    }
    assertThat(image).hasBinaryContent(before);
    assertThat(other).hasBinaryContent(before);
    assertThat(ext4).hasBinaryContent(whole);
    Cli.run(writing("replica:" + address + ",sim:size=4MiB", "--range", "1MiB"))
        .refused("name one of them");
  }

  @Test
  void streamsAreWrittenAndPutBackAndATerminalSeesIt() throws IOException {
    Object[] words = {"bench", "stream", "--device", image(), "--initiator", "cpu"};
    byte[] before = Files.readAllBytes(folder.resolve("ssd.img"));
    Cli.Result result =
        Cli.onTerminal(with(words, "--mix", 0, "--range", "1MiB+2MiB", "--allow-write"));
    assertThat(result.code()).as(result.err()).isZero();
    assertThat(result.out())
        .containsPattern("stream.512k.mix0.cpu +\\d+\\.\\d\\d")
        .contains("what was in 1048576+2097152 is there again")
        .containsPattern("write commands +\\+\\d+");
    assertThat(result.err()).contains("keep what is there", "stream", "put it back").endsWith("\r");
    assertThat(folder.resolve("ssd.img")).hasBinaryContent(before);
  }

  @Test
  void alsoIfTheSsdFailsInTheMiddle() throws IOException {
    String address = image();
    byte[] before = Files.readAllBytes(folder.resolve("ssd.img"));
    String fault = "status=media/write-fault dnr on write nth=500";
    Cli.run(writing(address, "--range", "2MiB", "--faults", fault))
        .failed(ExitCode.FAILURE, "Write Fault");
    assertThat(folder.resolve("ssd.img")).hasBinaryContent(before);
    fault = "corrupt on write nth=500";
    Cli.run(writing(address, "--range", "2MiB", "--faults", fault))
        .failed(ExitCode.FAILURE, "is not there");
    assertThat(folder.resolve("ssd.img")).hasBinaryContent(before);
  }

  /** The CPU reads what it compares with by one of them. */
  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 5})
  void anSsdMayHaveFewQueuePairs(int queues) throws IOException {
    String address = image() + ",queues=" + queues;
    byte[] before = Files.readAllBytes(folder.resolve("ssd.img"));
    Cli.Result result = Cli.run(writing(address, "--range", "1MiB"));
    if (queues == 1) {
      result.failed(ExitCode.USAGE, "queue pairs are in use");
    } else {
      result.succeeded();
    }
    assertThat(folder.resolve("ssd.img")).hasBinaryContent(before);
  }

  @Test
  void whatCannotBePutBackIsKept() throws IOException {
    String address = image();
    byte[] before = Files.readAllBytes(folder.resolve("ssd.img"));
    String fault = "status=media/write-fault dnr on write after=500";
    Cli.Result result = Cli.run(writing(address, "--range", "2MiB", "--faults", fault));
    result.failed(ExitCode.FAILURE, "puts it back");
    Matcher copy = Pattern.compile("It is in (\\S+/borrowed.blocks);").matcher(result.err());
    assertThat(copy.find()).as(result.err()).isTrue();
    Path kept = Path.of(copy.group(1));
    try {
      assertThat(kept).hasBinaryContent(Arrays.copyOf(before, 2 << 20));
      assertThat(kept.getParent()).isDirectoryContaining(f -> f.endsWith("put-back.sh"));
    } finally {
      Leftovers.delete(kept.getParent());
      assertThat(kept.getParent()).as("what is needed is never deleted").isDirectory();
      Files.delete(kept.resolveSibling("put-back.sh"));
      Leftovers.delete(kept.getParent());
    }
  }

  @Test
  void writingMustBeWantedAndAllowed() throws IOException {
    String ssd = image();
    Object[] random = {"bench", "random", "--device", ssd, "--initiator", "cpu"};
    Cli.run(with(random, "--mix", 70, "--range", "1MiB")).refused("add --allow-write");
    Cli.run(with(random, "--mix", 70, "--allow-write")).refused("--range OFFSET+SIZE");
    Cli.run(with(random, "--allow-write", "--range", "1MiB")).refused("--mix below 100");
    Cli.run(with(random, "--allow-write", "--mix", 100)).refused("--mix below 100");
    Cli.run(with(random, "--mix", 101)).refused("from 0 to 100");
    Cli.run("bench", "random", "--mix", 70).refused("need --device");
    Cli.run("bench", "stream", "--device", ssd, "--mix", 70).refused("--mix 0");
    Cli.run(writing(ssd, "--range", "5MiB")).refused("is not inside");
    Cli.run(writing("sim:readonly=on,file=" + folder.resolve("ssd.img"), "--range", "1MiB"))
        .refused("write-protected");
  }

  @Test
  void setsOfSsdsEndWithATableOfEach() throws IOException {
    Cli.Result result =
        Cli.run(
                "bench",
                "stream",
                "--device",
                "stripe:" + image() + ",sim:size=4MiB,latency=0",
                "--initiator",
                "cpu")
            .succeeded();
    assertThat(result.out())
        .containsPattern("stream.512k.cpu +\\d+\\.\\d\\d")
        .containsPattern("ssds +2")
        .containsPattern("checked against +what the CPU reads")
        .containsPattern("(?s)longest transfer +512KiB.*longest transfer +512KiB")
        .containsPattern("read commands +\\+\\d+")
        .contains("nothing was written");
  }

  @Test
  void queuesOfAnSsdAreTimedByItsFirstBlock() throws IOException {
    JsonObject json =
        Cli.run("bench", "queue", "--device", image(), "--initiator", "cpu", "--json")
            .succeeded()
            .json();
    JsonObject rate = json.getAsJsonArray("results").get(0).getAsJsonObject();
    JsonObject one = json.getAsJsonArray("results").get(1).getAsJsonObject();
    assertThat(rate.get("id").getAsString()).isEqualTo("queue.ssd.cpu");
    assertThat(rate.getAsJsonObject("conditions").get("queue_pairs").getAsInt()).isEqualTo(4);
    assertThat(one.get("id").getAsString()).isEqualTo("queue.ssd.qd1.cpu");
    assertThat(one.get("unit").getAsString()).isEqualTo("ns");
    assertThat(one.getAsJsonObject("conditions").get("queue_pairs").getAsInt()).isOne();
    assertThat(one.getAsJsonObject("conditions").get("depth").getAsInt()).isOne();
    assertThat(one.get("median").getAsDouble()).isPositive();
  }

  @Test
  void layersOfAnSsdAreReadBesideWork() throws IOException {
    JsonObject json =
        Cli.run(
                "bench",
                "layers",
                "--device",
                image(),
                "--initiator",
                "cpu",
                "--range",
                "1MiB+2MiB",
                "--queues",
                2,
                "--json")
            .succeeded()
            .json();
    assertThat(json.getAsJsonArray("results")).hasSize(3);
    JsonObject conditions =
        json.getAsJsonArray("results").get(0).getAsJsonObject().getAsJsonObject("conditions");
    assertThat(conditions.get("layer_bytes").getAsLong()).isEqualTo(256 << 10);
    assertThat(conditions.get("mode").getAsString()).contains("2 queue pairs");
    JsonObject ssd = json.getAsJsonArray("ssds").get(0).getAsJsonObject();
    assertThat(ssd.get("read_commands").getAsLong()).isPositive();
  }

  /** They are about 1: what is behind the point matters. */
  @Test
  void aRatioHasDecimals() throws IOException {
    Cli.Result result =
        Cli.run("bench", "layers", "--device", image(), "--initiator", "cpu", "--range", "1MiB");
    assertThat(result.succeeded().out())
        .containsPattern("layers.equal +\\d\\.\\d{3} +\\d\\.\\d{3} +\\d+\\.\\d{3} +ratio");
  }

  @Test
  void whatMakesNoSenseIsRefused() throws IOException {
    String ssd = image();
    Cli.run("bench", "random", "--range", "1MiB").failed(ExitCode.USAGE, "--device");
    Cli.run("bench", "random", "--faults", "corrupt on read").failed(ExitCode.USAGE, "--device");
    Cli.run("bench", "queue", "--device", ssd, "--warps", 4).failed(ExitCode.USAGE, "without");
    Cli.run("bench", "layers", "--device", ssd, "--mix", 0).failed(ExitCode.USAGE, "reads");
    Cli.run("bench", "stream", "--device", ssd, "--blocks", "512").failed(ExitCode.USAGE, "random");
    Object[] cpu = {"bench", "random", "--device", ssd, "--initiator", "cpu"};
    Cli.run(with(cpu, "--range", "3MiB+2MiB")).failed(ExitCode.USAGE, "is not inside sim:");
    Cli.run(with(cpu, "--blocks", "1000")).failed(ExitCode.USAGE, "multiples of 512");
    Cli.run(with(cpu, "--nsid", "2")).failed(ExitCode.USAGE, "namespace");
    Cli.run(with(cpu, "--placement", "vram")).failed(ExitCode.FAILURE, "CUDA");
    Cli.run("bench", "random", "--device", folder + "/ssd.img", "--initiator", "cpu")
        .refused("mounted file system");
    Cli.run("bench", "random", "--device", "vfio:0000:ff:1f.7", "--initiator", "cpu")
        .failed(ExitCode.USAGE, "0000:ff:1f.7");
    Cli.run(with(cpu, "--faults", "status=media/unrecovered-read-error dnr on read nth=1000"))
        .failed(ExitCode.FAILURE, "Unrecovered Read Error");
    Cli.run(with(cpu, "--faults", "corrupt on read nth=1000"))
        .failed(ExitCode.FAILURE, "not what the CPU reads");
  }

  private static Object[] with(Object[] arguments, Object... more) {
    return Stream.concat(Stream.of(arguments), Stream.of(more)).toArray();
  }

  @Test
  void withoutAGpuItSaysWhatIsMissing() {
    Assumptions.assumeFalse(Cuda.isAvailable(), "there is a GPU");

    Cli.run("bench", "queue").failed(ExitCode.FAILURE, "CUDA");
    Cli.run("bench", "random", "--initiator", "gpu").failed(ExitCode.FAILURE, "CUDA");
    Cli.run("bench", "stream", "--placement", "vram").failed(ExitCode.FAILURE, "CUDA");
  }
}
