package io.gpunvme.cli;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.gson.JsonObject;
import io.gpunvme.testing.Programs;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.security.MessageDigest;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** {@code read} and {@code write}, on an image that survives the command. */
class BlockCommandsTest {
  private static final String SIZE = ",size=8MiB,latency=0";

  @TempDir Path folder;
  private Path image;
  private Path in;
  private Path out;

  @BeforeEach
  void name() {
    image = folder.resolve("disk.img");
    in = folder.resolve("in");
    out = folder.resolve("out");
  }

  private String device() {
    return "sim:file=" + image + SIZE;
  }

  private byte[] input(int bytes) throws IOException {
    byte[] data = new byte[bytes];
    new SplittableRandom(bytes).nextBytes(data);
    Files.write(in, data);
    return data;
  }

  private Cli.Result write(long lba, Object... more) {
    return run("write", lba, "--in", in, "--allow-write", more);
  }

  private Cli.Result run(
      String command, long lba, String option, Object value, Object another, Object... more) {
    Object[] args = {command, device(), "--lba", lba, option, value, another};
    Object[] all = Arrays.copyOf(args, args.length + more.length);
    System.arraycopy(more, 0, all, args.length, more.length);
    return Cli.run(all);
  }

  private Cli.Result read(long lba, String amount, Object value, Object... more) {
    Object[] rest = Arrays.copyOf(new Object[] {"--out", out}, 2 + more.length);
    System.arraycopy(more, 0, rest, 2, more.length);
    return run("read", lba, amount, value, "--queues=4", rest);
  }

