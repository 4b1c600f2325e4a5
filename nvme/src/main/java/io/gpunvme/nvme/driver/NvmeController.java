package io.gpunvme.nvme.driver;

import io.gpunvme.base.CloseAll;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.nvme.NvmeException;
import io.gpunvme.nvme.pci.PciFunction;
import io.gpunvme.nvme.spec.AdminOpcode;
import io.gpunvme.nvme.spec.AsyncEvent;
import io.gpunvme.nvme.spec.Cap;
import io.gpunvme.nvme.spec.IdentifyController;
import io.gpunvme.nvme.spec.IdentifyNamespace;
import io.gpunvme.nvme.spec.Vs;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;

/**
 * An NVMe controller that this process drives: the entry point of the driver.
 *
 * <p>{@link #open} starts it; {@link #close} shuts it down in order and gives the function back.
 * Safe for all threads, unlike a {@link QueuePair} or {@link BlockDevice}, which belong to one
 * thread at a time. Every wait is bounded by {@link ControllerOptions} or by the controller's own
 * timeouts. After a failed reset, or once the device is gone, every call throws the reason.
 */
public final class NvmeController implements AutoCloseable {
  static final System.Logger LOG = System.getLogger("io.gpunvme.nvme.driver");

  private static final int IDENTIFY_BYTES = 4096;
  private static final int MAX_DEPTH = 4096;
  private static final int FORMAT_SES_SHIFT = 9;
  private static final int FORMAT_UPPER_SHIFT = 12;

  private final Lifecycle life;
  private final Recovery recovery;
  private final ControllerFeatures features;
  private final LogPages logs;
  private final Queue<Runnable> closeActions = new ConcurrentLinkedQueue<>();

  private NvmeController(Lifecycle life) {
    this.life = life;
    this.recovery = new Recovery(life, life.parts().identify().getInt(IdentifyController.ACL));
    this.features = new ControllerFeatures(life.admin());
    this.logs = new LogPages(life.admin());
  }

