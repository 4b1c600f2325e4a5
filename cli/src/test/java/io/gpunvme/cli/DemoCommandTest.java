package io.gpunvme.cli;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.gson.JsonObject;
import io.gpunvme.cuda.Cuda;
import io.gpunvme.testing.Images;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.time.Duration;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** {@code demo}. */
class DemoCommandTest {
  @TempDir Path folder;
  private Set<Path> before;

  @BeforeEach
  void lookAtTemporaryFolder() throws IOException {
    before = leftovers();
  }

  @AfterEach
  void nothingIsLeftInTheTemporaryFolder() throws IOException {
    assertThat(leftovers()).isEqualTo(before);
  }

  private static Set<Path> leftovers() throws IOException {
    try (Stream<Path> all = Files.list(Path.of(System.getProperty("java.io.tmpdir")))) {
      return all.filter(p -> p.getFileName().toString().startsWith("gpunvme-demo-"))
          .collect(Collectors.toSet());
    }
  }

  @Test
  void endsWithATable() {
    Cli.Result result =
        Cli.run("demo", "--size", "3MiB", "--queues", 2, "--depth", 4, "--initiator", "cpu")
            .succeeded();

    assertThat(result.out())
        .containsPattern("path +direct")
        .containsPattern("initiator +CPU")
        .containsPattern("placement +host")
        .containsPattern("queue pairs +2")
        .containsPattern("depth +4")
        .containsPattern("commands +6 ")
        .containsPattern("of them by the CPU +6 ")
        .contains("to CPU stand-in (host memory): the CPU stand-in was requested")
        .containsPattern("doorbell writes +\\d")
        .containsPattern("commands per doorbell +\\d")
        .containsPattern("bytes +3145728")
        .containsPattern("GB/s +\\d+\\.\\d\\d")
        .containsPattern("latency p50 +\\d")
        .containsPattern("latency p99 +\\d")
        .containsPattern("check +SHA-256 of the data that arrived equals the file's: [0-9a-f]{64}")
        .containsPattern("SSD +sim:.*, image deleted \\(--keep keeps it\\)")
        .doesNotContain("ssd.img");
  }

  @Test
  void jsonHasTheSame() {
    JsonObject json =
        Cli.run(
                "demo",
                "--size",
                "3MiB",
                "--json",
                "--device",
                "sim:lba=4096,mdts=128KiB",
                "--initiator",
                "cpu")
            .succeeded()
            .json();

    assertThat(json.get("verified").getAsBoolean()).isTrue();
    assertThat(json.get("bytes").getAsLong()).isEqualTo(3 << 20);
    assertThat(json.get("path").getAsString()).isEqualTo("direct");
    assertThat(json.get("initiator").getAsString()).isEqualTo("CPU");
    assertThat(json.get("placement").getAsString()).isEqualTo("host");
    assertThat(json.get("queue_pairs").getAsInt()).isEqualTo(4);
    assertThat(json.get("depth").getAsInt()).isEqualTo(16);
    assertThat(json.get("commands").getAsLong()).isEqualTo(24);
    assertThat(json.get("commands_by_cpu").getAsLong()).isEqualTo(24);
    assertThat(json.get("media_pinned").getAsBoolean()).isFalse();
    assertThat(json.get("accelerator_reason").getAsString()).contains("requested");
    assertThat(json.get("doorbell_writes").getAsLong())
        .isEqualTo(
            json.get("sq_doorbell_writes").getAsLong() + json.get("cq_doorbell_writes").getAsLong())
        .isPositive();
    assertThat(json.get("gb_per_s").getAsDouble()).isPositive();
    assertThat(json.get("latency_p50_us").getAsDouble())
        .isPositive()
        .isLessThanOrEqualTo(json.get("latency_p99_us").getAsDouble());
    assertThat(json.get("sha256").getAsString())
        .matches("[0-9a-f]{64}")
        .isEqualTo(json.get("source_sha256").getAsString());
    assertThat(json.get("device").getAsString()).startsWith("sim:lba=4096,mdts=128KiB");
    assertThat(json.get("block_size").getAsInt()).isEqualTo(4096);
    JsonObject write = json.getAsJsonObject("write");
    assertThat(write.get("commands").getAsLong()).isEqualTo(24);
    assertThat(write.get("commands_by_cpu").getAsLong()).isEqualTo(24);
    assertThat(write.get("bytes").getAsLong()).isEqualTo(3 << 20);
    assertThat(write.get("gb_per_s").getAsDouble()).isPositive();
    assertThat(json.get("image").isJsonNull()).isTrue();
    assertThat(json.get("device").getAsString()).doesNotContain("file=");
  }