  private static String sha256(byte[] data) throws Exception {
    return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(data));
  }

  @Test
  void whatWasWrittenIsThereForTheNextCommand() throws Exception {
    byte[] data = input(3_000_000);

    assertThat(write(100).succeeded().out()).contains(sha256(data)).contains("flushed");
    assertThat(read(100, "--bytes", 3_000_000).succeeded().out()).contains(sha256(data));

    assertThat(out).hasBinaryContent(data);
    byte[] disk = Files.readAllBytes(image);
    assertThat(disk).hasSize(8 << 20);
    assertThat(Arrays.copyOfRange(disk, 51200, 51200 + data.length)).isEqualTo(data);
  }

  @ParameterizedTest
  @CsvSource({
    "--blocks, 3, 1536",
    "--bytes, 1000, 1000",
    "--bytes, 1KiB, 1024",
    "--blocks, 0x2, 1024"
  })
  void anyAmountCanBeRead(String option, String amount, int bytes) throws IOException {
    byte[] data = input(5000);
    write(0).succeeded();

    read(0, option, amount).succeeded();

    assertThat(out).hasBinaryContent(Arrays.copyOf(data, bytes));
  }

  @Test
  void whatFollowsTheFileInItsLastBlockStays() throws IOException {
    byte[] before = input(4096);
    write(8).succeeded();
    byte[] after = input(700);
    write(8).succeeded();

    read(8, "--bytes", 4096).succeeded();

    byte[] expected = before.clone();
    System.arraycopy(after, 0, expected, 0, 700);
    assertThat(out).hasBinaryContent(expected);
  }

  @Test
  void filesLongerThanTheWindowAreCopiedInTurns() throws IOException {
    byte[] data = input((64 << 20) + 12345);
    String big = "sim:latency=0,workers=1,size=80MiB,file=" + image;

    JsonObject json =
        Cli.run("write", big, "--lba", 7, "--in", in, "--allow-write", "--json").succeeded().json();
    Cli.run("read", big, "--lba", 7, "--bytes", data.length, "--out", out).succeeded();

    assertThat(json.get("bytes").getAsLong()).isEqualTo(data.length);
    assertThat(json.get("commands").getAsLong()).isEqualTo(129);
    assertThat(Files.mismatch(in, out)).isEqualTo(-1);
  }

  /** 5 MiB with an SSD that has no limit of its own: the option is the limit. */
  @ParameterizedTest
  @CsvSource({"1MiB, 5", "4MiB, 2", "8KiB, 640"})
  void longerCommandsAreFewer(String most, int commands) throws IOException {
    byte[] data = input(5 << 20);
    String device = device() + ",mdts=0";

    JsonObject json =
        Cli.run(
                "write",
                device,
                "--lba",
                3,
                "--in",
                in,
                "--allow-write",
                "--json",
                "--max-transfer",
                most)
            .succeeded()
            .json();
    Cli.run(
            "read",
            device,
            "--lba",
            3,
            "--bytes",
            data.length,
            "--out",
            out,
            "--max-transfer",
            most)
        .succeeded();

    assertThat(json.get("commands").getAsInt()).isEqualTo(commands);
    assertThat(Files.mismatch(in, out)).isEqualTo(-1);
  }

  @Test
  void jsonTellsHow() throws Exception {
    byte[] data = input(1 << 20);
    JsonObject written = write(0, "--json", "--queues", 2, "--depth", 4).succeeded().json();
    JsonObject read =
        read(0, "--bytes", "1MiB", "--json", "--verify-sha", "--threads", 2).succeeded().json();

    assertThat(written.get("sha256").getAsString()).isEqualTo(sha256(data));
    assertThat(written.get("blocks").getAsLong()).isEqualTo(2048);
    assertThat(written.get("queue_pairs").getAsInt()).isEqualTo(2);
    assertThat(written.get("depth").getAsInt()).isEqualTo(4);
    assertThat(written.get("flushed").getAsBoolean()).isTrue();
    assertThat(read.get("sha256").getAsString()).isEqualTo(sha256(data));
    assertThat(read.get("verified").getAsBoolean()).isTrue();
    assertThat(read.get("threads").getAsInt()).isEqualTo(2);
    assertThat(read.get("bytes").getAsLong()).isEqualTo(1 << 20);
    assertThat(read.get("doorbell_writes").getAsLong()).isPositive();
    assertThat(read.get("gb_per_s").getAsDouble()).isPositive();
    assertThat(read.get("latency_p99_us").getAsDouble()).isPositive();
  }

  @Test
  void standardOutputIsNothingButData() throws IOException {
    byte[] data = input(10_000);
    write(3).succeeded();

    Cli.Result result = Cli.run("read", device(), "--lba", 3, "--bytes", data.length, "--out", "-");

    assertThat(result.code()).isZero();
    assertThat(result.bytes()).isEqualTo(data);
    assertThat(result.err()).contains("read from LBA 3").contains("SHA-256");
  }

  @Test
  void standardOutputIsForOneThingOnly() {
    Cli.run("read", device(), "--lba", 0, "--blocks", 1, "--out", "-", "--json")
        .refused("standard output");
  }

  @Test
  void writingNeedsPermission() throws IOException {
    input(512);
    Cli.run("write", device(), "--lba", 0, "--in", in).refused("--allow-write");
    assertThat(image).doesNotExist();
  }

  @Test
  void writeProtectedNamespacesStayAsTheyAre() throws IOException {
    input(512);
    write(0).succeeded();
    byte[] before = Files.readAllBytes(image);
    Cli.Result result =
        Cli.run("write", "sim:readonly=on,file=" + image, "--lba", 1, "--in", in, "--allow-write");

    assertThat(result.code()).isEqualTo(ExitCode.FAILURE);
    assertThat(result.err()).containsIgnoringCase("write protected");
    assertThat(image).hasBinaryContent(before);
  }

  @ParameterizedTest
  @CsvSource({
    "16384, 512",
    "16383, 513",
    "0, 8388609",
    "9223372036854775807, 1",
    "4611686018427387904, 512"
  })
  void theEndOfTheNamespaceIsTheEnd(long lba, long bytes) throws IOException {
    read(lba, "--bytes", bytes).refused("ends at LBA 16383");
    assertThat(out).doesNotExist();
    try (FileChannel channel =
        FileChannel.open(in, StandardOpenOption.CREATE, StandardOpenOption.WRITE)) {
      channel.write(ByteBuffer.wrap(new byte[1]), bytes - 1);
    }
    write(lba).refused("ends at LBA 16383");
  }

  @Test
  void theLastBlockCanBeWrittenAndRead() throws IOException {
    byte[] data = input(512);
    write(16383).succeeded();
    read(16383, "--blocks", 1).succeeded();
    assertThat(out).hasBinaryContent(data);
  }

  @Test
  void filesThatAreMissingOrNone() throws IOException {
    write(0).refused(in.toString());
    Files.createDirectory(in);
    write(0).refused("regular");
    Files.delete(in);
    Files.createFile(in);
    write(0).refused("0 bytes");
    Cli.run("read", device(), "--lba", 0, "--blocks", 1, "--out", folder).refused("folder");
    Cli.run("read", device(), "--lba", 0, "--blocks", 1, "--out", folder.resolve("no/out"))
        .refused(folder.resolve("no/out") + ": no such file or folder");
  }

  @Test
  void aFailedReadLeavesNeitherFileNorPartOfOne() throws IOException {
    input(1 << 20);
    write(0).succeeded();
    Files.writeString(out, "before");
    Cli.Result result =
        Cli.run(
            "read",
            device(),
            "--lba",
            0,
            "--bytes",
            "1MiB",
            "--out",
            out,
            "--faults",
            "status=media/unrecovered-read-error dnr on read lba=2000");

    result.failed(ExitCode.FAILURE, "Unrecovered Read Error");
    assertThat(out).hasContent("before");
    assertThat(folder).isDirectoryNotContaining("glob:**.part");
  }

  @Test
  void theChecksumCanBeGiven() throws Exception {
    byte[] data = input(2048);
    write(0).succeeded();

    read(0, "--blocks", 4, "--sha256", sha256(data)).succeeded();
    Files.delete(out);
    Cli.Result wrong = read(0, "--blocks", 4, "--sha256", "00".repeat(32), "--json");

    wrong.failed(ExitCode.FAILURE, "expected 00");
    assertThat(wrong.json().get("verified").getAsBoolean()).isFalse();
    assertThat(out).doesNotExist();
  }

  @Test
  void readingTwiceFindsWhatChangesInBetween() throws IOException {
    input(4096);
    write(0).succeeded();
    Cli.Result result =
        Cli.run(
            "read",
            device(),
            "--lba",
            0,
            "--blocks",
            8,
            "--out",
            out,
            "--verify-sha",
            "--faults",
            "corrupt on read nth=2");

    result.failed(ExitCode.FAILURE, "read twice");
    assertThat(out).doesNotExist();
  }

  @Test
  void specialFilesAreWrittenAsTheyAre() throws IOException {
    input(512);
    write(0).succeeded();
    Cli.run("read", device(), "--lba", 0, "--blocks", 1, "--out", "/dev/null").succeeded();
    assertThat(Files.isRegularFile(Path.of("/dev/null"))).isFalse();
  }

  @Test
  void linksAreFollowed() throws IOException {
    byte[] data = input(512);
    write(0).succeeded();
    Path target = Files.createFile(folder.resolve("target"));
    Files.createSymbolicLink(out, target);

    read(0, "--blocks", 1).succeeded();

    assertThat(out).isSymbolicLink();
    assertThat(target).hasBinaryContent(data);
  }

  @Test
  void otherNamespacesAreAddressedByNumber() throws IOException {
    byte[] data = input(4096);
    String two = "sim:size=1MiB,ns2.lba=4096,ns2.size=1MiB,ns2.file=" + image;
    Cli.run("write", two, "--nsid", 2, "--lba", 1, "--in", in, "--allow-write").succeeded();
    Cli.run("read", two, "--nsid", 2, "--lba", 1, "--blocks", 1, "--out", out).succeeded();

    assertThat(out).hasBinaryContent(data);
    Cli.run("read", two, "--nsid", 3, "--lba", 1, "--blocks", 1, "--out", out)
        .refused("no active namespace 3");
  }

  @Test
  void aTerminalSeesABarAndThenNothingOfIt() throws IOException {
    input(4 << 20);
    Cli.Result result =
        Cli.onTerminal("write", device(), "--lba", 0, "--in", in, "--allow-write", "--json");

    assertThat(result.code()).isZero();
    assertThat(result.json().get("bytes").getAsLong()).isEqualTo(4 << 20);
    assertThat(result.err()).contains("write").contains("MiB").endsWith(" \r");
  }

  @Test
  void aFullOutputFileIsNamed() {
    Cli.run("read", "sim:size=1MiB", "--lba", "0", "--bytes", "1MiB", "--out", "/dev/full")
        .failed(ExitCode.FAILURE, "/dev/full: No space left on device");
  }

  /** A limit of the system for files stands for a disk that is full. */
  @Test
  void noRoomUnderTheBackingFileIsSaid() throws IOException {
    Programs.need("util-linux", "prlimit");
    Path disk = folder.resolve("limited.img");
    Files.write(disk, new byte[32 << 20]);
    Path data = Files.write(folder.resolve("limited.data"), new byte[64 << 10]);
    String said =
        Programs.text(
            List.of(ExitCode.FAILURE),
            "prlimit",
            "--fsize=" + (16 << 20),
            Path.of(System.getProperty("java.home"), "bin", "java"),
            "--enable-native-access=ALL-UNNAMED",
            "-cp",
            System.getProperty("java.class.path"),
            "io.gpunvme.cli.Main",
            "write",
            "sim:file=" + disk,
            "--lba",
            "49152",
            "--in",
            data,
            "--allow-write");
    assertThat(said).contains("Capacity Exceeded").doesNotContain("Write Fault");
  }

  @Test
  void aFullStandardOutputIsSaid() {
    String java = System.getProperty("java.home") + "/bin/java";
    String command =
        "'%s' --enable-native-access=ALL-UNNAMED -cp '%s' io.gpunvme.cli.Main identify sim: >/dev/full"
            .formatted(java, System.getProperty("java.class.path"));
    assertThat(Programs.text(List.of(ExitCode.FAILURE), "sh", "-c", command))
        .isEqualTo("gpunvme: standard output: No space left on device\n");
  }
}
