package io.gpunvme.tools.doctor;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.cuda.CudaException;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.accel.HostMemoryKind;
import io.gpunvme.gpu.accel.HostWindow;
import io.gpunvme.gpu.device.Device;
import io.gpunvme.gpu.queue.CompletionPlace;
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
import io.gpunvme.nvme.DeviceGoneException;
import io.gpunvme.nvme.NvmeException;
import io.gpunvme.nvme.driver.Namespace;
import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.nvme.spec.Registers;
import io.gpunvme.sim.SimulatedController;
import io.gpunvme.tools.doctor.PeerStep.Outcome;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.LongConsumer;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * Tries, on an open device, whether a GPU can drive an SSD: registers BAR0 with CUDA as I/O memory,
 * then lets a kernel read one block and ring the doorbells of a queue pair made for it. Where the
 * SSD reaches GPU memory, kernels look whether data is there once its completion is.
 *
 * <p>It changes no data. The GPU stores to these doorbells only, and loads from a register only on
 * request: some root complexes do not answer a GPU's loads from an SSD, and the link may go down.
 * For one thread.
 */
public final class PeerCheck {
  static final String REGISTER = "register-bar0";
  static final String RING = "ring-doorbell";

  /** With the completion queues where gpunvme has them for data in GPU memory. */
  static final String ARRIVAL = "data-before-completion";

  /** With the completion queues in host memory, if gpunvme has them elsewhere. */
  static final String HOST_COMPLETIONS = "completion-in-host-memory";

  static final String READ = "read-register";

  private static final int PAGE = 4096;
  private static final int ALL_ONES = -1;

  private final NvmeController controller;
  private final GpuAccelerator gpu;
  private final Duration look;
  private final LongConsumer passed;
  private final List<PeerStep> steps = new ArrayList<>();
  private final List<ArrivalCount> arrivals = new ArrayList<>();

  private PeerCheck(Device device, GpuAccelerator gpu, Duration look, LongConsumer passed) {
    controller = device.controller();
    this.gpu = gpu;
    this.look = look;
    this.passed = passed;
  }

  /**
   * Does all of it. What fails is in the report, unless the SSD has gone.
   *
   * @param read whether the GPU may load from a register, as the last thing
   * @param look how long to look for data that is later than its completion
   * @param passed is told the nanoseconds of that time that went by
   * @throws DeviceGoneException if the SSD goes meanwhile: then nothing is known
   */
  public static PeerReport run(
      Device device, GpuAccelerator gpu, boolean read, Duration look, LongConsumer passed) {
    PeerCheck check = new PeerCheck(device, gpu, look, passed);
    boolean registered = check.step(REGISTER, check::register);
    boolean rung = registered && check.step(RING, check::ring);
    if (!registered) {
      check.skip(RING, "needs BAR0");
    }
    Placements placements = Placements.probe(gpu, check.controller.function());
    check.lookAtArrivals(rung ? placements.reason(Placement.VRAM_DATA) : "needs the doorbells");
    if (!read) {
      check.skip(READ, "not asked for (--read): a GPU's load from an SSD can take the link down");
    } else if (!registered) {
      check.skip(READ, "needs BAR0");
    } else if (check.embedded()) {
      check.skip(READ, "the registers of an embedded controller are not memory");
    } else {
      check.step(READ, check::readVersion);
    }
    return new PeerReport(
        gpu.name(), check.controller.name(), check.steps, placements, check.arrivals);
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
      requireThere(e);
      steps.add(new PeerStep(name, Outcome.FAILED, String.valueOf(e.getMessage())));
      return false;
    }
  }

  /** What fails because the SSD has gone says nothing about the two. */
  private void requireThere(RuntimeException failure) {
    if (failure instanceof DeviceGoneException gone) {
      throw gone;
    }
    if (controller.function().bar(0).read32(Registers.CSTS) == ALL_ONES) {
      throw new DeviceGoneException(
          controller.name()
              + ": CSTS reads all ones; the device was removed, lost power or its link is down ("
              + failure.getMessage()
              + ")");
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

  // ---- data in GPU memory

  /**
   * @param problem why no data can go to GPU memory; null: it can
   */
  private void lookAtArrivals(@Nullable String problem) {
    if (problem != null) {
      skip(ARRIVAL, problem);
      skip(HOST_COMPLETIONS, problem);
      return;
    }
    CompletionPlace place = CompletionPlace.of(Placement.VRAM_DATA, true, controller.function());
    Duration each = place.host() ? look : look.dividedBy(2);
    step(ARRIVAL, () -> arrive(Placement.VRAM_DATA, each, place));
    if (place.host()) {
      skip(HOST_COMPLETIONS, "tried already: " + place.reason());
    } else {
      step(HOST_COMPLETIONS, () -> arrive(Placement.HOST, each, place));
    }
  }

  private String arrive(Placement queues, Duration each, CompletionPlace place) {
    Namespace namespace = namespace();
    byte[] content = new byte[DataArrival.bytes(controller, namespace)];
    read(InitiatorKind.CPU, namespace, content);
    List<ArrivalCount> counts =
        new DataArrival(controller, namespace, gpu, content).measure(queues, each, passed);
    arrivals.addAll(counts);
    String seen = counts.stream().map(ArrivalCount::toString).collect(Collectors.joining("; "));
    String where =
        queues == Placement.VRAM_DATA
            ? "with completion queues in %s memory".formatted(place.host() ? "host" : "GPU")
            : "with completion queues in host memory, where they are for queues that the CPU drives"
                + " only";
    if (counts.stream().anyMatch(c -> c.late() != 0)) {
      throw new CheckFailedException(
          "the end of the data in GPU memory came after its completion, %s: %s"
              .formatted(where, seen));
    }
    return "the end of the data in GPU memory was there with each completion, %s: %s"
        .formatted(where, seen);
  }

  // ---- registers

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
    Namespace namespace = namespace();
    byte[] byGpu = new byte[namespace.blockSize()];
    TransferReport report = read(InitiatorKind.GPU, namespace, byGpu);
    byte[] byCpu = new byte[byGpu.length];
    read(InitiatorKind.CPU, namespace, byCpu);
    if (!Arrays.equals(byGpu, byCpu)) {
      throw new CheckFailedException(
          "the block that the GPU read differs from the one that the CPU read");
    }
    return "a kernel rang %d doorbells and read block 0 of namespace %d in %.0f us; the CPU read the same data"
        .formatted(
            report.sqDoorbells() + report.cqDoorbells(),
            namespace.nsid(),
            report.latencyNanos(50) / 1e3);
  }

  private Namespace namespace() {
    return controller.namespaces().stream()
        .filter(Namespace::usable)
        .findFirst()
        .orElseThrow(
            () -> new CheckFailedException("the SSD has no usable namespace to read a block from"));
  }

  /** Reads the first blocks. */
  private TransferReport read(InitiatorKind who, Namespace namespace, byte[] into) {
    InitiatorOptions options = InitiatorOptions.defaults().with(who, Placement.HOST).with(1, 2, 0);
    try (Initiator initiator = options.open(controller, gpu);
        DeviceBuffer buffer = gpu.allocatePinned(Math.max(PAGE, into.length))) {
      TransferReport report =
          initiator.run(
              TransferPlan.of(
                  Direction.READ,
                  namespace,
                  initiator.maxTransferBytes(),
                  List.of(new Extent(0, into.length / namespace.blockSize(), 0))),
              buffer,
              TransferListener.NONE);
      MemorySegment.copy(buffer.segment(), 0, MemorySegment.ofArray(into), 0, into.length);
      return report;
    }
  }
}