  @Test
  void movesAFileOfOnesOwn() throws IOException {
    Path file = folder.resolve("my file");
    Files.write(file, new byte[123_457]);

    JsonObject json = Cli.run("demo", file, "--json").succeeded().json();

    assertThat(json.get("bytes").getAsLong()).isEqualTo(123_457);
    assertThat(json.get("file").getAsString()).isEqualTo(file.toString());
    assertThat(json.get("generated").getAsBoolean()).isFalse();
    assertThat(file).exists();
  }

  @Test
  void aDifferenceIsAFailure() {
    Cli.Result result =
        Cli.run("demo", "--size", "4MiB", "--json", "--faults", "corrupt on read nth=4");

    result.failed(ExitCode.FAILURE, "the data that arrived is not the data that was sent");
    assertThat(result.json().get("verified").getAsBoolean()).isFalse();
    assertThat(Cli.run("demo", "--size", "4MiB", "--faults", "corrupt on read nth=4").out())
        .contains("FAILED");
  }

  @Test
  void faultsCanComeFromAFile() throws IOException {
    Path rules = folder.resolve("rules");
    Files.writeString(
        rules, "# one in three\nstatus=generic/namespace-not-ready on read every=3\n");
    JsonObject json =
        Cli.run("demo", "--size", "4MiB", "--json", "--faults", "@" + rules).succeeded().json();

    assertThat(json.get("retries").getAsLong()).isPositive();
    assertThat(Cli.run("demo", "--size", "4MiB", "--faults", "@" + rules).succeeded().out())
        .contains("of them repeated");
  }

  @Test
  void lostCommandsAreRecoveredAfterTheTimeout() {
    JsonObject json =
        Cli.run(
                "demo",
                "--size",
                "4MiB",
                "--json",
                "--timeout",
                "300ms",
                "--faults",
                "drop on read nth=2")
            .succeeded()
            .json();

    assertThat(json.get("recoveries").getAsLong()).isPositive();
  }

  @Test
  void theTimeoutIsForRecoveryToo() {
    long start = System.nanoTime();
    Cli.run(
            "demo",
            "--size",
            "1MiB",
            "--timeout",
            "200ms",
            "--faults",
            "drop on read nth=2; drop on admin:0x08")
        .succeeded();

    assertThat(Duration.ofNanos(System.nanoTime() - start)).isLessThan(Duration.ofSeconds(4));
  }

  @Test
  void aControllerThatGrantsNoQueuesFails() {
    Cli.run("demo", "--size", "1MiB", "--faults", "status=generic/invalid-opcode dnr on admin:0x09")
        .failed(ExitCode.FAILURE, "queue");
  }

  @Test
  void keepLeavesTheFilesAndSaysWhere() throws IOException {
    JsonObject json = Cli.run("demo", "--size", "1MiB", "--keep", "--json").succeeded().json();
    Path image = Path.of(json.get("image").getAsString());
    Path file = Path.of(json.get("file").getAsString());

    assertThat(Files.mismatch(image, file)).isEqualTo(-1);
    Leftovers.delete(image.getParent());

    String text = Cli.run("demo", "--size", "1MiB", "--keep").succeeded().out();
    Path kept = Path.of(text.substring(text.indexOf("kept   ") + 7).strip());
    assertThat(kept).isDirectoryContaining("glob:**sample.safetensors");
    Leftovers.delete(kept);
  }

  @Test
  void anImageOfOnesOwnIsKeptWhole() {
    Path image = folder.resolve("ssd.img");
    Cli.run("demo", "--size", "1MiB", "--device", "sim:file=" + image).succeeded();
    assertThat(image).hasSize(1 << 20);
    Cli.run("demo", "--size", "1MiB", "--device", "sim:file=" + image).refused("exists");
    assertThat(image).exists();
  }

  @Test
  void anImageThatDidNotBecomeWholeIsNotKept() {
    Path image = folder.resolve("ssd.img");
    Cli.run(
            "demo",
            "--size",
            "1MiB",
            "--device",
            "sim:file=" + image,
            "--faults",
            "status=media/write-fault dnr on write nth=2")
        .failed(ExitCode.FAILURE, "Write Fault");
    assertThat(image).doesNotExist();
  }

  @Test
  void numbersTheSsdDoesNotHaveAreRefused() {
    Cli.run("demo", "--size", "1MiB", "--queues", 65).refused("queue pairs 65 is outside 1..64");
    Cli.run("demo", "--size", "1MiB", "--depth", 1024).refused("depth 1024 is outside 1..1023");
    Cli.run("demo", "--size", "1MiB", "--threads", 5).refused("threads 5 is outside 1..4");
  }

