package io.gpunvme.sim;

import io.gpunvme.nvme.memory.FakeGpu;
import io.gpunvme.nvme.pci.Bar;
import io.gpunvme.nvme.pci.ConfigSpace;
import io.gpunvme.nvme.spec.AdminOpcode;
import io.gpunvme.nvme.spec.Aqa;
import io.gpunvme.nvme.spec.Cc;
import io.gpunvme.nvme.spec.Csts;
import io.gpunvme.nvme.spec.Registers;
import io.gpunvme.nvme.spec.Sqe;
import io.gpunvme.nvme.spec.Status;
import io.gpunvme.nvme.spec.StatusCode;
import io.gpunvme.sim.FuzzMemory.Region;
import io.gpunvme.sim.FuzzMemory.Use;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.BitSet;
import java.util.Deque;
import java.util.HashMap;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.regex.Pattern;

/**
 * A host that sends anything and believes nothing: keeps account of every command it sent, and
 * fails if one does not complete as the specification allows, or if the controller writes where it
 * was not asked to. One thread; with {@code workers = 0} it also plays the worker, in a time of its
 * own.
 */
final class FuzzHost implements AutoCloseable {
  static final int PAGE = FuzzMemory.PAGE;

  private static final int VENDOR_FIRST = 0xC0;
  private static final int MOST_PUMPS = 100_000;
  private static final long PATIENCE_NANOS = 20_000_000_000L;
  private static final long STEP_NANOS = 1_000;
  private static final Pattern LAWFUL_FATAL =
      Pattern.compile(
          "(submission|completion) queue \\d+ is not mapped"
              + "|a queue's memory cannot be reached: .* is not mapped any more"
              + "|the keep alive timer expired"
              + "|enabled again before CSTS.RDY was 0"
              + "|CC\\.(MPS|CSS|AMS) .*"
              + "|AQA has .*|ASQ or ACQ .*");

  /** A command on its way. */
  record Sent(MemorySegment sqe, boolean mayStay) {
    @Override
    public String toString() {
      return Sqe.describe(sqe, 0);
    }
  }

  /** A queue pair with what is on its way. */
  final class Queue {
    final RawQueue raw;
    final Region sq;
    final Region cq;
    private final Map<Integer, Deque<Sent>> sent = new HashMap<>();
    private int awaited;
    private int fetched;

    /** Status of the last completion. */
    int status;

    /** Completions so far. */
    int taken;

    Queue(int qid, int sqSize, int cqSize, Region sq, Region cq) {
      raw = new RawQueue(qid, sqSize, cqSize, sq.buffer, cq.buffer, doorbells, dstrd);
      this.sq = sq;
      this.cq = cq;
      sq.memory.fill((byte) 0);
      cq.memory.fill((byte) 0);
      sq.believe();
      cq.believe();
    }

    boolean isOutstanding(int cid) {
      return sent.containsKey(cid);
    }

    /** The identifier of some command on its way, or 0. */
    int anyOutstanding() {
      return sent.isEmpty() ? 0 : sent.keySet().iterator().next();
    }

    /** How many commands must complete without anything else happening. */
    int awaited() {
      return awaited;
    }

    /** Entries that are surely free: the controller said that it had fetched what was in them. */
    int room() {
      int announced = (raw.tail - fetched + raw.sqSize) % raw.sqSize;
      return raw.sqSize - 1 - announced;
    }

    /** Whether all that was announced had been fetched when the last completion was posted. */
    boolean isFetched() {
      return fetched == raw.tail;
    }

    /** Puts a command into the ring and the books; does not ring. */
    void push(MemorySegment sqe, int cid) {
      long at = (long) raw.tail * Sqe.SIZE;
      raw.push(sqe, cid);
      sq.believe(at, Sqe.SIZE);
      enter(at);
    }

    private void enter(long at) {
      MemorySegment s = MemorySegment.ofArray(new long[Sqe.SIZE / Long.BYTES]);
      MemorySegment.copy(sq.memory, at, s, 0, Sqe.SIZE);
      boolean mayStay = raw.qid == 0 && Sqe.opcode(s, 0) == AdminOpcode.ASYNC_EVENT_REQUEST;
      sent.computeIfAbsent(Sqe.cid(s, 0), cid -> new ArrayDeque<>()).add(new Sent(s, mayStay));
      awaited += mayStay ? 0 : 1;
    }

