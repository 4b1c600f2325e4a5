package io.gpunvme.tools.doctor;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.cuda.CudaException;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.accel.HostMemoryKind;
import io.gpunvme.gpu.accel.HostWindow;
import io.gpunvme.gpu.device.Device;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.gpu.queue.Placements;
import io.gpunvme.gpu.transfer.Direction;
import io.gpunvme.gpu.transfer.Extent;
import io.gpunvme.gpu.transfer.Initiator;
import io.gpunvme.gpu.transfer.InitiatorKind;
import io.gpunvme.gpu.transfer.InitiatorOptions;
import io.gpunvme.gpu.transfer.TransferListener;
import io.gpunvme.gpu.transfer.TransferPlan;
import io.gpunvme.gpu.transfer.TransferReport;
import io.gpunvme.nvme.NvmeException;
import io.gpunvme.nvme.driver.Namespace;
import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.nvme.spec.Registers;
import io.gpunvme.sim.SimulatedController;
import io.gpunvme.tools.doctor.PeerStep.Outcome;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;

/**
 * Tries, on an open device, whether a GPU can drive an SSD: registers BAR0 with CUDA as I/O memory,
 * then lets a kernel read one block and ring the doorbells of a queue pair made for it.
 *
 * <p>It changes no data. The GPU stores to these doorbells only, and loads from a register only on
 * request: some root complexes do not answer a GPU's loads from an SSD, and the link may go down.
 * For one thread.
 */
public final class PeerCheck {
  static final String REGISTER = "register-bar0";
  static final String RING = "ring-doorbell";
  static final String READ = "read-register";

  private static final int PAGE = 4096;

  private final NvmeController controller;
  private final GpuAccelerator gpu;
  private final List<PeerStep> steps = new ArrayList<>();

  private PeerCheck(Device device, GpuAccelerator gpu) {
    controller = device.controller();
    this.gpu = gpu;
  }

  /**
   * Does all of it. What fails is in the report.
   *
   * @param read whether the GPU may load from a register, as the last thing
   */
  public static PeerReport run(Device device, GpuAccelerator gpu, boolean read) {
    PeerCheck check = new PeerCheck(device, gpu);
    boolean registered = check.step(REGISTER, check::register);
    if (registered) {
      check.step(RING, check::ring);
    } else {
      check.skip(RING, "needs BAR0");
    }
    Placements placements = Placements.probe(gpu, check.controller.function());
    if (!read) {
      check.skip(READ, "not asked for (--read): a GPU's load from an SSD can take the link down");
    } else if (!registered) {
      check.skip(READ, "needs BAR0");
    } else if (check.embedded()) {
      check.skip(READ, "the registers of an embedded controller are not memory");
    } else {
      check.step(READ, check::readVersion);
    }
    return new PeerReport(gpu.name(), check.controller.name(), check.steps, placements);
  }

  /** What a step does; returns what it saw. */
  private interface Trial {
    String run();
  }

  private boolean step(String name, Trial trial) {
    try {
      steps.add(new PeerStep(name, Outcome.PASSED, trial.run()));
      return true;
    } catch (NvmeException | InvalidRequestException | CudaException | CheckFailedException e) {
      steps.add(new PeerStep(name, Outcome.FAILED, String.valueOf(e.getMessage())));
      return false;
    }
  }

  private void skip(String name, String reason) {
    steps.add(new PeerStep(name, Outcome.SKIPPED, reason));
  }

  /** The call worked and what it brought is wrong. */
  private static final class CheckFailedException extends RuntimeException {
    private static final long serialVersionUID = 1;

    CheckFailedException(String message) {
      super(message);
    }
  }

  // ---- BAR0

  private boolean embedded() {
    return controller.function() instanceof SimulatedController;
  }

  /** A part of BAR0 as the GPU addresses it; what shares no page with another part. */
  private HostWindow window(long offset, long bytes) {
    MemorySegment registers = controller.function().bar(0).peerMemory(offset, bytes);
    return gpu.mapHost(
        registers,
        controller.function().polled() ? HostMemoryKind.MEMORY : HostMemoryKind.REGISTERS);
  }

  private String register() {
    try (HostWindow window = window(Registers.DOORBELLS, 2L * Long.BYTES)) {
      return "the GPU addresses the doorbells of BAR0 at %Xh%s"
          .formatted(
              window.deviceAddress(),
              embedded() ? ", ordinary memory of an embedded controller" : " as I/O memory");
    }
  }

  private String readVersion() {
    int expected = controller.version().value();
    int seen;
    try (HostWindow window = window(0, Registers.DOORBELLS)) {
      seen = RegisterLoad.load(gpu, window.deviceAddress() + Registers.VS);
    }
    if (seen != expected) {
      throw new CheckFailedException(
          "the GPU reads VS as %08Xh, the CPU as %08Xh".formatted(seen, expected));
    }
    return "the GPU reads VS as %08Xh, as the CPU does".formatted(seen);
  }

  // ---- doorbells

  private String ring() {
    Optional<Namespace> namespace =
        controller.namespaces().stream().filter(Namespace::usable).findFirst();
    if (namespace.isEmpty()) {
      throw new CheckFailedException("the SSD has no usable namespace to read a block from");
    }
    byte[] byGpu = new byte[namespace.get().blockSize()];
    TransferReport report = read(InitiatorKind.GPU, namespace.get(), byGpu);
    byte[] byCpu = new byte[byGpu.length];
    read(InitiatorKind.CPU, namespace.get(), byCpu);
    if (!Arrays.equals(byGpu, byCpu)) {
      throw new CheckFailedException(
          "the block that the GPU read differs from the one that the CPU read");
    }
    return "a kernel rang %d doorbells and read block 0 of namespace %d in %.0f us; the CPU read the same data"
        .formatted(
            report.sqDoorbells() + report.cqDoorbells(),
            namespace.get().nsid(),
            report.latencyNanos(50) / 1e3);
  }

  private TransferReport read(InitiatorKind who, Namespace namespace, byte[] block) {
    InitiatorOptions options = InitiatorOptions.defaults().with(who, Placement.HOST).with(1, 2, 0);
    try (Initiator initiator = options.open(controller, gpu);
        DeviceBuffer buffer = gpu.allocatePinned(Math.max(PAGE, block.length))) {
      TransferReport report =
          initiator.run(
              TransferPlan.of(
                  Direction.READ,
                  namespace,
                  initiator.maxTransferBytes(),
                  List.of(new Extent(0, 1, 0))),
              buffer,
              TransferListener.NONE);
      MemorySegment.copy(buffer.segment(), 0, MemorySegment.ofArray(block), 0, block.length);
      return report;
    }
  }
}