  @Test
  void withoutAGpuAutoIsTheCpuAndSaysWhy() {
    Assumptions.assumeFalse(Cuda.isAvailable(), "there is a GPU");
    JsonObject json = Cli.run("demo", "--size", "1MiB", "--json").succeeded().json();
    assertThat(json.get("initiator").getAsString()).isEqualTo("CPU");
    assertThat(json.get("accelerator_reason").getAsString()).startsWith("no GPU: ");
  }

  /** Whoever asks for a GPU gets no CPU. */
  @Test
  void withoutAGpuAskingForOneFails() {
    Assumptions.assumeFalse(Cuda.isAvailable(), "there is a GPU");
    Cli.run("demo", "--size", "1MiB", "--initiator", "gpu").failed(ExitCode.FAILURE, "CUDA");
    Cli.run("demo", "--size", "1MiB", "--placement", "vram").failed(ExitCode.FAILURE, "CUDA");
  }

  @Test
  void whatCannotBeIsRefused() {
    Cli.run("demo", "--initiator", "tpu").refused("'tpu' is not one of auto, cpu, gpu");
    Cli.run("demo", "--placement", "here").refused("'here' is not one of host, vram-data, vram");
  }

  @Test
  void aTerminalSeesEveryPhase() {
    Cli.Result result = Cli.onTerminal("demo", "--size", "8MiB", "--json");

    assertThat(result.code()).isZero();
    assertThat(result.err())
        .contains("make file", "to the SSD", "to the accelerator", "check")
        .endsWith("\r");
    assertThat(result.json().get("verified").getAsBoolean()).isTrue();
  }

  // ---- somebody's SSD

  @Test
  void whatIsThereIsOnlyRead() throws IOException {
    Path image = image();
    byte[] before = Files.readAllBytes(image);
    JsonObject json =
        Cli.run("demo", "--device", "sim:file=" + image, "--read", "512+1MiB", "--json")
            .succeeded()
            .json();
    assertThat(json.get("verified").getAsBoolean()).isTrue();
    assertThat(json.get("offset").getAsLong()).isEqualTo(512);
    assertThat(json.get("bytes").getAsLong()).isEqualTo(1 << 20);
    assertThat(json.get("sha256")).isEqualTo(json.get("cpu_sha256"));
    assertThat(json.get("differs_at").isJsonNull()).isTrue();
    assertThat(json.getAsJsonObject("cpu").get("initiator").getAsString()).isEqualTo("CPU");
    assertThat(Files.readAllBytes(image)).isEqualTo(before);
  }

  @Test
  void whatIsWrittenIsPutBack() throws IOException {
    Path image = image();
    byte[] before = Files.readAllBytes(image);
    Cli.Result result =
        Cli.run(
                "demo",
                "--device",
                "sim:file=" + image,
                "--write",
                "1MiB+1000000",
                "--allow-write",
                "--initiator",
                "cpu")
            .succeeded();
    assertThat(result.out())
        .containsPattern("bytes +\\d+ +")
        .contains("what was in 1048576+1000000 is there again")
        .contains("equals the file's");
    assertThat(Files.readAllBytes(image)).isEqualTo(before);
  }

  @Test
  void whatDemoMadeForSomebodysSsdMayBeKept() throws IOException {
    JsonObject json =
        Cli.run(
                "demo",
                "--device",
                "sim:file=" + image(),
                "--write",
                "1MiB",
                "--allow-write",
                "--keep",
                "--json")
            .succeeded()
            .json();
    Path kept = Path.of(json.get("file").getAsString());
    assertThat(kept).exists();
    assertThat(kept.resolveSibling("borrowed.blocks")).doesNotExist();
    Leftovers.delete(kept.getParent());
  }

  @Test
  void setsAndFilesAreWrittenAndPutBack() throws IOException {
    Path image = image();
    byte[] before = Files.readAllBytes(image);
    Path data = Files.createDirectory(folder.resolve("source")).resolve("data");
    Files.write(data, Arrays.copyOf(before, 1_000_300));
    Path ext4 = Images.ext4(folder.resolve("ext4"), "8M", data.getParent());
    byte[] whole = Files.readAllBytes(ext4);
    String set = "stripe:sim:file=" + image + ",sim:size=4MiB";
    String file = "sim:file=" + ext4 + ":/data";
    for (String where : List.of(set, file)) {
      Object[] words = {"demo", "--device", where, "--write", "1000300", "--allow-write", "--json"};
      JsonObject json = Cli.run(words).succeeded().json();
      assertThat(json.get("verified").getAsBoolean()).isTrue();
      assertThat(json.get("restored").getAsBoolean()).isTrue();
      assertThat(json.get("bytes").getAsLong()).isEqualTo(1_000_300 / 512 * 512);
    }
    assertThat(image).hasBinaryContent(before);
    assertThat(ext4).hasBinaryContent(whole);
    Cli.run(
            "demo",
            "--device",
            "replica:sim:file=" + image + ",sim:size=4MiB",
            "--write",
            "1MiB",
            "--allow-write")
        .refused("name one of them");
  }

