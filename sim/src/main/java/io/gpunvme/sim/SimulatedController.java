package io.gpunvme.sim;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.ffi.Errno;
import io.gpunvme.ffi.PosixException;
import io.gpunvme.ffi.SharedMemory;
import io.gpunvme.nvme.memory.BusRange;
import io.gpunvme.nvme.memory.RemoteMemory;
import io.gpunvme.nvme.pci.Bar;
import io.gpunvme.nvme.pci.ConfigSpace;
import io.gpunvme.nvme.pci.PciFunction;
import io.gpunvme.nvme.spec.Cc;
import io.gpunvme.sim.media.NoSpaceException;
import io.gpunvme.sim.media.RamMedia;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.util.Optional;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * An NVMe controller in this process, stricter than hardware: registers, queues, commands and
 * namespaces behind the interface of a PCI function.
 *
 * <p>Its worker threads poll the doorbells, which are plain memory; registers are method calls of
 * the host's threads. It reaches only memory that was mapped for it, and only as a bus master. Safe
 * for all threads.
 *
 * <p>Locks, in the order in which they are taken: the register file's monitor; the workers' locks,
 * ascending; the monitors of configuration space, interrupts, events, bus and faults, of which each
 * is held for a few instructions.
 */
public final class SimulatedController implements PciFunction {
  private final SimConfig config;
  private final LongSupplier clock;
  private final String name;
  private final ControllerStatus status = new ControllerStatus();
  private final FaultPlan faults;
  private final Workers workers;
  private final DmaSpace dma;
  private final SimStats stats;
  private final ControllerEvents events;
  private final MsixTable msix;
  private final Interrupts interrupts;
  private final DoorbellArray doorbells;
  private final @Nullable Cmb cmb;
  private final RegisterFile registers;
  private final @Nullable Bar[] bars = new Bar[6];
  private final SimConfigSpace configSpace;
  private final QueueAdmin queues;
  private final Namespaces namespaces;
  private final FeatureStore features;
  private final ControllerLogs logs;

  /**
   * Creates a controller in power-on state and starts its workers.
   *
   * @throws InvalidRequestException if a backing file does not fit its namespace
   * @throws io.gpunvme.ffi.PosixException if the system refuses memory
   */
  public static SimulatedController create(SimConfig config) {
    return create(config, System::nanoTime);
  }

  /** With another clock, for tests that step through time. */
  static SimulatedController create(SimConfig config, LongSupplier clock) {
    SimulatedController controller = new SimulatedController(config, clock);
    if (config.workers() > 0) {
      controller.workers.start();
    }
    return controller;
  }

  /** Makes the parts, each after those that it needs. */
  private SimulatedController(SimConfig config, LongSupplier clock) {
    this.config = config;
    this.clock = clock;
    name = "sim:" + config.serial();
    namespaces = new Namespaces(config);
    int pairs = config.ioQueues() + 1;
    int threads = Math.max(1, config.workers());
    faults = new FaultPlan(config.faults(), config.seed());
    workers = new Workers(threads);
    dma = new DmaSpace(config.addressBits(), config.seed(), workers::quiesce);
    stats = new SimStats(threads, pairs, dma);
    DataPointer dataPointer = new DataPointer(dma, config.sgl());
    events = new ControllerEvents(config.aerl());
    DoorbellErrors doorbellErrors = new DoorbellErrors(events);
    msix = new MsixTable(config.vectors());
    interrupts = new Interrupts(msix);
    doorbells = new DoorbellArray(pairs, config.dstrd());
    cmb = config.cmbBytes() == 0 ? null : new Cmb(dma, config.cmbBytes());
    features = new FeatureStore(config);
    queues =
        new QueueAdmin(
            config, dma, dataPointer, doorbells, interrupts, events, status, workers, this::cc);
    logs = new ControllerLogs(config, dataPointer, events, features, namespaces, stats);
    LentMemory hmb = new LentMemory(config, dma, dataPointer, workers);
    AdminCommands adminCommands =
        new AdminCommands(
            config,
            queues,
            events,
            logs,
            features,
            new IdentifyData(config, dataPointer, namespaces),
            new FeatureCommands(config, dataPointer, queues, logs, features, namespaces, hmb),
            new NamespaceCommands(dataPointer, logs, namespaces));
    Transitions transitions =
        new Transitions(
            config,
            clock,
            status,
            faults,
            workers,
            dataPointer,
            queues,
            namespaces,
            events,
            interrupts,
            adminCommands);
    registers =
        new RegisterFile(config, clock, status, interrupts, transitions, this::isSilent, cmb);
    RegisterBar bar0 = new RegisterBar(registers, doorbells, this::registerFault, this::wake);
    bars[0] = new SimBar(this::isSilent, bar0);
    bars[Cmb.BAR] = cmb == null ? null : new SimBar(this::isSilent, cmb);
    bars[MsixTable.BAR] = new SimBar(this::isSilent, msix);
    configSpace = new SimConfigSpace(status, dma, interrupts, msix, bars, this::reset);
    IoCommands ioCommands = new IoCommands(config, namespaces, features, dataPointer, faults);
    Housekeeper housekeeper =
        new Housekeeper(clock, status, events, doorbellErrors, queues, features);
    workers.make(
        index ->
            new Worker(
                name,
                index,
                clock,
                status,
                stats,
                dma,
                interrupts,
                housekeeper,
                workers.idleWatch(),
                worker ->
                    new CommandPipeline(
                        config,
                        status,
                        faults,
                        doorbellErrors,
                        dma,
                        logs,
                        adminCommands,
                        ioCommands,
                        worker)));
  }

