package io.gpunvme.tools.example;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.gpunvme.base.ByteRange;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.cuda.FakeDriver;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.queue.CpuCuda;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.gpu.transfer.InitiatorKind;
import io.gpunvme.gpu.transfer.InitiatorOptions;
import io.gpunvme.nvme.ControllerFatalException;
import io.gpunvme.nvme.NvmeStatusException;
import io.gpunvme.nvme.NvmeTimeoutException;
import io.gpunvme.nvme.driver.ControllerOptions;
import io.gpunvme.sim.SimConfig;
import io.gpunvme.sim.SimulatedController;
import io.gpunvme.sim.serve.VfioUserServer;
import io.gpunvme.testing.Images;
import io.gpunvme.tools.ssd.Ssds;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Random;
import java.util.StringJoiner;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/** Walks by the CPU, and by the real kernel on the CPU, through whatever is on SSDs. */
@Timeout(120)
class GatherTest {
  private static final int BYTES = 1 << 20;
  private static final GatherOptions OPTIONS = new GatherOptions(200, 4096, 40, 5, 1);

  @TempDir Path folder;

  @BeforeEach
  void write() throws IOException {
    Path source = Files.createDirectory(folder.resolve("source"));
    Files.write(source.resolve("data"), bytes(5));
    Images.ext4(folder.resolve("ext4"), "8M", source);
    Images.partition(folder.resolve("disk"), folder.resolve("ext4"));
    for (String name : new String[] {"a", "b"}) {
      Files.write(folder.resolve(name), bytes(name.charAt(0)));
    }
    Files.copy(folder.resolve("a"), folder.resolve("c"));
  }

  private static byte[] bytes(int seed) {
    byte[] all = new byte[BYTES];
    new Random(seed).nextBytes(all);
    return all;
  }

  private Ssds open(String address, String faults) {
    String named = address.replaceAll("file=(?=[a-z])", "latency=0,file=" + folder + "/");
    return Ssds.open(named, ControllerOptions.defaults(), faults, 1);
  }

  private static InitiatorOptions by(InitiatorKind who) {
    return InitiatorOptions.defaults().with(who, Placement.HOST);
  }

  @ParameterizedTest
  @CsvSource({
    "sim:file=a,1",
    "'stripe:sim:file=a,sim:file=b;unit=8KiB',2",
    "'replica:sim:file=a,sim:file=c',2",
    "'sim:file=disk#2',1",
    "'sim:file=ext4:/data',1"
  })
  void everyWalkEndsWhereTheCpuEnds(String address, int ssds) {
    for (InitiatorKind who : new InitiatorKind[] {InitiatorKind.CPU, InitiatorKind.GPU}) {
      try (Ssds open = open(address, "");
          Accelerator accelerator = accelerator(who)) {
        GatherReport report =
            Gather.run(
                OPTIONS, open.blocks(new ByteRange(0, BYTES)), accelerator, by(who).with(3, 32, 0));
        assertThat(report.reads()).isEqualTo(200);
        assertThat(report.bytes()).isEqualTo(200 * 4096);
        assertThat(report.initiator()).isEqualTo(who.name());
        assertThat(report.placement()).isEqualTo(Placement.HOST);
        assertThat(report.queuePairs()).isEqualTo(3);
        assertThat(report.depth()).isEqualTo(32);
        assertThat(report.ssds()).isEqualTo(ssds);
      }
    }
  }

  /** Memory that such an SSD reaches is made for it. */
  @Test
  void theSsdMayBeAnotherProcesss() throws IOException {
    try (SimulatedController ssd =
            SimulatedController.create(SimConfig.parse("latency=0,file=" + folder.resolve("a")));
        VfioUserServer server = VfioUserServer.start(ssd, folder.resolve("socket"));
        Ssds open = open("vfio-user:" + server.socket(), "");
        Accelerator gpu = accelerator(InitiatorKind.GPU)) {
      GatherReport report = Gather.run(OPTIONS, open.blocks(null), gpu, by(InitiatorKind.GPU));
      assertThat(report.reads()).isEqualTo(200);
    }
  }

  @Test
  void aKernelsQueuesAreAsDeepAsItsWarpsAreWide() {
    try (Ssds ssds = open("sim:file=a", "");
        Accelerator gpu = accelerator(InitiatorKind.GPU)) {
      InitiatorOptions odd = by(InitiatorKind.GPU).with(1, 33, 0);
      assertThatExceptionOfType(InvalidRequestException.class)
          .isThrownBy(() -> Gather.run(OPTIONS, ssds.blocks(null), gpu, odd))
          .withMessageContaining("32");
    }
  }