  @Test
  void whatCannotBePutBackIsKept() throws IOException {
    Path image = image();
    byte[] before = Files.readAllBytes(image);
    Cli.Result result =
        Cli.run(
            "demo",
            "--device",
            "sim:mdts=64KiB,file=" + image,
            "--write",
            "1MiB",
            "--allow-write",
            "--faults",
            "status=media/write-fault dnr on write after=20");
    result.failed(ExitCode.FAILURE, "puts it back");
    Matcher copy = Pattern.compile("It is in (\\S+/borrowed.blocks);").matcher(result.err());
    assertThat(copy.find()).as(result.err()).isTrue();
    Path kept = Path.of(copy.group(1));
    try {
      assertThat(kept).hasBinaryContent(Arrays.copyOf(before, 1 << 20));
      assertThat(kept.resolveSibling("put-back.sh"))
          .content()
          .contains("put 'sim:mdts=64KiB,file=" + image + "' 1 0 0 1048576\n");
      Cli.run("write", "sim:file=" + image, "--lba", 0, "--in", kept, "--allow-write").succeeded();
      assertThat(image).hasBinaryContent(before);
    } finally {
      Leftovers.delete(kept.getParent());
      assertThat(kept.getParent()).as("what is needed is never deleted").isDirectory();
      Files.delete(kept.resolveSibling("put-back.sh"));
      Leftovers.delete(kept.getParent());
    }
  }

  /** The first namespace has other bytes and other blocks. */
  @Test
  void theNamespaceMayBeAnother() throws IOException {
    Path image = image();
    byte[] before = Files.readAllBytes(image);
    String ssd = "sim:size=1MiB,lba=4096,ns2.file=" + image;
    JsonObject json =
        Cli.run("demo", "--device", ssd, "--read", "512+1MiB", "--nsid", 2, "--json")
            .succeeded()
            .json();
    assertThat(json.get("verified").getAsBoolean()).isTrue();
    assertThat(json.get("block_size").getAsInt()).isEqualTo(512);
    byte[] part = Arrays.copyOfRange(before, 512, 512 + (1 << 20));
    assertThat(json.get("sha256").getAsString()).isEqualTo(sha256(part));

    Object[] write = {
      "demo", "--device", ssd, "--write", "2MiB+1MiB", "--nsid", 2, "--allow-write", "--json"
    };
    json = Cli.run(write).succeeded().json();
    assertThat(json.get("restored").getAsBoolean()).isTrue();
    assertThat(json.get("bytes").getAsLong()).isEqualTo(1 << 20);
    assertThat(Files.readAllBytes(image)).isEqualTo(before);

    Cli.run("demo", "--device", ssd, "--read", "1MiB", "--nsid", 3)
        .refused("no active namespace 3");
  }

  private static String sha256(byte[] bytes) {
    try {
      return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(bytes));
    } catch (NoSuchAlgorithmException e) {
      throw new AssertionError(e);
    }
  }

  @Test
  void aDifferenceBetweenTheTwoIsAFailure() throws IOException {
    Cli.run(
            "demo",
            "--device",
            "sim:file=" + image(),
            "--read",
            "1MiB",
            "--faults",
            "corrupt on read nth=1 count=1")
        .failed(ExitCode.FAILURE, "the CPU read different data");
  }

  @Test
  void theOptionsMustFitEachOther() throws IOException {
    String ssd = "sim:file=" + image();
    Cli.run("demo", "--device", ssd, "--write", "1MiB").refused("--allow-write");
    Cli.run("demo", "--nsid", "2").refused("an SSD of yours");
    Cli.run("demo", "--device", ssd, "--write", "1MiB", "--read", "1MiB").refused("--read");
    Cli.run("demo", "--device", ssd, "--read", "1MiB", "--keep").refused("--write OFFSET+SIZE");
    Cli.run("demo", "--device", ssd, "--read", "1MiB+").refused("OFFSET+SIZE");
    Cli.run("demo", "--device", ssd, "--read", "100+1MiB").refused("begin at a multiple");
    Cli.run("demo", "--device", ssd, "--read", "1TiB+1MiB").refused("not inside");
    Cli.run("demo", "--device", "vfio:0000:01:00.0", "--allow-write").refused("may be overwritten");
  }

  private Path image() throws IOException {
    byte[] content = new byte[4 << 20];
    new Random(5).nextBytes(content);
    return Files.write(folder.resolve("somebodys.img"), content);
  }
}