  // ---- the PCI function

  @Override
  public String name() {
    return name;
  }

  @Override
  public Bar bar(int index) {
    Bar bar = index < 0 || index >= bars.length ? null : bars[index];
    if (bar == null) {
      throw new InvalidRequestException(name + " has no BAR " + index);
    }
    return bar;
  }

  @Override
  public ConfigSpace config() {
    return configSpace;
  }

  @Override
  public int addressBits() {
    return config.addressBits();
  }

  @Override
  public boolean polled() {
    return true;
  }

  @Override
  public BusRange map(MemorySegment memory) {
    return dma.map(memory);
  }

  /**
   * Maps remote memory, e.g. a GPU's, in which queues, lists and data may lie. The controller's
   * workers reach it through ports of their own, which they open when they first need them.
   *
   * <p>A queue must lie in one mapped range as long as it exists. Shadow doorbells may not lie
   * here: the controller would have to copy them again and again to see them change. Copies that
   * fail end their command with Data Transfer Error, or make the controller fatal if it was a
   * queue; {@link #remoteFailure} has the reason.
   *
   * @return the range; closing it waits for running copies
   */
  @Override
  public BusRange map(RemoteMemory memory) {
    return dma.map(memory);
  }

  /**
   * Function level reset. What the host mapped stays mapped; the Command register, and with it bus
   * mastering, is as after power-on. Brings a device back that a fault made vanish.
   */
  @Override
  public void reset() {
    if (!status.isClosed()) {
      registers.resetAll();
      msix.reset();
      configSpace.reset();
      interrupts.sink().reset();
    }
  }

  /** Stops the workers, drops commands in flight, writes back and closes the namespaces. */
  @Override
  public void close() {
    if (!status.close()) {
      return;
    }
    workers.stop();
    // A register write under way ends first; later ones find the controller closed.
    synchronized (registers) {
      workers.lock();
      try {
        queues.deleteAll();
        workers.close();
        dma.close();
      } finally {
        workers.unlock();
      }
      release();
    }
  }

  private void release() {
    try {
      namespaces.close();
    } catch (IOException e) {
      throw new InvalidRequestException(name + ": closing a namespace failed: " + e.getMessage());
    } finally {
      doorbells.close();
      if (cmb != null) {
        cmb.close();
      }
    }
  }

  // ---- beyond the PCI function

  /**
   * Maps memory at a bus address of the host's choice.
   *
   * @param address a multiple of 4096, as the memory's size and own address
   * @throws io.gpunvme.nvme.DmaMappingException if something is mapped there, or the address is too
   *     large for {@link #addressBits}
   * @return undoes it; when that returns, nothing touches the memory any more
   */
  public Runnable mapAt(long address, MemorySegment memory, DmaAccess access) {
    return dma.mapAt(new DmaRegion(address, memory, access));
  }

  /** As above, for {@link #map(RemoteMemory) remote memory}. */
  public Runnable mapAt(long address, RemoteMemory memory, DmaAccess access) {
    memory.prepare();
    return dma.mapAt(new DmaRegion(address, memory, access));
  }

