package io.gpunvme.nvme.driver;

import io.gpunvme.ffi.Posix;
import io.gpunvme.nvme.ControllerFatalException;
import io.gpunvme.nvme.DeviceGoneException;
import io.gpunvme.nvme.NvmeException;
import io.gpunvme.nvme.NvmeTimeoutException;
import io.gpunvme.nvme.ProtocolException;
import io.gpunvme.nvme.memory.BusRange;
import io.gpunvme.nvme.pci.ConfigSpace;
import io.gpunvme.nvme.pci.PciFunction;
import io.gpunvme.nvme.spec.Aqa;
import io.gpunvme.nvme.spec.Cap;
import io.gpunvme.nvme.spec.Cc;
import io.gpunvme.nvme.spec.Crto;
import io.gpunvme.nvme.spec.Csts;
import io.gpunvme.nvme.spec.Registers;
import io.gpunvme.nvme.spec.Vs;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * Takes a controller from any state to ready (Base 2.0, 3.5.1): disable, set up the admin queues,
 * enable. A state machine that can be stepped; every failure names the state, the registers and the
 * time spent. One thread; used once.
 */
final class BringUp {
  /** In order; each is left by the {@link #step} that completes it. */
  enum State {
    /** Read CAP and VS and check them. */
    PROBE,
    /** An enable or disable that somebody else began must end first (Base 2.0, 3.1.3.5, EN). */
    SETTLE,
    /** Clear CC.EN. */
    DISABLE,
    /** Wait for CSTS.RDY = 0. */
    WAIT_DISABLED,
    /** AQA, ASQ, ACQ; the function may do DMA from here on. */
    ADMIN_QUEUES,
    /** CC but for EN. */
    CONFIGURE,
    /** Set CC.EN. */
    ENABLE,
    /** Wait for CSTS.RDY = 1. */
    WAIT_READY,
    /** Admin commands may be sent. */
    READY
  }

  /** What the admin queue can move with one command; its users split what is longer. */
  static final int ADMIN_TRANSFER_BYTES = 64 << 10;

  private static final long TO_UNIT_NANOS = TimeUnit.MILLISECONDS.toNanos(500);
  private static final long POLL_NANOS = 50_000;
  private static final int SQ_ENTRY_SHIFT = 6;
  private static final int CQ_ENTRY_SHIFT = 4;

  private final PciFunction function;
  private final ControllerOptions options;
  private final ControllerRegisters registers;
  private final Consumer<BringUpStep> report;
  private @Nullable QueuePair adminPair;
  private State state = State.PROBE;
  private long entered = System.nanoTime();
  private Cap cap = new Cap(0);
  private Vs version = new Vs(0);
  private int pageSize = BusRange.GRANULE;

  /**
   * @param adminPair the admin queue pair of an earlier bring-up, emptied and used again, or null
   * @param report is given every finished state
   */
  BringUp(
      PciFunction function,
      ControllerOptions options,
      @Nullable QueuePair adminPair,
      Consumer<BringUpStep> report) {
    this.function = function;
    this.options = options;
    this.registers = new ControllerRegisters(function.bar(0));
    this.adminPair = adminPair;
    this.report = report;
  }

  State state() {
    return state;
  }

  Cap cap() {
    return cap;
  }

  Vs version() {
    return version;
  }

  ControllerRegisters registers() {
    return registers;
  }

  /** Memory page size (CC.MPS) in bytes, once CAP has been checked. */
  int pageSize() {
    return pageSize;
  }

  /**
   * The memory page size for a host: its own, or the longest the controller has if that is shorter.
   *
   * @param hostPage bytes, a power of two and no less than CAP.MPSMIN asks for
   */
  static int pageSize(Cap cap, int hostPage) {
    return (int) Math.min(hostPage, (long) BusRange.GRANULE << cap.get(Cap.MPSMAX));
  }

  /** The admin queue pair, once there is one; on failure too, so that it can be freed. */
  @Nullable QueuePair adminPair() {
    return adminPair;
  }

  /** Steps until ready; bounded by CAP.TO and CRTO. */
  void run() {
    runTo(State.READY);
  }

  /** Steps until {@code goal} is reached and not yet begun. */
  void runTo(State goal) {
    while (state != goal) {
      State before = state;
      if (step() == before) {
        LockSupport.parkNanos(POLL_NANOS);
      }
    }
  }