    /**
     * Stores anything into the tail doorbell. If it is a value that the controller must take, the
     * entries it announces, whatever is in them, are on their way.
     */
    void ringAnything(int value) {
      if (value >= 0 && value < raw.sqSize) {
        for (int i = raw.tail; i != value; i = (i + 1) % raw.sqSize) {
          enter((long) i * Sqe.SIZE);
        }
        raw.tail = value;
      }
      raw.ringTail(value);
    }

    /** Takes in a completion; null if there is none. */
    RawQueue.Completion take() {
      long at = raw.head * 16L;
      RawQueue.Completion c = raw.poll();
      if (c == null) {
        return null;
      }
      cq.believe(at, 16);
      require(isKnown(c.status()), "%s has an unknown status", c);
      if (shadowed && raw.qid != 0) {
        // Data that commands write may be doorbells now: anything in the ring may be a command.
        return c;
      }
      if (c.sqid() != raw.qid && (foreignSqs.get(c.sqid()) || lateSqs.get(c.sqid()))) {
        return c;
      }
      require(c.sqid() == raw.qid && c.sqhd() < raw.sqSize, "%s is not of queue %d", c, raw.qid);
      fetched = c.sqhd();
      status = c.status();
      taken++;
      Deque<Sent> of = sent.get(c.cid());
      require(of != null, "nobody sent the command of %s", c);
      boolean conflict = StatusCode.of(c.status()) == StatusCode.COMMAND_ID_CONFLICT;
      Sent s = conflict ? of.removeLast() : of.removeFirst();
      if (of.isEmpty()) {
        sent.remove(c.cid());
      }
      awaited -= s.mayStay ? 0 : 1;
      if (raw.qid == 0 && c.status() == 0) {
        learn(s);
      }
      return c;
    }

    void forget() {
      sent.clear();
      awaited = 0;
    }
  }

  final SimulatedController controller;
  final SimConfig config;
  final FuzzMemory memory;
  final FakeGpu gpu;
  final Bar bar;
  final int dstrd;
  final RawClock clock = new RawClock();
  Queue admin;
  Queue io;

  /**
   * I/O queues that exist beside {@link #io}, because a command of ours happened to create them.
   */
  final BitSet foreignSqs = new BitSet();

  final BitSet foreignCqs = new BitSet();

  /** Deleted ones whose last completions may still be on their way. */
  final BitSet lateSqs = new BitSet();

  /** Doorbells may be in the host's memory now. */
  boolean shadowed;

  /** An old command that was announced again created a queue where another one may be. */
  boolean ringsShared;

  /** What was known of namespaces is out of date. */
  boolean namespacesChanged;

  private final MemorySegment doorbells;
  private final boolean manual;
  private final int adminEntries;
  private Region adminSq;
  private Region adminCq;
  private Region ioSq;
  private Region ioCq;

  /**
   * @param remoteShare how many of 100 regions of memory are remote
   */
  FuzzHost(SimConfig config, int adminEntries, SplittableRandom random, int remoteShare) {
    this.config = config;
    this.adminEntries = adminEntries;
    manual = config.workers() == 0;
    controller =
        manual ? SimulatedController.create(config, clock) : SimulatedController.create(config);
    gpu = new FakeGpu(controller);
    SplittableRandom delays = random.split();
    gpu.delay(() -> delays.nextInt(6));
    memory = new FuzzMemory(controller, gpu, random.split(), remoteShare);
    bar = controller.bar(0);
    dstrd = config.dstrd();
    long bytes = Registers.sqTailDoorbell(config.ioQueues() + 1, dstrd) - Registers.DOORBELLS;
    doorbells = bar.memory(Registers.DOORBELLS, bytes);
    adminSq = memory.add("admin submission queue", Use.RING, 1);
    adminCq = memory.add("admin completion queue", Use.RING, 1);
    ioSq = memory.add("I/O submission queue", Use.RING, 1);
    ioCq = memory.add("I/O completion queue", Use.RING, 1);
    for (int pages : new int[] {1, 2, 4, 9}) {
      memory.add("data of " + pages + " pages", Use.DATA, pages);
    }
    for (int i = 1; i <= 2; i++) {
      memory.add("lists " + i, Use.DATA, 2);
    }
  }