  /**
   * The part of BAR 0 that is memory, for another process: the doorbells, at their offset in the
   * BAR. Until {@link #startOver}. Only {@code serve} calls it.
   */
  @SuppressWarnings("exports")
  public SharedMemory doorbellMemory() {
    return doorbells.shared();
  }

  /**
   * For another host: {@link #reset}, and the doorbells are other memory than before. Whoever still
   * has the old memory mapped reaches nothing any more.
   */
  public void startOver() {
    reset();
    synchronized (registers) {
      workers.lock();
      try {
        if (!status.isClosed()) {
          doorbells.renew();
        }
      } finally {
        workers.unlock();
      }
    }
  }

  /** The configuration that it was created from. */
  public SimConfig simConfig() {
    return config;
  }

  /** The fault rules in force; may be changed at any time. */
  public FaultPlan faults() {
    return faults;
  }

  /** Its counters so far. */
  public SimStats stats() {
    return stats;
  }

  /** Sets the receiver of later interrupts. */
  public void interruptSink(InterruptSink sink) {
    interrupts.sink(sink);
  }

  /**
   * Sets the sleep of quiet workers; null: they sleep by a timer. Returns when they do not use the
   * previous one any more.
   */
  public void sharedSleep(@Nullable SharedSleep sleep) {
    workers.idleWatch().bed(sleep);
  }

  /** Ends the workers' sleep, if they sleep until they are woken. */
  public void wake() {
    workers.idleWatch().wake();
  }

  /**
   * Masks or unmasks a vector of MSI-X for a host that keeps the table itself; unlike a write to
   * the table also while memory space is off.
   *
   * @param vector below {@link SimConfig#vectors}
   */
  public void maskVector(int vector, boolean masked) {
    msix.mask(vector, masked);
  }

  /** Why CSTS.CFS is 1, in words; null if it is 0. */
  public @Nullable String fatalReason() {
    return status.fatalReason();
  }

  /** The first bug of this controller that showed; null if none did. */
  public @Nullable Throwable internalError() {
    return status.internalError();
  }

  /** The first failure of remote memory; null if there was none. */
  public @Nullable RuntimeException remoteFailure() {
    return status.remoteFailure();
  }

  /**
   * The bytes of a namespace that lives in memory, so that they can be pinned for a device that
   * copies from and to them. All its pages are taken now, and stay where they are. Valid until
   * {@link #close}.
   *
   * @throws PosixException with {@link Errno#ENOMEM} if the machine has not that much memory
   * @return empty if there is no such namespace, or it does not live in memory
   */
  public Optional<MemorySegment> mediaMemory(int nsid) {
    SimNamespace ns = namespaces.allocated(nsid);
    if (ns != null && ns.media() instanceof RamMedia ram) {
      try {
        ram.keepPages();
      } catch (NoSpaceException e) {
        String what = "all %d bytes of namespace %d".formatted(ram.size(), nsid);
        throw new PosixException("allocate", what, Errno.ENOMEM);
      }
      return Optional.of(ram.view(0, ram.size()));
    }
    return Optional.empty();
  }

  /**
   * Does the workers' job on the caller's thread: serves every queue once. With {@link
   * SimConfig#workers} = 0, only this makes progress.
   *
   * @return how many commands moved on
   */
  public int poll() {
    return workers.poll();
  }

  // ---- what its parts ask it

  private Cc cc() {
    return registers.cc();
  }

  /** Whether register reads return all ones and writes do nothing. */
  private boolean isSilent() {
    return status.isUnreachable() || !configSpace.memoryEnabled();
  }

  /** Applies a fault that was waiting for a register read; true if the device is gone now. */
  private boolean registerFault() {
    FaultRule fault = faults.onEvent(FaultRule.Trigger.REGISTER);
    if (fault != null) {
      status.befall(fault);
    }
    return status.isUnreachable();
  }

  // ---- what tests look at

  long now() {
    return clock.getAsLong();
  }

  DmaSpace dma() {
    return dma;
  }

  ControllerEvents asyncEvents() {
    return events;
  }

  Namespaces namespaces() {
    return namespaces;
  }

  FeatureStore features() {
    return features;
  }

  ControllerLogs logs() {
    return logs;
  }

  /** The worker that serves a completion queue. */
  Worker workerFor(int cqid) {
    return workers.ofQueue(cqid);
  }
}
