package io.gpunvme.cli;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.cuda.Cuda;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * Whatever is wrong with a device, each command that takes one says it in one line, and leaves the
 * device as it was and free. {@link KernelCommandsTest} has the same for GPUs.
 */
@Timeout(120)
class DeviceFailuresTest {
  private static final int BYTES = 4 << 20;

  /** Small ones: what ends well must not take long either. */
  private static final List<String> READING =
      List.of(
          "bench random --device DEVICE --queues 2",
          "bench stream --device DEVICE",
          "bench queue --device DEVICE",
          "bench layers --device DEVICE",
          "demo --read 2MiB --device DEVICE --max-transfer 16KiB",
          "gather --rows 200 --threads 16 --hops 8 --device DEVICE");

  private static final List<String> WRITING =
      List.of(
          "bench random --mix 50 --range 1MiB --allow-write --device DEVICE",
          "bench stream --mix 0 --range 1MiB --allow-write --device DEVICE",
          "demo --write 1MiB --allow-write --device DEVICE");

  @TempDir private Path folder;
  private Path image;
  private byte[] before;

  @BeforeEach
  void write() throws IOException {
    before = new byte[BYTES];
    new Random(1).nextBytes(before);
    image = Files.write(folder.resolve("ssd"), before);
  }

  /** Nothing was written, and who comes next can have it. */
  @AfterEach
  void theSsdIsAsItWasAndFree() {
    assertThat(image).hasBinaryContent(before);
    Cli.run("identify", "sim:file=" + image).succeeded();
  }

  private Cli.Result run(String line, String device, String... more) {
    List<Object> words = new ArrayList<>();
    for (String word : line.split(" ")) {
      words.add(word.equals("DEVICE") ? device : word);
    }
    words.addAll(List.of("--initiator", "cpu"));
    words.addAll(List.of(more));
    return Cli.run(words.toArray());
  }

  private static List<String> all() {
    List<String> all = new ArrayList<>(READING);
    all.addAll(WRITING);
    return all;
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "vfio:0000:ff:1f.7               | there is no PCI function 0000:ff:1f.7",
        "sysfs:0000:ff:1f.7,unsafe=true  | there is no PCI function 0000:ff:1f.7",
        "0000:ff:1f.7                    | vfio:0000:ff:1f.7",
        "vfio-user:FOLDER/nobody         | start a server first",
        "sim:file=FOLDER/none            | does not exist",
        "sim:file=FOLDER/ssd#7           | no partition table",
        "sim:file=FOLDER/ssd:/a          | neither a known file system nor",
        "stripe:SSD,SSD                  | is in use as another device's medium",
        "stripe:SSD,vfio-user:FOLDER/no  | start a server first",
        "SSD,faults=explode              | unknown action 'explode'",
        "FOLDER/ssd                      | mounted file system",
        "/dev/nvme0n1                    | Name an SSD",
      })
  void whatIsNoDeviceIsRefused(String address, String why) {
    String device = address.replace("SSD", "sim:file=FOLDER/ssd").replace("FOLDER", "" + folder);
    for (String line : all()) {
      if (!line.startsWith("demo --write") || !address.equals("sim:file=FOLDER/none")) {
        run(line, device).refused(why);
      }
    }
  }

  @Test
  void whatMayNotBeWrittenIsRefused() throws IOException {
    Files.setPosixFilePermissions(image, PosixFilePermissions.fromString("r--r--r--"));
    for (String line : all()) {
      run(line, "sim:file=" + image).refused("may not be written; use readonly=on");
    }
    Files.setPosixFilePermissions(image, PosixFilePermissions.fromString("rw-r--r--"));
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "bench random --range 3MiB+2MiB               | is not inside",
        "bench stream --range 5MiB                    | is not inside",
        "bench queue --range 4MiB+4KiB                | is not inside",
        "bench layers --range 4MiB+1MiB | is not inside",
        "bench layers --range 16KiB | no 8 layers",
        "bench layers --range 1MiB+8MiB               | is not inside",
        "bench random --mix 0 --range 5MiB --allow-write  | is not inside",
        "demo --read 4MiB+512                         | is not inside",
        "demo --write 3MiB+2MiB --allow-write         | is not inside",
        "gather --rows 1025                           | at most --rows 1024",
        "bench random --nsid 2                        | no active namespace 2",
        "bench layers --nsid 2                        | no active namespace 2",
        "bench queue --queues 65                      | outside 1..64",
        "gather --depth 65535 --rows 200              | depth 65535",
      })
  void whatIsNotOnTheSsdIsRefused(String line, String why) {
    run(line + " --device DEVICE", "sim:latency=0,file=" + image).refused(why);
  }

  /** With the reason, and what to do. */
  @Test
  void withoutAGpuEachSaysSo() {
    Assumptions.assumeFalse(Cuda.isAvailable(), "there is a GPU");
    List<String> lines = new ArrayList<>(all());
    lines.add("load --device DEVICE");
    for (String line : lines) {
      for (String how : List.of("--initiator gpu", "--placement vram", "--placement vram-data")) {
        String words = line.replace("DEVICE", "sim:file=" + image) + " " + how;
        Cli.Result result = Cli.run((Object[]) words.split(" "));
        assertThat(result.code()).as(words).isIn(ExitCode.FAILURE, ExitCode.USAGE);
        assertThat(result.err())
            .as(words)
            .hasLineCount(1)
            .containsPattern(
                "install the NVIDIA driver|gpunvme doctor says what stands in the way");
      }
    }
    Cli.run("check-p2p", "sim:file=" + image).failed(ExitCode.FAILURE, "the NVIDIA driver");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "gone on read nth=60                                        | all ones",
        "status=media/unrecovered-read-error dnr on read nth=60     | Unrecovered Read Error",
      })
  void anSsdThatDiesIsTold(String faults, String why) {
    for (String line : READING) {
      Cli.Result result =
          run(
              line.replace("gather", "gather --depth 2 --queues 1"),
              "sim:latency=0,file=" + image,
              "--timeout",
              "200ms",
              "--faults",
              faults);
      result.failed(ExitCode.FAILURE, why);
      assertThat(result.err()).as(line).doesNotContain("unexpected");
    }
  }
}