  /**
   * Brings a controller up, whatever state it was left in.
   *
   * @param function taken over: closed by {@link #close}, and right away if this fails
   * @throws io.gpunvme.nvme.NvmeTimeoutException if CSTS.RDY does not follow CC.EN in CAP.TO
   * @throws io.gpunvme.nvme.ControllerFatalException if CSTS.CFS appears
   * @throws io.gpunvme.nvme.DeviceGoneException if registers read all ones
   * @throws io.gpunvme.nvme.ProtocolException if the controller says something impossible, or needs
   *     something this driver does not have
   */
  public static NvmeController open(PciFunction function, ControllerOptions options) {
    try {
      NvmeController controller = new NvmeController(new Lifecycle(function, options));
      ShutdownGuard.add(controller);
      return controller;
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, function::close);
      throw e;
    }
  }

  // ---- what it is

  /** Its address, e.g. {@code sim:size=1GiB}. */
  public String name() {
    return life.name();
  }

  /** The PCI function; closed by {@link #close}. */
  public PciFunction function() {
    return life.function();
  }

  /** The options that it was opened with. */
  public ControllerOptions options() {
    return life.options();
  }

  /** Controller Capabilities. */
  public Cap cap() {
    return life.parts().cap();
  }

  /** The version of the specification it follows. */
  public Vs version() {
    return life.parts().version();
  }

  /** Memory page size (CC.MPS), bytes. */
  public int pageSize() {
    return life.parts().pageSize();
  }

  /** Identify Controller as of the last bring-up. */
  public IdentifyController identify() {
    return life.parts().identify();
  }

  /** Each state of the last bring-up with its registers and time. */
  public List<BringUpStep> bringUpSteps() {
    return life.steps();
  }

  /** The active namespaces as of the last scan, usable or not, in order of NSID. */
  public List<Namespace> namespaces() {
    return life.parts().namespaces();
  }

  /**
   * An active namespace.
   *
   * @throws InvalidRequestException if there is none with this NSID
   */
  public Namespace namespace(int nsid) {
    List<Namespace> active = namespaces();
    for (Namespace n : active) {
      if (n.nsid() == nsid) {
        return n;
      }
    }
    throw new InvalidRequestException(
        "no active namespace %s; there are %s"
            .formatted(
                Integer.toUnsignedString(nsid), active.stream().map(Namespace::nsid).toList()));
  }

  /** Looks for namespaces again, e.g. after a Namespace Attribute Changed event. */
  public List<Namespace> rescanNamespaces() {
    return life.rescan();
  }

  // ---- queue pairs

  /**
   * The most I/O queue pairs that may exist at once, of both kinds together; 0 if the controller
   * granted none.
   */
  public int maxQueuePairs() {
    return life.queues().limit();
  }

  /**
   * How many of {@link #maxQueuePairs} can be made at this moment: those that nobody has, without
   * those that were retired ({@link #retireExternalQueuePair}).
   */
  public int freeQueuePairs() {
    life.lock().lock();
    try {
      return life.queues().free();
    } finally {
      life.lock().unlock();
    }
  }

  /**
   * Asks for {@link #maxQueuePairs} to be at least 1.
   *
   * @throws io.gpunvme.nvme.ProtocolException if the controller granted no I/O queues; the message
   *     says why
   */
  public void requireQueuePairs() {
    life.lock().lock();
    try {
      life.queues().require();
    } finally {
      life.lock().unlock();
    }
  }

  /**
   * Largest depth of a queue pair: CAP.MQES, since one ring entry always stays empty, but no more
   * than 4096, so that at least 4 of a CID's 16 bits remain for the generation that tells a late
   * completion from the one waited for.
   */
  public int maxDepth() {
    return Math.min(cap().get(Cap.MQES), MAX_DEPTH);
  }

  /**
   * Longest ring the controller takes, CAP.MQES + 1 entries, of which one always stays empty. A
   * {@link QueuePair} needs fewer: see {@link #maxDepth}.
   */
  public int maxQueueEntries() {
    return life.queues().maxEntries();
  }

  /** Longest transfer of one command: the smaller of MDTS and the option, bytes. */
  public long maxTransferBytes() {
    return Math.min(
        options().maxTransferBytes(),
        IdentifyChecks.maxTransferBytes(identify(), cap().get(Cap.MPSMIN)));
  }

  /** Whether the controller takes SGLs for I/O commands. */
  public boolean supportsSgl() {
    return (identify().getInt(IdentifyController.SGLS)
            & (IdentifyController.SGLS_SUPPORTED | IdentifyController.SGLS_DWORD_ALIGNED))
        != 0;
  }

  /**
   * Creates a queue pair, here and at the controller, with rings just long enough.
   *
   * @param depth commands in flight at most, 1..{@link #maxDepth}
   * @throws InvalidRequestException if all queue pairs are in use or the depth is out of range
   * @throws io.gpunvme.nvme.ProtocolException if the controller granted no I/O queues
   */
  public QueuePair createQueuePair(int depth) {
    return createQueuePair(depth, depth + 1, depth + 1);
  }

  /**
   * Creates a queue pair with rings of given sizes.
   *
   * @param depth commands in flight at most, 1..min(sqSize, cqSize) - 1 and {@link #maxDepth}
   * @param sqSize submission queue entries, 2..CAP.MQES + 1
   * @param cqSize completion queue entries, 2..CAP.MQES + 1
   */
  public QueuePair createQueuePair(int depth, int sqSize, int cqSize) {
    if (depth < 1 || depth > maxDepth()) {
      throw new InvalidRequestException("depth " + depth + " is outside 1.." + maxDepth());
    }
    DataPointerMode mode = options().dataPointers();
    if (mode == DataPointerMode.SGL && !supportsSgl()) {
      throw new InvalidRequestException(name() + " does not support SGLs");
    }
    QueuePairSpec wanted =
        new QueuePairSpec(
            0,
            sqSize,
            cqSize,
            depth,
            cap().get(Cap.DSTRD),
            pageSize(),
            maxTransferBytes(),
            mode,
            options().ioTimeout().toNanos());
    life.lock().lock();
    try {
      requireInService();
      return life.queues().create(wanted);
    } finally {
      life.lock().unlock();
    }
  }

  /**
   * Makes the controller forget a queue pair and frees its memory. Commands still outstanding are
   * lost to their owner, who must not use the pair any more. Does nothing if the pair is closed
   * already.
   *
   * @throws InvalidRequestException if the pair is another controller's
   */
  public void deleteQueuePair(QueuePair pair) {
    life.lock().lock();
    try {
      life.queues().delete(pair);
    } finally {
      life.lock().unlock();
    }
  }

  /**
   * Climbs the recovery ladder for a queue pair with an expired command, or that is broken: poll,
   * Abort, delete and create, controller reset, fail.
   *
   * <p>Called by the thread that drives the pair. Commands that are over are handed to {@code
   * sink}; those whose fate stays unknown end with status Command Aborted By Host. The sink runs
   * with this controller's lock held: it must not wait for other threads. Never throws for the
   * controller's trouble.
   */
  public RecoveryOutcome recover(QueuePair pair, CompletionSink sink) {
    return recovery.recover(pair, sink);
  }

  /**
   * Creates a queue pair at the controller, on rings that other code drives. The owner finds the
   * doorbells in BAR0 of {@link #function}.
   *
   * @param rings emptied here; their memory must stay mapped until the pair is deleted or this
   *     controller closed
   * @throws InvalidRequestException if all queue pairs are in use, or a ring's size or alignment is
   *     wrong
   * @throws io.gpunvme.nvme.ProtocolException if the controller granted no I/O queues
   */
  public ExternalQueuePair createExternalQueuePair(QueueRings rings) {
    life.lock().lock();
    try {
      requireInService();
      return life.queues().create(rings, pageSize());
    } finally {
      life.lock().unlock();
    }
  }

  /**
   * Deletes a queue pair at the controller; nobody may drive it any more. Afterwards the controller
   * touches neither the rings nor the data of commands still outstanding, which are lost. Does
   * nothing if the pair is closed already.
   *
   * @throws InvalidRequestException if the pair is another controller's
   * @throws NvmeException if the controller refused; then keep the rings until {@link
   *     #recover(ExternalQueuePair)} and another call, or {@link #close}, succeed
   */
  public void deleteExternalQueuePair(ExternalQueuePair pair) {
    life.lock().lock();
    try {
      life.queues().delete(pair);
    } finally {
      life.lock().unlock();
    }
  }

  /**
   * As {@link #deleteExternalQueuePair}, for a pair that somebody may go on driving who cannot be
   * stopped: a kernel that hangs. No other pair of this controller gets its identifier, so stores
   * to its doorbells reach nobody's queues.
   */
  public void retireExternalQueuePair(ExternalQueuePair pair) {
    life.lock().lock();
    try {
      life.queues().retire(pair);
    } finally {
      life.lock().unlock();
    }
  }

  /**
   * Makes a queue pair usable again; nobody may drive it meanwhile. Its rings are emptied and
   * created anew at the controller, which is reset first if nothing less helps. Afterwards the
   * controller touches neither the old rings nor the data of commands that were outstanding. The
   * owner handles these commands and the initiator's state.
   *
   * <p>{@link RecoveryOutcome#ended} is always 0. Never throws for failures of the controller.
   */
  public RecoveryOutcome recover(ExternalQueuePair pair) {
    return recovery.recover(pair);
  }

  /**
   * Whether CSTS says that waiting is pointless: fatal error or device gone. One register read and
   * no lock, so any thread may call this at any time, e.g. while a kernel drives a queue pair. True
   * once this controller is closed.
   */
  public boolean troubled() {
    return life.registers().troubled();
  }

  // ---- admin commands

  /** The admin queue, for commands this class has no method for. */
  public AdminQueue admin() {
    return life.admin();
  }

  /** Get and Set Features. */
  public ControllerFeatures features() {
    return features;
  }

  /** Get Log Page. */
  public LogPages logs() {
    return logs;
  }

  /** Asynchronous events; {@link #pollEvents} delivers them. */
  public AsyncEvents events() {
    return life.parts().events();
  }

  /** Keep Alive. */
  public KeepAlive keepAlive() {
    return life.parts().keepAlive();
  }

  /** The memory lent to the controller. */
  public HostMemoryBuffer hostMemoryBuffer() {
    return life.parts().hostMemoryBuffer();
  }

  /**
   * Takes in asynchronous events, reads their log pages, requests new ones, tells the listeners.
   *
   * @return the events, oldest first; empty at once if there are none
   */
  public List<AsyncEvent> pollEvents() {
    requireInService();
    return life.parts().events().poll(life.admin());
  }

  /**
   * Identify (Base 2.0, 5.17): a read-only copy of the 4096 bytes.
   *
   * @param cns one of {@link io.gpunvme.nvme.spec.Cns}
   * @param nsid the namespace, 0 where none is meant
   */
  public MemorySegment identify(int cns, int nsid) {
    return life.admin().fetch(AdminCommand.identify(cns, nsid), IDENTIFY_BYTES);
  }

  /**
   * Asks the controller to abort a command.
   *
   * @return whether the controller says it did; the command's own completion tells
   */
  public boolean abort(QueuePair pair, int cid) {
    return recovery.abort(pair.qid(), cid);
  }

  /**
   * Asks the controller to abort a command of an external queue pair, which may be driven
   * meanwhile.
   *
   * @param cid the command's CID, 0..65535
   * @return whether the controller says it did; the command's own completion tells
   */
  public boolean abort(ExternalQueuePair pair, int cid) {
    return recovery.abort(pair.qid(), cid);
  }

  /**
   * Format NVM (Base 2.0, 5.14): all data of the namespace is lost. The namespaces are scanned
   * again afterwards; earlier {@link Namespace} objects are out of date.
   *
   * @param nsid the namespace
   * @param format index of the LBA format, 0..63; metadata and protection stay off
   * @param secureErase SES: 0 none, 1 user data erase, 2 cryptographic erase
   * @throws InvalidRequestException unless {@link ControllerOptions#allowWrite}
   */
  public void format(int nsid, int format, int secureErase) {
    requireWritable("Format NVM");
    if ((identify().getInt(IdentifyController.OACS) & IdentifyController.OACS_FORMAT) == 0) {
      throw new InvalidRequestException(name() + " has no Format NVM (OACS bit 1)");
    }
    if (format < 0 || format >= IdentifyNamespace.LBA_FORMATS) {
      throw new InvalidRequestException("LBA format " + format + " is outside 0..63");
    }
    if (secureErase < 0 || secureErase > 2) {
      throw new InvalidRequestException("secure erase setting " + secureErase + " is not 0..2");
    }
    AdminCommand command =
        AdminCommand.of(AdminOpcode.FORMAT_NVM)
            .nsid(nsid)
            .cdw10(
                (format & 0xF)
                    | secureErase << FORMAT_SES_SHIFT
                    | format >>> 4 << FORMAT_UPPER_SHIFT);
    life.admin().execute(command, options().formatTimeout().toNanos());
    life.rescan();
  }

  void requireWritable(String command) {
    if (!options().allowWrite()) {
      throw new InvalidRequestException(
          command
              + " changes data, and this controller was opened read-only; set"
              + " ControllerOptions.allowWrite (--allow-write) to allow it");
    }
  }

  private void requireInService() {
    RuntimeException reason = life.outOfService();
    if (reason != null) {
      throw Failures.again(reason);
    }
  }

  // ---- life

  /**
   * Controller reset. Admin commands of other threads end with CommandAbortedException; every queue
   * pair is broken until its owner calls {@link #recover}. Brings a controller that was shut down
   * back as well, and one whose last reset failed: then the PCI function is reset first.
   */
  public void reset() {
    life.reset();
  }

  /** What its I/O queue pairs have done so far. */
  public ControllerTraffic traffic() {
    return life.queues().traffic();
  }

  /** The number of resets of the controller since it was opened. */
  public long resets() {
    return life.resets();
  }

  /**
   * Orderly shutdown: the controller writes what it caches to the medium. Does nothing if it is
   * already down.
   *
   * @throws io.gpunvme.nvme.NvmeTimeoutException if CSTS.SHST does not become complete in time
   */
  public void shutdown() {
    life.shutdown();
  }

  /** What is to be done once, first, when this is closed by whomever; it must not throw. */
  public void onClose(Runnable action) {
    closeActions.add(action);
  }

  /**
   * Shuts down, frees every queue pair and closes the function. Idempotent. Nobody may drive an
   * external queue pair any more: its doorbells go with the function.
   */
  @Override
  public void close() {
    ShutdownGuard.remove(this);
    for (Runnable next = closeActions.poll(); next != null; next = closeActions.poll()) {
      next.run();
    }
    life.close();
  }
}
