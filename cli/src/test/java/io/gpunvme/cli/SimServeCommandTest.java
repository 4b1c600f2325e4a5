package io.gpunvme.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeFalse;

import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import com.google.gson.stream.JsonReader;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** {@code sim serve} in a process of its own, and commands of this one that use it. */
class SimServeCommandTest {
  @TempDir Path folder;
  private Path socket;
  private Path log;
  private Process server;

  @BeforeEach
  void choose() {
    socket = folder.resolve("ssd.sock");
    log = folder.resolve("log");
  }

  @AfterEach
  void end() throws Exception {
    if (server != null) {
      server.destroyForcibly();
      assertThat(server.waitFor(20, TimeUnit.SECONDS)).isTrue();
    }
  }

  private void start(String... more) throws IOException {
    List<String> command =
        new ArrayList<>(
            List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-XX:TieredStopAtLevel=1",
                "-XX:+UseSerialGC",
                "--enable-native-access=ALL-UNNAMED",
                "-cp",
                System.getProperty("java.class.path"),
                "io.gpunvme.cli.Main",
                "sim",
                "serve",
                "--socket",
                socket.toString()));
    command.addAll(List.of(more));
    server = new ProcessBuilder(command).redirectError(log.toFile()).start();
  }

  /** What it says once it serves. */
  private JsonObject startWithJson(String... more) throws IOException {
    List<String> all = new ArrayList<>(List.of(more));
    all.add("--json");
    start(all.toArray(String[]::new));
    JsonReader said = new JsonReader(server.inputReader(StandardCharsets.UTF_8));
    try {
      return JsonParser.parseReader(said).getAsJsonObject();
    } catch (RuntimeException e) {
      throw new AssertionError(Files.readString(log), e);
    }
  }

  private String address() {
    return "vfio-user:" + socket;
  }

  private void signal(String name) throws Exception {
    String pid = Long.toString(server.pid());
    assertThat(new ProcessBuilder("kill", "-" + name, pid).start().waitFor()).isZero();
    assertThat(server.waitFor(60, TimeUnit.SECONDS)).as("it ends").isTrue();
  }

  private Path random(String name, int bytes) throws IOException {
    byte[] data = new byte[bytes];
    new SplittableRandom(bytes).nextBytes(data);
    return Files.write(folder.resolve(name), data);
  }

  @Test
  void saysWhatItServes() throws Exception {
    JsonObject json = startWithJson("--namespace", "ram=8MiB,lba=4096", "--workers", "2");

    assertThat(json.get("socket").getAsString()).isEqualTo(socket.toString());
    assertThat(json.get("address").getAsString()).isEqualTo(address());
    assertThat(json.get("pid").getAsLong()).isEqualTo(server.pid());
    assertThat(json.get("workers").getAsInt()).isEqualTo(2);
    JsonObject ns = json.getAsJsonArray("namespaces").get(0).getAsJsonObject();
    assertThat(ns.get("bytes").getAsLong()).isEqualTo(8 << 20);
    assertThat(ns.get("block_size").getAsInt()).isEqualTo(4096);
    assertThat(ns.get("file").isJsonNull()).isTrue();
    assertThat(ns.get("read_only").getAsBoolean()).isFalse();
    assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(socket)))
        .isEqualTo("rw-------");
    JsonObject seen = Cli.run("list", address(), "--json").succeeded().json();
    assertThat(seen.toString()).contains("4096");
  }

  /** Who starts programs in the background has them ignore it, and what they start as well. */
  private static boolean ignoresInterrupts() throws IOException {
    String ignored =
        Files.readAllLines(Path.of("/proc/self/status")).stream()
            .filter(l -> l.startsWith("SigIgn:"))
            .findFirst()
            .orElseThrow();
    return (Long.parseUnsignedLong(ignored.substring("SigIgn:".length()).strip(), 16) & 2) != 0;
  }

  @ParameterizedTest
  @CsvSource({"TERM, 143", "INT, 130"})
  void aSignalEndsItAndRemovesTheSocket(String name, int code) throws Exception {
    assumeFalse(
        name.equals("INT") && ignoresInterrupts(), "SIGINT is ignored: run in the foreground");
    startWithJson();
    Cli.run("identify", address()).succeeded();
    signal(name);
    assertThat(server.exitValue()).isEqualTo(code);
    assertThat(socket).doesNotExist();
    assertThat(log).hasContent("gpunvme: interrupted; nobody serves at " + socket + " any more");
    Cli.run("identify", address()).refused("there is no socket");
  }

  @Test
  void aKilledOneLeavesASocketThatTheNextReplaces() throws Exception {
    startWithJson();
    signal("KILL");
    assertThat(socket).exists();
    Cli.run("identify", address()).refused("nobody listens at");
    startWithJson();
    Cli.run("identify", address()).succeeded();
    Cli.run("sim", "serve", "--socket", socket).refused("somebody listens there already");
  }

  @Test
  void asText() throws Exception {
    start("--namespace", "ram=1MiB", "--namespace", "ram=2MiB,lba=4096,readonly=on");
    var out = server.inputReader(StandardCharsets.UTF_8);
    assertThat(out.readLine()).isEqualTo("serving at " + socket + "; Ctrl-C ends it");
    assertThat(out.readLine()).contains("namespace 1: 1MiB in blocks of 512 bytes, in memory");
    assertThat(out.readLine()).contains("namespace 2: 2MiB in blocks of 4096", "write-protected");
    assertThat(out.readLine()).endsWith("gpunvme identify " + address());
  }

  @Test
  void filesAreWriteProtectedUnlessSaidOtherwise() throws Exception {
    Path disk = random("disk.img", 1 << 20);
    byte[] before = Files.readAllBytes(disk);
    Path in = random("in", 8192);
    JsonObject json = startWithJson("--namespace", "file=" + disk);
    JsonObject ns = json.getAsJsonArray("namespaces").get(0).getAsJsonObject();
    assertThat(ns.get("read_only").getAsBoolean()).isTrue();
    assertThat(ns.get("file").getAsString()).isEqualTo(disk.toString());
    assertThat(Cli.run("write", address(), "--lba", 0, "--in", in, "--allow-write").code())
        .isNotZero();
    Path out = folder.resolve("out");
    Cli.run("read", address(), "--lba", 0, "--bytes", "1MiB", "--out", out).succeeded();
    assertThat(out).hasBinaryContent(before);
    signal("TERM");
    assertThat(disk).hasBinaryContent(before);

    startWithJson("--namespace", "file=" + disk, "--allow-write");
    Cli.run("write", address(), "--lba", 0, "--in", in, "--allow-write").succeeded();
    signal("TERM");
    System.arraycopy(Files.readAllBytes(in), 0, before, 0, 8192);
    assertThat(disk).hasBinaryContent(before);
  }

  @Test
  void theDemoOverwritesOnlyIfItMay() throws Exception {
    startWithJson("--namespace", "ram=32MiB");
    Object[] demo = {"demo", "--device", address(), "--size", "3MiB", "--initiator", "cpu"};
    Cli.Result refused = Cli.run(demo);
    assertThat(refused.code()).isNotZero();
    assertThat(refused.err()).contains("--allow-write").hasLineCount(1);

    List<Object> allowed = new ArrayList<>(List.of(demo));
    allowed.addAll(List.of("--write", "3MiB", "--allow-write", "--json"));
    JsonObject json = Cli.run(allowed.toArray()).succeeded().json();
    assertThat(json.get("verified").getAsBoolean()).isTrue();
    assertThat(json.get("bytes").getAsLong()).isEqualTo(3 << 20);
    assertThat(json.get("device").getAsString()).isEqualTo(address());
    assertThat(json.get("restored").getAsBoolean()).isTrue();
    assertThat(json.get("commands_by_cpu").isJsonNull()).isTrue();
    allowed.removeLast();
    assertThat(Cli.run(allowed.toArray()).succeeded().out())
        .contains("not counted")
        .contains("SHA-256 of the data that arrived equals");
  }

  @Test
  void itIsMeasuredAlsoWhileItFails() throws Exception {
    startWithJson(
        "--namespace",
        "ram=32MiB",
        "--faults",
        "status=generic/namespace-not-ready on read p=0.01");
    Object[] cpu = {"--device", address(), "--initiator", "cpu", "--json"};
    for (String[] command :
        new String[][] {{"bench", "random"}, {"gather", "--rows", "2048", "--hops", "4"}}) {
      JsonObject json =
          Cli.run(Stream.concat(Stream.of(command), Stream.of(cpu)).toArray()).succeeded().json();
      assertThat(json.get("initiator").getAsString()).isEqualTo("CPU");
      if (json.has("results")) {
        JsonObject one = json.getAsJsonArray("results").get(0).getAsJsonObject();
        assertThat(one.getAsJsonObject("conditions").get("retries").getAsLong()).isPositive();
      }
    }
  }

  @Test
  void faultsReachTheClient() throws Exception {
    startWithJson("--faults", "status=generic/internal-error on get-log-page");
    Cli.run("log", address(), "smart").failed(ExitCode.FAILURE, "Internal Error");
  }

  @Test
  void keysOfTheControllerAreSet() throws Exception {
    startWithJson("--set", "mdts=128KiB,serial=MINE");
    assertThat(Cli.run("identify", address()).succeeded().out()).contains("MINE");
  }
}