  static void require(boolean holds, String message, Object... args) {
    if (!holds) {
      throw new AssertionError(message.formatted(args));
    }
  }

  private static boolean isKnown(int status) {
    return StatusCode.of(status) != null
        || Status.sct(status) == Status.SCT_VENDOR
        || Status.sc(status) >= VENDOR_FIRST;
  }

  /** Whether queues exist that are not ours. */
  boolean hasForeign() {
    return !foreignSqs.isEmpty() || !foreignCqs.isEmpty();
  }

  /**
   * Whether completions that nobody counts may be on their way to our queue. While they are, a head
   * that is wrong for us may be right for the controller, which then writes over them.
   */
  boolean isLate() {
    return io != null && !lateSqs.isEmpty();
  }

  /** An admin command succeeded. */
  private void learn(Sent s) {
    int qid = Sqe.cdw10(s.sqe, 0) & 0xFFFF;
    switch (Sqe.opcode(s.sqe, 0)) {
      case AdminOpcode.CREATE_IO_SQ -> {
        foreignSqs.set(qid);
        checkPlace(Sqe.dptr1(s.sqe, 0));
      }
      case AdminOpcode.CREATE_IO_CQ -> {
        foreignCqs.set(qid);
        checkPlace(Sqe.dptr1(s.sqe, 0));
      }
      case AdminOpcode.DELETE_IO_SQ -> {
        if (foreignSqs.get(qid)) {
          foreignSqs.clear(qid);
          lateSqs.set(qid);
        }
        if (io != null && io.raw.qid == qid) {
          // Its completion queue still exists, and what was outstanding completed into it.
          foreignCqs.set(qid);
          while (io.take() != null) {
            // Until there are none.
          }
          io = null;
        }
      }
      case AdminOpcode.DELETE_IO_CQ -> foreignCqs.clear(qid);
      case AdminOpcode.DOORBELL_BUFFER_CONFIG -> shadowed = true;
      case AdminOpcode.FORMAT_NVM, AdminOpcode.NS_MANAGEMENT, AdminOpcode.NS_ATTACHMENT ->
          namespacesChanged = true;
      default -> {}
    }
  }

  private void checkPlace(long address) {
    Region r = memory.find(address);
    ringsShared |= r != null && r.use == Use.RING;
  }

  // ---- time

  /** Lets the controller work a little. */
  void pump(long nanos) {
    gpu.tick();
    if (manual) {
      clock.advance(nanos);
      controller.poll();
    } else {
      Thread.yield();
    }
  }

  Csts csts() {
    return new Csts(bar.read32(Registers.CSTS));
  }

  /** Whether CSTS.CFS is 1; fails if it is for no good reason. */
  boolean isDead() {
    requireNoBug();
    String reason = controller.fatalReason();
    require(reason == null || LAWFUL_FATAL.matcher(reason).matches(), "fatal: %s", reason);
    return reason != null;
  }

  void requireNoBug() {
    Throwable bug = controller.internalError();
    if (bug != null) {
      throw new AssertionError("the controller met a bug of its own: " + bug, bug);
    }
  }

  /**
   * Takes in completions until everything awaited has completed.
   *
   * @return whether that happened; otherwise the controller is dead for a good reason
   */
  boolean drain() {
    long start = System.nanoTime();
    pump(STEP_NANOS);
    for (int i = 0; takeAll() || isAwaiting(); i++) {
      if (isDead()) {
        return false;
      }
      boolean patient = manual ? i < MOST_PUMPS : System.nanoTime() - start < PATIENCE_NANOS;
      require(patient, "never completed: %s; %s", admin.sent, io == null ? "" : io.sent);
      pump(STEP_NANOS);
    }
    return !isDead();
  }

  private boolean isAwaiting() {
    // With shadow doorbells nobody looks at the register we rang.
    return admin.awaited > 0 || (io != null && io.awaited > 0 && !shadowed);
  }

  /** Takes in what is there; whether there was anything. */
  boolean takeAll() {
    boolean any = false;
    while (admin.take() != null || (io != null && io.take() != null)) {
      any = true;
    }
    return any;
  }

  /**
   * The rings hold what we wrote and took. Nobody can tell with other threads at work, nor while
   * random memory is the doorbell of a queue that is not ours: it may complete a command into our
   * queue at any time.
   */
  void requireRings(Object what) {
    if (manual && (!shadowed || foreignSqs.isEmpty())) {
      memory.requireRings(what);
    }
  }