  /**
   * Does what the current state asks for once; a state that waits looks once.
   *
   * @return the state reached, the same one while it waits
   */
  State step() {
    return switch (state) {
      case PROBE -> leave(probe(), State.SETTLE);
      case SETTLE -> settle();
      case DISABLE -> leave(disable(), State.WAIT_DISABLED);
      case WAIT_DISABLED -> waitDisabled();
      case ADMIN_QUEUES -> leave(adminQueues(), State.CONFIGURE);
      case CONFIGURE -> leave(configure(), State.ENABLE);
      case ENABLE -> leave(enable(), State.WAIT_READY);
      case WAIT_READY -> waitReady();
      case READY -> state;
    };
  }

  private State leave(String note, State next) {
    long now = System.nanoTime();
    report.accept(
        new BringUpStep(
            state.name(), now - entered, registers.cc().value(), registers.csts().value(), note));
    state = next;
    entered = now;
    return next;
  }

  private String probe() {
    command(ConfigSpace.COMMAND_MEMORY | ConfigSpace.COMMAND_INTX_DISABLE);
    cap = registers.cap();
    version = registers.version();
    if (cap.value() == -1 || alive().value() == Csts.GONE) {
      throw gone();
    }
    if (cap.value() == 0 && version.value() == 0) {
      throw new DeviceGoneException(failure("registers read zeros: no controller answers"));
    }
    checkCap();
    return "NVMe %s, CAP %016Xh".formatted(version, cap.value());
  }

  private void command(int bits) {
    ConfigSpace config = function.config();
    config.write(ConfigSpace.COMMAND, 2, config.read(ConfigSpace.COMMAND, 2) | bits);
  }

  private void checkCap() {
    require(cap.get(Cap.MQES) >= 1, "CAP.MQES is 0, but a queue has at least two entries");
    require(
        cap.get(Cap.MPSMIN) <= cap.get(Cap.MPSMAX),
        "CAP.MPSMIN " + cap.get(Cap.MPSMIN) + " is above CAP.MPSMAX " + cap.get(Cap.MPSMAX));
    int hostPage = Posix.pageSize();
    long shortest = (long) BusRange.GRANULE << cap.get(Cap.MPSMIN);
    require(
        shortest <= hostPage,
        "CAP.MPSMIN asks for memory pages of "
            + shortest
            + " bytes, but this host's pages have "
            + hostPage);
    pageSize = pageSize(cap, hostPage);
    require(cap.get(Cap.CSS) != 0, "CAP.CSS names no command set");
    long end = Registers.cqHeadDoorbell(0, cap.get(Cap.DSTRD)) + Integer.BYTES;
    require(
        end <= registers.bar().size(),
        "with CAP.DSTRD "
            + cap.get(Cap.DSTRD)
            + " the admin doorbells end at "
            + end
            + ", but BAR0 has "
            + registers.bar().size()
            + " bytes");
  }

  /** EN may only be changed once RDY has followed its last change. */
  private State settle() {
    Cc cc = registers.cc();
    Csts csts = alive();
    if (cc.isSet(Cc.EN) == csts.isSet(Csts.RDY)
        || csts.isSet(Csts.CFS)
        || csts.get(Csts.SHST) != Csts.SHST_NORMAL) {
      return leave("EN and RDY agree", cc.isSet(Cc.EN) ? State.DISABLE : State.WAIT_DISABLED);
    }
    if (spent() >= offTimeoutNanos()) {
      return leave("EN and RDY never agreed; going on", State.DISABLE);
    }
    return state;
  }

  private String disable() {
    registers.cc(registers.cc().with(Cc.EN, false).with(Cc.SHN, Cc.SHN_NONE));
    return "CC.EN = 0";
  }

  private State waitDisabled() {
    Csts csts = alive();
    if (!csts.isSet(Csts.RDY)) {
      return leave("CSTS.RDY = 0", State.ADMIN_QUEUES);
    }
    if (spent() >= offTimeoutNanos()) {
      String why = "CSTS.RDY is still 1 after CC.EN = 0";
      if (csts.isSet(Csts.CFS)) {
        throw new ControllerFatalException(failure(why + " and CSTS.CFS is set"));
      }
      throw new NvmeTimeoutException(failure(why));
    }
    return state;
  }

