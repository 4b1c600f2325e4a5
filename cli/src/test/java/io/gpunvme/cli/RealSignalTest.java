package io.gpunvme.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.gpunvme.base.ByteRange;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.device.Device;
import io.gpunvme.gpu.device.DeviceAddress;
import io.gpunvme.nvme.driver.ControllerOptions;
import io.gpunvme.nvme.pci.HostPaths;
import io.gpunvme.nvme.pci.NumaOption;
import io.gpunvme.nvme.pci.PciAddress;
import io.gpunvme.nvme.pci.sysfs.SysfsFunction;
import io.gpunvme.nvme.pci.sysfs.SysfsOptions;
import io.gpunvme.nvme.spec.Csts;
import io.gpunvme.nvme.spec.Registers;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
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

/**
 * Commands on a real controller that are told to end in the middle of their work. {@code
 * gpunvme.command} is the program. What the controller must have been through afterwards is added
 * to the file that {@code gpunvme.lifecycle} names, for whoever watches the controller: S where it
 * was started, D where it was shut down.
 */
@Tag("qemu")
class RealSignalTest {
  private static final String DEVICE = System.getProperty("gpunvme.device", "");
  private static final String COMMAND = System.getProperty("gpunvme.command", "");
  private static final String LIFECYCLE = System.getProperty("gpunvme.lifecycle", "");
  private static final Duration DEADLINE = Duration.ofSeconds(90);

  /** Looking has a price: on an emulated processor it takes the command's time. */
  private static final Duration LOOK_EVERY = Duration.ofMillis(20);

  private static final long BYTES = 400L << 20;
  private static final String BORROWED = "64MiB+16MiB";

  /** What write has read of its file before it writes for the first time. */
  private static final long WINDOW = 64L << 20;

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

  @Test
  void interruptedWhileItReads() throws Exception {
    start("read", DEVICE, "--lba", "0", "--bytes", "400MiB", "--out", at("out"));
    await("a part of the file", () -> Files.exists(part()) && Files.size(part()) > 0);
    assertThat(endedBy("INT")).isEqualTo(128 + 2);
    assertThat(folder).isDirectoryNotContaining(f -> !f.endsWith("log"));
    // Two lines of a logger: that no IOMMU checks what the device does.
    assertThat(log().replaceFirst(".*\\R.*it can reach all memory of this machine\\R", ""))
        .isEqualTo("gpunvme: interrupted; unfinished and temporary files are deleted\n");
    happened("SD");
    isFree();
  }

  @Test
  void terminatedWhileItWrites() throws Exception {
    startWriting();
    assertThatThrownBy(() -> Device.open(DEVICE, ControllerOptions.defaults()))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("in use by another gpunvme");
    assertThat(endedBy("TERM")).isEqualTo(128 + 15);
    assertThat(log()).doesNotContain("gpunvme write:");
    happened("SD");
    if (DEVICE.startsWith("sysfs:")) {
      assertThat(status().get(Csts.SHST)).isEqualTo(Csts.SHST_COMPLETE);
    }
    isFree();
  }

  @Test
  void killedWhileItWrites() throws Exception {
    assumeTrue(!DEVICE.startsWith("sysfs:"), "nobody stops a device that no driver has");
    startWriting();
    assertThat(endedBy("KILL")).isEqualTo(128 + 9);
    happened("S");
    isFree();
  }

  @Test
  void whatADemoHasBorrowedIsThereAgain() throws Exception {
    String before = sha256(BORROWED, "before");
    start("demo", "--device", DEVICE, "--write", BORROWED, "--allow-write", "--initiator", "cpu");
    // What is there has been kept by now.
    await("the file to be read", () -> position("sample.safetensors") > 0);
    assertThat(endedBy("TERM")).isEqualTo(128 + 15);
    assertThat(log()).contains("interrupted; what was in").endsWith("is there again\n");
    happened("SD");
    assertThat(sha256(BORROWED, "after")).isEqualTo(before);
    isFree();
  }

  @Test
  void whatAMeasurementHasBorrowedIsThereAgain() throws Exception {
    String before = sha256(BORROWED, "before");
    start(
        "bench",
        "random",
        "--device",
        DEVICE,
        "--initiator",
        "cpu",
        "--mix",
        "50",
        "--range",
        BORROWED,
        "--allow-write",
        "--seconds",
        "1000");
    await("what is there to be kept", () -> keptBytes() == 16 << 20);
    assertThat(endedBy("INT")).isEqualTo(128 + 2);
    assertThat(log()).contains("interrupted; what was in").endsWith("is there again\n");
    assertThat(keptBytes()).as("nothing kept").isEqualTo(-1);
    happened("SD");
    assertThat(sha256(BORROWED, "after")).isEqualTo(before);
    isFree();
  }