  // ---- from any state to a working controller

  /** Whatever happened before: resets the controller and brings it up again with its queues. */
  void recover() {
    controller
        .config()
        .write(ConfigSpace.COMMAND, 2, ConfigSpace.COMMAND_MEMORY | ConfigSpace.COMMAND_BUS_MASTER);
    bar.write32(Registers.CC, 0);
    await(Csts.RDY.mask(), 0);
    for (Region r : memory.regions().toArray(Region[]::new)) {
      if (!r.isMapped()) {
        require(r.isAsBelieved(), "%s was written after it had been unmapped", r.name);
        remapped(r, memory.replace(r));
      }
    }
    foreignSqs.clear();
    foreignCqs.clear();
    lateSqs.clear();
    ringsShared = false;
    shadowed = false;
    io = null;
    admin = new Queue(0, adminEntries, adminEntries, adminSq, adminCq);
    bar.write32(Registers.AQA, Aqa.of(adminEntries - 1, adminEntries - 1).value());
    bar.write64(Registers.ASQ, adminSq.base);
    bar.write64(Registers.ACQ, adminCq.base);
    bar.write32(Registers.CC, RawHost.cc().with(Cc.EN, true).value());
    await(Csts.RDY.mask() | Csts.CFS.mask(), Csts.RDY.mask());
  }

  private void remapped(Region old, Region fresh) {
    adminSq = old == adminSq ? fresh : adminSq;
    adminCq = old == adminCq ? fresh : adminCq;
    ioSq = old == ioSq ? fresh : ioSq;
    ioCq = old == ioCq ? fresh : ioCq;
  }

  private void await(int mask, int wanted) {
    long start = System.nanoTime();
    for (int i = 0; (csts().value() & mask) != wanted; i++) {
      requireNoBug();
      boolean patient = manual ? i < MOST_PUMPS : System.nanoTime() - start < PATIENCE_NANOS;
      require(
          patient && (wanted == 0 || !csts().isSet(Csts.CFS)),
          "%s, wanted %Xh of %Xh; fatal: %s",
          csts(),
          wanted,
          mask,
          controller.fatalReason());
      pump(STEP_NANOS);
    }
  }

  /** Creates the I/O queue pair; false if the controller refuses. */
  boolean createIo(int qid, int entries) {
    Queue q = new Queue(qid, entries, entries, ioSq, ioCq);
    lateSqs.clear();
    if (run(RawHost.createCq(qid, entries, ioCq.base, 1, 0)).status() != 0) {
      return false;
    }
    foreignCqs.clear(qid);
    ringsShared = false;
    if (run(RawHost.createSq(qid, entries, ioSq.base, 1, qid)).status() != 0) {
      foreignCqs.set(qid);
      return false;
    }
    foreignSqs.clear(qid);
    ringsShared = false;
    io = q;
    return true;
  }

  // ---- good commands

  /** Runs a good admin command on an idle queue. */
  RawQueue.Completion run(MemorySegment sqe) {
    return run(admin, sqe);
  }

  /** Runs a good command on an idle queue. */
  RawQueue.Completion run(Queue q, MemorySegment sqe) {
    int cid = 0x4000;
    while (q.isOutstanding(cid)) {
      cid++;
    }
    q.push(sqe, cid);
    q.raw.ring();
    for (int i = 0; i < MOST_PUMPS || !manual; i++) {
      pump(STEP_NANOS);
      require(!isDead(), "died of %s: %s", Sqe.describe(sqe, 0), controller.fatalReason());
      RawQueue.Completion c = q.take();
      if (c != null && c.cid() == cid) {
        return c;
      }
    }
    throw new AssertionError("never completed: " + Sqe.describe(sqe, 0));
  }

  void runWell(Queue q, MemorySegment sqe) {
    RawQueue.Completion c = run(q, sqe);
    require(c.status() == 0, "%s: %s", Sqe.describe(sqe, 0), Status.describe(c.status()));
  }

  @Override
  public void close() {
    try {
      requireNoBug();
    } finally {
      controller.close();
      memory.close();
      gpu.requireNoMisuse();
      require(gpu.openPorts() == 0, "%d ports were left open", gpu.openPorts());
    }
  }
}