  @Test
  void aRowThatArrivesWrongIsSeen() {
    try (Ssds ssds = open("sim:file=a", "corrupt on read nth=50");
        CpuAccelerator cpu = CpuAccelerator.open()) {
      assertThatIllegalStateException()
          .isThrownBy(() -> Gather.run(OPTIONS, ssds.blocks(null), cpu, by(InitiatorKind.CPU)))
          .withMessageContaining("another result");
    }
  }

  private static Accelerator accelerator(InitiatorKind who) {
    return who == InitiatorKind.CPU
        ? CpuAccelerator.open()
        : GpuAccelerator.open(FakeDriver.load(CpuCuda.library()).device(0));
  }

  @ParameterizedTest
  @EnumSource(
      value = InitiatorKind.class,
      names = {"CPU", "GPU"})
  void aFailureOfTheSsdIsItsOwn(InitiatorKind who) {
    try (Ssds ssds = open("sim:file=a", "status=media/unrecovered-read-error dnr on read nth=50");
        Accelerator accelerator = accelerator(who)) {
      assertThatExceptionOfType(NvmeStatusException.class)
          .isThrownBy(() -> Gather.run(OPTIONS, ssds.blocks(null), accelerator, by(who)))
          .satisfies(e -> assertThat(e.slba()).isBetween(0L, BYTES / 512L))
          .withMessageContaining("Unrecovered Read Error");
    }
  }

  @ParameterizedTest
  @EnumSource(
      value = InitiatorKind.class,
      names = {"CPU", "GPU"})
  void whatTheSsdAllowsToBeRepeatedIsRepeated(InitiatorKind who) {
    // Few and far apart: if every fifth one failed, some read would be the fifth each time.
    StringJoiner rules = new StringJoiner(";");
    for (int nth : List.of(10, 60, 110, 160)) {
      rules.add("status=generic/namespace-not-ready on read nth=" + nth);
    }
    try (Ssds ssds = open("sim:file=a", rules.toString());
        Accelerator accelerator = accelerator(who)) {
      GatherReport report = Gather.run(OPTIONS, ssds.blocks(null), accelerator, by(who));
      assertThat(report.reads()).isEqualTo(200);
      assertThat(report.retries()).isEqualTo(4);
    }
  }

  @Test
  void anSsdThatNeverHasTimeIsToldAfterAFewTries() {
    try (Ssds ssds = open("sim:file=a", "status=generic/namespace-not-ready on read");
        Accelerator gpu = accelerator(InitiatorKind.GPU)) {
      assertThatExceptionOfType(NvmeStatusException.class)
          .isThrownBy(() -> Gather.run(OPTIONS, ssds.blocks(null), gpu, by(InitiatorKind.GPU)))
          .withMessageContaining("Namespace Not Ready");
    }
  }

  @Test
  void aReadThatNeverEndsEndsTheWalk() {
    String address = "sim:latency=0,file=" + folder.resolve("a");
    ControllerOptions soon = ControllerOptions.builder().ioTimeout(Duration.ofMillis(200)).build();
    try (Ssds ssds = Ssds.open(address, soon, "drop on read nth=50", 1);
        Accelerator gpu = accelerator(InitiatorKind.GPU)) {
      assertThatExceptionOfType(NvmeTimeoutException.class)
          .isThrownBy(() -> Gather.run(OPTIONS, ssds.blocks(null), gpu, by(InitiatorKind.GPU)))
          .withMessageContaining("no completion before the deadline");
    }
  }

  @Test
  void anSsdThatDiesWhileAKernelWalksIsTold() {
    try (Ssds ssds = open("sim:file=a", "gone after=60");
        Accelerator gpu = accelerator(InitiatorKind.GPU)) {
      assertThatExceptionOfType(ControllerFatalException.class)
          .isThrownBy(() -> Gather.run(OPTIONS, ssds.blocks(null), gpu, by(InitiatorKind.GPU)))
          .withMessageContaining("in trouble");
    }
  }

  @Test
  void whatDoesNotFitIsRefused() {
    try (Ssds ssds = open("sim:lba=4096,file=a", "");
        CpuAccelerator cpu = CpuAccelerator.open()) {
      refused(ssds, cpu, new GatherOptions(16, 6144, 4, 1, 1), "whole blocks");
      refused(ssds, cpu, new GatherOptions(257, 4096, 4, 1, 1), "256 places");
      assertThatExceptionOfType(InvalidRequestException.class)
          .isThrownBy(() -> Gather.run(OPTIONS, ssds.blocks(null), cpu, by(InitiatorKind.GPU)))
          .withMessageContaining("needs a GPU");
    }
  }

  private static void refused(
      Ssds ssds, Accelerator accelerator, GatherOptions options, String why) {
    assertThatExceptionOfType(InvalidRequestException.class)
        .isThrownBy(
            () -> Gather.run(options, ssds.blocks(null), accelerator, by(InitiatorKind.CPU)))
        .withMessageContaining(why);
  }
}