  /** Of the copy that a measurement has; -1 if there is none. */
  private static long keptBytes() throws IOException {
    Path temporary = Path.of(System.getProperty("java.io.tmpdir"));
    try (DirectoryStream<Path> folders = Files.newDirectoryStream(temporary, "gpunvme-bench-*")) {
      for (Path one : folders) {
        Path copy = one.resolve("borrowed.blocks");
        if (Files.exists(copy)) {
          return Files.size(copy);
        }
      }
    }
    return -1;
  }

  /** Of what the SSD has. */
  private String sha256(String range, String name) throws IOException {
    ByteRange bytes = ByteRange.parse(range);
    Cli.Result read =
        Cli.run(
            "read",
            DEVICE,
            "--lba",
            bytes.offset() / 512,
            "--bytes",
            bytes.bytes(),
            "--out",
            at(name),
            "--json");
    assertThat(read.code()).as(read.err()).isZero();
    happened("SD");
    return read.json().get("sha256").getAsString();
  }

  private String at(String name) {
    return folder.resolve(name).toString();
  }

  private void start(String... words) throws IOException {
    List<String> all = new ArrayList<>(List.of(COMMAND));
    all.addAll(List.of(words));
    process =
        new ProcessBuilder(all)
            .redirectErrorStream(true)
            .redirectOutput(folder.resolve("log").toFile())
            .start();
  }

  private void startWriting() throws Exception {
    try (RandomAccessFile file = new RandomAccessFile(at("in"), "rw")) {
      file.setLength(BYTES);
    }
    start("write", DEVICE, "--lba", "0", "--in", at("in"), "--allow-write");
    await("the first window to be read", () -> position("in") >= WINDOW);
  }

  /** The file under the name that it has until it is complete. */
  private Path part() {
    return folder.resolve(".out." + process.pid() + ".part");
  }

  /** How far the process has read a file of this name. */
  private long position(String name) {
    Path own = Path.of("/proc", Long.toString(process.pid()));
    try (DirectoryStream<Path> open = Files.newDirectoryStream(own.resolve("fd"))) {
      for (Path fd : open) {
        if (Files.isSymbolicLink(fd) && Files.readSymbolicLink(fd).endsWith(name)) {
          List<String> info = Files.readAllLines(own.resolve("fdinfo").resolve(fd.getFileName()));
          if (isForReading(info)) {
            return Long.parseLong(info.getFirst().replaceFirst("pos:\\s*", "").strip());
          }
        }
      }
    } catch (IOException e) {
      // Another of its files was closed just now: the name is gone, or what it named cannot be
      // read any more. Who waits sees whether the process is, too.
      return 0;
    }
    return 0;
  }

  /** The demo's own file is written first. */
  private static boolean isForReading(List<String> info) {
    return info.stream()
        .filter(line -> line.startsWith("flags:"))
        .noneMatch(line -> (Integer.parseInt(line.replaceFirst("flags:\\s*", ""), 8) & 3) != 0);
  }

  private interface Check {
    boolean holds() throws IOException;
  }

  private void await(String what, Check check) throws IOException {
    long start = System.nanoTime();
    while (!check.holds()) {
      assertThat(process.isAlive()).as("waiting for " + what + "; " + log()).isTrue();
      assertThat(System.nanoTime() - start).as(what).isLessThan(DEADLINE.toNanos());
      LockSupport.parkNanos(LOOK_EVERY.toNanos());
    }
  }

  /** Sends a signal and returns the exit code. */
  private int endedBy(String signal) throws Exception {
    String pid = Long.toString(process.pid());
    assertThat(new ProcessBuilder("kill", "-" + signal, pid).start().waitFor()).isZero();
    assertThat(process.waitFor(DEADLINE.toSeconds(), TimeUnit.SECONDS)).as("ended").isTrue();
    return process.exitValue();
  }

  private String log() throws IOException {
    return Files.readString(folder.resolve("log"));
  }

  private static void happened(String states) throws IOException {
    if (!LIFECYCLE.isEmpty()) {
      Files.writeString(
          Path.of(LIFECYCLE), states, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
    }
  }

  /** CSTS as the command left it: without VFIO nothing resets the function. */
  private static Csts status() {
    PciAddress address = PciAddress.parse(DeviceAddress.parse(DEVICE).place());
    try (SysfsFunction function =
        SysfsFunction.open(address, new SysfsOptions(true, NumaOption.AUTO, HostPaths.host()))) {
      return new Csts(function.bar(0).read32(Registers.CSTS));
    }
  }

  /** Neither the lock nor the device is held any more, and the controller works. */
  private static void isFree() throws IOException {
    try (Device device = Device.open(DEVICE, ControllerOptions.defaults())) {
      assertThat(device.controller().namespaces()).isNotEmpty();
    }
    happened("SD");
  }
}
