package io.gpunvme.gpu.transfer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.device.Device;
import io.gpunvme.gpu.queue.FakeGpu;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.nvme.driver.ControllerOptions;
import io.gpunvme.nvme.driver.NvmeController;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class InitiatorOptionsTest {
  private static TransferReport read(String device, InitiatorOptions options, long blocks) {
    try (Device open = Device.open(device, ControllerOptions.defaults());
        CpuAccelerator accelerator = CpuAccelerator.open();
        Initiator initiator = options.open(open.controller(), accelerator);
        DeviceBuffer buffer = accelerator.allocate(blocks * 512)) {
      NvmeController controller = open.controller();
      TransferPlan plan =
          TransferPlan.of(
              Direction.READ,
              controller.namespace(1),
              controller.maxTransferBytes(),
              List.of(new Extent(0, blocks, 0)));
      return initiator.run(plan, buffer, TransferListener.NONE);
    }
  }

  @Test
  void choosesWithinWhatTheControllerHas() {
    TransferReport report =
        read("sim:queues=2,mqes=7,latency=0", InitiatorOptions.defaults(), 2048);

    assertThat(report.queuePairs()).isEqualTo(2);
    assertThat(report.depth()).isEqualTo(7);
    assertThat(report.threads()).isBetween(1, 2);
  }

  @Test
  void choosesTheUsualNumbersWhereThereIsEnough() {
    TransferReport report = read("sim:latency=0", InitiatorOptions.defaults(), 2048);

    assertThat(report.queuePairs()).isEqualTo(InitiatorOptions.QUEUE_PAIRS);
    assertThat(report.depth()).isEqualTo(InitiatorOptions.DEPTH);
    assertThat(report.threads())
        .isEqualTo(InitiatorOptions.suitableThreads())
        .isBetween(1, InitiatorOptions.QUEUE_PAIRS);
  }

  @Test
  void refusesNumbersThatWereGivenAndDoNotFit() {
    InitiatorOptions tooMany = InitiatorOptions.defaults().with(3, 1, 1);
    assertThatThrownBy(() -> read("sim:queues=2", tooMany, 8))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("queue pairs 3");
  }

  /** Nothing falls back silently. */
  @ParameterizedTest
  @CsvSource({
    "GPU,  HOST,      0, a GPU as accelerator",
    "GPU,  VRAM,      0, needs a GPU",
    "AUTO, VRAM_DATA, 0, needs a GPU",
    "CPU,  VRAM,      0, needs a GPU",
  })
  void refusesWhatThisAcceleratorCannotDo(
      InitiatorKind initiator, Placement placement, int threads, String message) {
    InitiatorOptions options =
        InitiatorOptions.defaults().with(0, 0, threads).with(initiator, placement);
    assertThatThrownBy(() -> read("sim:queues=2", options, 8))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining(message);
  }

  @Test
  void theCpuReachesGpuMemoryForDataButNotForQueues() {
    try (Device device = Device.open("sim:latency=0", ControllerOptions.defaults());
        FakeGpu gpu = new FakeGpu();
        DeviceBuffer buffer = gpu.allocate(64 << 10)) {
      InitiatorOptions cpu = InitiatorOptions.defaults().with(InitiatorKind.CPU, null);
      assertThat(cpu.placement(device.controller(), gpu)).isEqualTo(Placement.VRAM_DATA);
      TransferPlan plan =
          TransferPlan.of(
              Direction.READ,
              device.controller().namespace(1),
              8192,
              List.of(new Extent(0, 128, 0)));
      try (Initiator initiator = cpu.open(device.controller(), gpu)) {
        TransferReport report = initiator.run(plan, buffer, TransferListener.NONE);
        assertThat(report.initiator()).isEqualTo("CPU");
        assertThat(report.placement()).isEqualTo(Placement.VRAM_DATA);
      }
      assertThatThrownBy(
              () -> cpu.with(InitiatorKind.CPU, Placement.VRAM).open(device.controller(), gpu))
          .isInstanceOf(InvalidRequestException.class)
          .hasMessageContaining("placement vram needs a GPU as initiator");
    }
  }

  /** Only kernels hang on copies by CUDA, and only those for a controller that is software. */
  @Test
  void besideForeignCudaKernelsHaveAnEmbeddedControllersDataInHostMemory() {
    try (Device device = Device.open("sim:latency=0", ControllerOptions.defaults());
        FakeGpu gpu = new FakeGpu();
        CpuAccelerator noGpu = CpuAccelerator.open()) {
      NvmeController controller = device.controller();
      InitiatorOptions auto = InitiatorOptions.defaults();
      InitiatorOptions foreign = auto.with(2, 4, 0).withForeignCuda(true);
      assertThat(foreign.queuePairs()).as("kept").isEqualTo(2);
      assertThat(foreign.placement(controller, gpu)).isEqualTo(Placement.HOST);
      assertThat(foreign.avoidsCudaCopies(controller, gpu)).isTrue();
      assertThat(auto.placement(controller, gpu)).isEqualTo(Placement.VRAM_DATA);
      assertThat(auto.avoidsCudaCopies(controller, gpu)).isFalse();
      InitiatorOptions cpu = foreign.with(InitiatorKind.CPU, null);
      assertThat(cpu.placement(controller, gpu)).isEqualTo(Placement.VRAM_DATA);
      InitiatorOptions told = foreign.with(InitiatorKind.GPU, Placement.VRAM);
      assertThat(told.placement(controller, gpu)).isEqualTo(Placement.VRAM);
      assertThat(told.avoidsCudaCopies(controller, gpu)).isFalse();
      assertThat(foreign.avoidsCudaCopies(controller, noGpu)).isFalse();
    }
  }

  @Test
  void autoIsWhatTheAcceleratorIs() {
    try (FakeGpu gpu = new FakeGpu();
        CpuAccelerator cpu = CpuAccelerator.open()) {
      InitiatorOptions auto = InitiatorOptions.defaults();
      assertThat(auto.initiator(gpu)).isEqualTo(InitiatorKind.GPU);
      assertThat(auto.initiator(cpu)).isEqualTo(InitiatorKind.CPU);
    }
  }

  @Test
  void totalsAddUp() {
    InitiatorOptions options = InitiatorOptions.defaults().with(2, 4, 1);
    TransferReport first = read("sim:mdts=8KiB,latency=0", options, 64);
    TransferReport second = read("sim:mdts=8KiB,latency=0", options, 32);
    TransferTotal total = new TransferTotal();

    assertThatThrownBy(total::report).isInstanceOf(IllegalStateException.class);
    total.add(first);
    assertThat(total.report()).isEqualTo(first);
    total.add(second);
    TransferReport sum = total.report();

    assertThat(sum.commands()).isEqualTo(6);
    assertThat(sum.bytes()).isEqualTo(96 * 512);
    assertThat(sum.nanos()).isEqualTo(first.nanos() + second.nanos());
    assertThat(sum.sqDoorbells()).isEqualTo(first.sqDoorbells() + second.sqDoorbells());
    assertThat(sum.cqDoorbells()).isEqualTo(first.cqDoorbells() + second.cqDoorbells());
    assertThat(sum.latency().getTotalCount()).isEqualTo(6);
    assertThat(first.latency().getTotalCount()).as("not changed").isEqualTo(4);
    assertThat(sum.queuePairs()).isEqualTo(first.queuePairs());
  }

  @ParameterizedTest
  @CsvSource({
    "2, 4, 8, false",
    "4, 4, 16, false",
    "8, 4, 16, true",
    "3, 2, 4, true",
    "2, 1, 2, false"
  })
  void theSsdsOfASetDoNotTakeMoreThreadsThanThereAreProcessors(
      int ssds, int threads, int processors, boolean tooMany) {
    assertThat(InitiatorOptions.areTooMany(ssds, threads, processors)).isEqualTo(tooMany);
  }

  @Test
  void whatIsNamedStaysInASet() {
    try (CpuAccelerator cpu = CpuAccelerator.open()) {
      InitiatorOptions many = InitiatorOptions.defaults().forEachOf(1000, cpu);
      assertThat(many.threads()).isEqualTo(1);
      InitiatorOptions named = InitiatorOptions.defaults().with(4, 8, 3);
      assertThat(named.forEachOf(1000, cpu)).isSameAs(named);
      InitiatorOptions gpu = InitiatorOptions.defaults().with(InitiatorKind.GPU, null);
      assertThat(gpu.forEachOf(1000, cpu)).isSameAs(gpu);
    }
  }
}
