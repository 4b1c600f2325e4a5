package io.gpunvme.nvme.driver;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.nvme.NvmeException;
import io.gpunvme.nvme.NvmeStatusException;
import io.gpunvme.nvme.pci.PciFunction;
import io.gpunvme.nvme.spec.Cap;
import io.gpunvme.nvme.spec.Cns;
import io.gpunvme.nvme.spec.FeatureId;
import io.gpunvme.nvme.spec.Features;
import io.gpunvme.nvme.spec.IdentifyController;
import io.gpunvme.nvme.spec.Vs;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Function;
import java.util.function.Supplier;

/**
 * What stands on a ready controller: identify data, namespaces, I/O queues, lent memory, Keep
 * Alive, events. Made once; set up anew after every bring-up.
 */
final class ControllerParts {
  private final String name;
  private final ControllerOptions options;
  private final ControllerRegisters registers;
  private final List<BringUpStep> steps;
  private final Cap cap;
  private final Vs version;
  private final int pageSize;
  private final AdminQueue admin;
  private final IoQueues queues;
  private final HostMemoryBuffer hostMemoryBuffer;
  private final KeepAlive keepAlive;
  private final AsyncEvents events = new AsyncEvents();
  private volatile IdentifyController identify =
      new IdentifyController(MemorySegment.ofArray(new byte[IdentifyController.SIZE]));
  private volatile List<Namespace> namespaces = List.of();

  /**
   * @param ready a bring-up that has ended well
   * @param steps the report, added to by {@link #setUp}
   */
  ControllerParts(
      PciFunction function,
      ControllerOptions options,
      BringUp ready,
      AdminQueue.Rescue rescue,
      CopyOnWriteArrayList<BringUpStep> steps) {
    this.name = function.name();
    this.options = options;
    this.registers = ready.registers();
    this.steps = steps;
    this.cap = ready.cap();
    this.version = ready.version();
    this.pageSize = ready.pageSize();
    QueuePair adminPair = Objects.requireNonNull(ready.adminPair());
    this.admin = new AdminQueue(adminPair, function, registers, rescue, events::receive);
    this.queues = new IoQueues(admin, function, registers.bar(), cap, options);
    this.hostMemoryBuffer = new HostMemoryBuffer(function, options.hostMemoryBufferBytes());
    this.keepAlive = new KeepAlive(admin);
  }

  /** Identifies the controller and gives it what it is to have. */
  void setUp() {
    step(
        "IDENTIFY",
        this::identifyController,
        id ->
            "%s, serial %s, firmware %s"
                .formatted(
                    id.getText(IdentifyController.MN),
                    id.getText(IdentifyController.SN),
                    id.getText(IdentifyController.FR)));
    step("NAMESPACES", this::scan, list -> list.size() + " active");
    step("QUEUES", this::requestQueues, n -> n + " pairs");
    step("HOST_MEMORY_BUFFER", this::lendMemory, Function.identity());
    if (!options.keepAlive().isZero()) {
      step(
          "KEEP_ALIVE", () -> keepAlive.enable(identify, options.keepAlive()), Function.identity());
    }
    if (options.asyncEvents()) {
      step("EVENTS", this::enableEvents, Function.identity());
    }
  }

  private <T> void step(String state, Supplier<T> action, Function<T, String> note) {
    long start = System.nanoTime();
    String outcome = "failed";
    try {
      outcome = note.apply(action.get());
    } catch (NvmeException | InvalidRequestException e) {
      outcome = "failed: " + e.getMessage();
      throw Failures.during("bring-up of " + name + " failed in " + state, e);
    } finally {
      long nanos = System.nanoTime() - start;
      int cc = registers.cc().value();
      steps.add(new BringUpStep(state, nanos, cc, registers.csts().value(), outcome));
    }
  }

  private IdentifyController identifyController() {
    AdminCommand command = AdminCommand.identify(Cns.CONTROLLER, 0);
    IdentifyController id = new IdentifyController(admin.fetch(command, IdentifyController.SIZE));
    IdentifyChecks.controller(id, cap.get(Cap.MPSMIN));
    identify = id;
    return id;
  }

  /** Looks for namespaces (again). */
  List<Namespace> scan() {
    List<Namespace> found =
        new NamespaceScan(admin, version, identify.getLong(IdentifyController.NN)).run();
    namespaces = found;
    return found;
  }

  /** A controller that refuses is left with its admin queue. */
  private int requestQueues() {
    int wanted = options.queuePairs() - 1;
    try {
      int answer =
          new ControllerFeatures(admin)
              .set(
                  FeatureId.NUMBER_OF_QUEUES,
                  Features.NSQ.with(Features.NCQ.with(0, wanted), wanted));
      int granted = IdentifyChecks.queuePairs(answer);
      queues.grant(Math.min(granted, options.queuePairs()));
    } catch (NvmeStatusException e) {
      NvmeController.LOG.log(System.Logger.Level.DEBUG, "no I/O queues", e);
      queues.refuse(String.valueOf(e.getMessage()));
    }
    return queues.limit();
  }

  private String lendMemory() {
    hostMemoryBuffer.enable(admin, identify, pageSize);
    return hostMemoryBuffer.status();
  }

  private String enableEvents() {
    try {
      return events.enable(admin, identify);
    } catch (NvmeStatusException e) {
      return "refused: " + e.getMessage();
    }
  }

  Cap cap() {
    return cap;
  }

  Vs version() {
    return version;
  }

  int pageSize() {
    return pageSize;
  }

  AdminQueue admin() {
    return admin;
  }

  IoQueues queues() {
    return queues;
  }

  HostMemoryBuffer hostMemoryBuffer() {
    return hostMemoryBuffer;
  }

  KeepAlive keepAlive() {
    return keepAlive;
  }

  AsyncEvents events() {
    return events;
  }

  IdentifyController identify() {
    return identify;
  }

  List<Namespace> namespaces() {
    return namespaces;
  }
}
