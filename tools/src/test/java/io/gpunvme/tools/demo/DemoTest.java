package io.gpunvme.tools.demo;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.device.DeviceAddress;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.gpu.transfer.InitiatorKind;
import io.gpunvme.gpu.transfer.InitiatorOptions;
import io.gpunvme.nvme.DeviceGoneException;
import io.gpunvme.nvme.driver.ControllerOptions;
import io.gpunvme.tools.ssd.FreeSpace;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.time.Duration;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class DemoTest {
  @TempDir Path folder;

  private DemoOptions sample(long bytes, String device, String faults) {
    return DemoOptions.in(folder)
        .withSample(bytes)
        .withDevice(DeviceAddress.parse(device), faults)
        .withInitiator(cpu());
  }

  private static InitiatorOptions cpu() {
    return InitiatorOptions.defaults().with(InitiatorKind.CPU, null);
  }

  private static DemoReport run(DemoOptions options) throws IOException {
    return Demo.run(options, DemoListener.NONE);
  }

  @Test
  void aSampleArrivesAndEveryNumberIsAccountedFor() throws Exception {
    DemoReport report =
        run(sample(5_000_000, "sim:mdts=64KiB,latency=0", "").withInitiator(cpu().with(3, 8, 2)));

    assertThat(report.verified()).isTrue();
    assertThat(report.sample()).isTrue();
    assertThat(report.bytes()).isEqualTo(5_000_000);
    assertThat(report.arrivedSha256()).isEqualTo(sha256(report.file()));
    assertThat(report.maxTransferBytes()).isEqualTo(64 << 10);
    assertThat(report.blockSize()).isEqualTo(512);
    assertThat(report.get().path()).isEqualTo("direct");
    assertThat(report.get().initiator()).isEqualTo("CPU");
    assertThat(report.get().placement()).isEqualTo(Placement.HOST);
    assertThat(report.getByCpu()).hasValue(report.get().commands());
    assertThat(report.putByCpu()).hasValue(report.put().commands());
    assertThat(report.pinned()).isFalse();
    assertThat(report.get().queuePairs()).isEqualTo(3);
    assertThat(report.get().depth()).isEqualTo(8);
    assertThat(report.get().threads()).isEqualTo(2);
    long blocks = Math.ceilDiv(5_000_000L, 512);
    assertThat(report.get().commands()).isEqualTo(Math.ceilDiv(blocks * 512, 64L << 10));
    assertThat(report.get().bytes()).isEqualTo(blocks * 512);
    assertThat(report.put().bytes()).isEqualTo(blocks * 512);
    assertThat(report.get().sqDoorbells()).isBetween(1L, report.get().commands());
    assertThat(report.get().latencyNanos(99)).isPositive();
  }

  @Test
  void theImageIsTheFile() throws IOException {
    DemoReport report = run(sample(1 << 20, "sim:latency=0,lba=4096", ""));

    assertThat(report.image()).isEqualTo(folder.resolve("ssd.img"));
    assertThat(Files.mismatch(report.file(), folder.resolve("ssd.img"))).isEqualTo(-1);
  }

  /** Sizes around a block and around the window in which files are put on the SSD. */
  @ParameterizedTest
  @ValueSource(longs = {1, 511, 512, 513, (64 << 20) - 1, (64 << 20) + 1})
  void anyFileArrives(long bytes) throws Exception {
    Path file = folder.resolve("file");
    byte[] content = new byte[(int) bytes];
    new java.util.SplittableRandom(bytes).nextBytes(content);
    Files.write(file, content);

    DemoReport report =
        run(
            DemoOptions.in(folder)
                .withFile(file)
                .withDevice(DeviceAddress.parse("sim:latency=0"), ""));

    assertThat(report.verified()).isTrue();
    assertThat(report.sample()).isFalse();
    assertThat(report.bytes()).isEqualTo(bytes);
    assertThat(report.sourceSha256()).isEqualTo(sha256(file));
  }

  @Test
  void listenersAreToldEveryByteOfEveryPhase() throws IOException {
    List<DemoPhase> phases = new ArrayList<>();
    Map<DemoPhase, Long> announced = new EnumMap<>(DemoPhase.class);
    Map<DemoPhase, Long> moved = new EnumMap<>(DemoPhase.class);
    Demo.run(
        sample(1 << 20, "sim:latency=0", ""),
        new DemoListener() {
          @Override
          public void phase(DemoPhase phase, long bytes) {
            phases.add(phase);
            announced.merge(phase, bytes, Long::sum);
          }

          @Override
          public synchronized void moved(long bytes) {
            moved.merge(phases.getLast(), bytes, Long::sum);
          }
        });

    assertThat(phases)
        .containsExactly(DemoPhase.SAMPLE, DemoPhase.PUT, DemoPhase.GET, DemoPhase.CHECK);
    assertThat(moved).isEqualTo(announced);
    assertThat(moved).containsEntry(DemoPhase.GET, 1L << 20);
  }

  @Test
  void corruptedDataIsFound() throws IOException {
    DemoReport report = run(sample(4 << 20, "sim:latency=0", "corrupt on read nth=3"));

    assertThat(report.verified()).isFalse();
    assertThat(report.arrivedSha256()).isNotEqualTo(report.sourceSha256());
  }

  @Test
  void dataCorruptedOnTheWayToTheMediumIsFoundToo() throws IOException {
    DemoReport report = run(sample(4 << 20, "sim:latency=0", "corrupt on write nth=3"));

    assertThat(report.verified()).isFalse();
  }

  @Test
  void errorsThatAllowItAreRetried() throws IOException {
    DemoReport report =
        run(sample(4 << 20, "sim:", "status=generic/namespace-not-ready on read every=3"));

    assertThat(report.verified()).isTrue();
    assertThat(report.get().retries()).isPositive();
    assertThat(report.get().commands()).isEqualTo(8 + report.get().retries());
    assertThat(report.put().retries()).isZero();
  }

  private static ControllerOptions impatient() {
    return ControllerOptions.builder().allowWrite(true).ioTimeout(Duration.ofMillis(500)).build();
  }

  @Test
  void aLostCompletionIsRecovered() throws IOException {
    DemoReport report =
        run(sample(4 << 20, "sim:", "drop on read nth=2").withController(impatient()));

    assertThat(report.verified()).isTrue();
    assertThat(report.get().recoveries()).isPositive();
  }

  @Test
  void aDeviceThatVanishesFailsWithItsName() {
    DemoOptions options =
        sample(4 << 20, "sim:", "gone on read after=3").withController(impatient());
    assertThatThrownBy(() -> run(options)).isInstanceOf(DeviceGoneException.class);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '"',
      value = {
        "sim:size=1MiB,latency=0 | size=1048576 is too small",
        "sim:lba=100             | lba=100",
        "sim:workers=0           | workers=0",
        "sim:nosuch=1            | nosuch",
        "sim:readonly=on         | readonly=on is not possible",
      })
  void refusesDevicesThatMakeNoSense(String device, String message) {
    assertThatThrownBy(() -> run(sample(2 << 20, device, "")))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining(message);
  }

  @Test
  void refusesFaultsThatAreNoRulesBeforeItMakesAFile() {
    assertThatThrownBy(() -> run(sample(2 << 20, "sim:", "explode")))
        .isInstanceOf(InvalidRequestException.class);
    assertThat(folder).isEmptyDirectory();
  }

  @Test
  void overwritesNoImage() throws IOException {
    Path image = Files.writeString(folder.resolve("precious"), "data");
    assertThatThrownBy(() -> run(sample(2 << 20, "sim:file=" + image, "")))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("overwrites none");
    assertThat(image).hasContent("data");
  }

  @Test
  void makesTheImageWhereItIsTold() throws IOException {
    Path image = folder.resolve("here, or there");
    DeviceAddress device =
        DeviceAddress.parse("sim:latency=0").with("file", image.toString()).with("size", "2MiB");
    DemoReport report = run(DemoOptions.in(folder).withSample(1 << 20).withDevice(device, ""));

    assertThat(report.verified()).isTrue();
    assertThat(report.image()).isEqualTo(image);
    assertThat(image).hasSize(2 << 20);
  }

  @Test
  void refusesFilesThatAreNone() throws IOException {
    Path empty = Files.createFile(folder.resolve("empty"));
    DemoOptions options = DemoOptions.in(folder);

    assertThatThrownBy(() -> run(options.withFile(folder.resolve("missing"))))
        .isInstanceOf(NoSuchFileException.class);
    assertThatThrownBy(() -> run(options.withFile(folder)))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("regular");
    assertThatThrownBy(() -> run(options.withFile(empty)))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("empty");
  }

  @Test
  void checksThatThereIsRoom() {
    assertThatThrownBy(() -> FreeSpace.require(folder, Long.MAX_VALUE))
        .isInstanceOf(IOException.class)
        .hasMessageContaining("MiB free");
  }

  private static String sha256(Path file) throws Exception {
    return HexFormat.of()
        .formatHex(MessageDigest.getInstance("SHA-256").digest(Files.readAllBytes(file)));
  }
}