  private String adminQueues() {
    // CAP.MQES limits I/O queues only (Base 2.0, 3.1.3.1).
    int entries = options.adminEntries();
    QueuePair pair = adminPair;
    if (pair == null) {
      QueuePairSpec spec =
          new QueuePairSpec(
              0,
              entries,
              entries,
              entries - 1,
              cap.get(Cap.DSTRD),
              pageSize,
              ADMIN_TRANSFER_BYTES,
              DataPointerMode.PRP,
              options.adminTimeout().toNanos());
      pair = new QueuePair(spec, function, doorbells(), function.poller());
      adminPair = pair;
    } else {
      pair.rebuild();
    }
    // Not earlier: a controller that somebody left running had queues in memory that is gone.
    command(ConfigSpace.COMMAND_BUS_MASTER);
    registers.adminQueues(
        Aqa.of(pair.sqSize() - 1, pair.cqSize() - 1), pair.sqBusAddress(), pair.cqBusAddress());
    return pair.sqSize() + " entries each";
  }

  private MemorySegment doorbells() {
    long bytes =
        Registers.cqHeadDoorbell(0, cap.get(Cap.DSTRD)) + Integer.BYTES - Registers.DOORBELLS;
    return registers.bar().memory(Registers.DOORBELLS, bytes);
  }

  /** Written with EN = 0 first and read back: some controllers need to see it before EN rises. */
  private String configure() {
    Cc wanted =
        new Cc(0)
            .with(Cc.CSS, commandSets())
            .with(Cc.MPS, Integer.numberOfTrailingZeros(pageSize / BusRange.GRANULE))
            .with(Cc.AMS, Cc.AMS_ROUND_ROBIN)
            .with(Cc.IOSQES, SQ_ENTRY_SHIFT)
            .with(Cc.IOCQES, CQ_ENTRY_SHIFT)
            .with(Cc.CRIME, cap.get(Cap.CRMS) == Cap.CRMS_INDEPENDENT_OF_MEDIA);
    registers.cc(wanted);
    int read = registers.cc().value();
    alive();
    require(read == wanted.value(), "CC reads %08Xh after %08Xh".formatted(read, wanted.value()));
    return "CSS %d, MPS %d".formatted(wanted.get(Cc.CSS), wanted.get(Cc.MPS));
  }

  private int commandSets() {
    if ((cap.get(Cap.CSS) & Cap.CSS_IO_COMMAND_SETS) != 0) {
      return Cc.CSS_ALL;
    }
    return (cap.get(Cap.CSS) & Cap.CSS_NVM) != 0 ? Cc.CSS_NVM : Cc.CSS_ADMIN_ONLY;
  }

  private String enable() {
    registers.cc(registers.cc().with(Cc.EN, true));
    return "CC.EN = 1";
  }

  private State waitReady() {
    Csts csts = alive();
    if (csts.isSet(Csts.CFS)) {
      throw new ControllerFatalException(failure("CSTS.CFS is set"));
    }
    if (csts.isSet(Csts.RDY)) {
      return leave("CSTS.RDY = 1", State.READY);
    }
    if (spent() >= onTimeoutNanos()) {
      throw new NvmeTimeoutException(failure("CSTS.RDY is still 0 after CC.EN = 1"));
    }
    return state;
  }

  /** CAP.TO, counted as at least one unit: some controllers report 0. */
  private long offTimeoutNanos() {
    return Math.max(1, cap.get(Cap.TO)) * TO_UNIT_NANOS;
  }

  /** CRTO where there is one (Base 2.0, 3.1.3.21), unless CAP.TO is longer. */
  private long onTimeoutNanos() {
    if ((cap.get(Cap.CRMS) & Cap.CRMS_WITH_MEDIA) != 0) {
      return Math.max(offTimeoutNanos(), registers.crto().get(Crto.CRWMT) * TO_UNIT_NANOS);
    }
    if (cap.get(Cap.CRMS) == Cap.CRMS_INDEPENDENT_OF_MEDIA) {
      return Math.max(offTimeoutNanos(), registers.crto().get(Crto.CRIMT) * TO_UNIT_NANOS);
    }
    return offTimeoutNanos();
  }

  private long spent() {
    return System.nanoTime() - entered;
  }

  private Csts alive() {
    Csts csts = registers.csts();
    if (csts.gone()) {
      throw gone();
    }
    return csts;
  }

  private NvmeException gone() {
    return new DeviceGoneException(
        failure("registers read all ones; the device was removed, lost power or is not mapped"));
  }

  private void require(boolean holds, String message) {
    if (!holds) {
      throw new ProtocolException(failure(message));
    }
  }

  private String failure(String why) {
    return "bring-up of %s failed in %s after %.1f ms: %s; %s, CAP %016Xh, VS %s"
        .formatted(
            function.name(), state, spent() / 1e6, why, registers.describe(), cap.value(), version);
  }
}
