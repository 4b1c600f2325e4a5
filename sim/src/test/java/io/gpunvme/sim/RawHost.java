package io.gpunvme.sim;

import io.gpunvme.nvme.memory.BusMapper;
import io.gpunvme.nvme.memory.DmaBuffer;
import io.gpunvme.nvme.memory.FakeGpu;
import io.gpunvme.nvme.pci.Bar;
import io.gpunvme.nvme.pci.ConfigSpace;
import io.gpunvme.nvme.spec.AdminOpcode;
import io.gpunvme.nvme.spec.Aqa;
import io.gpunvme.nvme.spec.Cap;
import io.gpunvme.nvme.spec.Cc;
import io.gpunvme.nvme.spec.Csts;
import io.gpunvme.nvme.spec.Registers;
import io.gpunvme.nvme.spec.Sqe;
import io.gpunvme.nvme.spec.Status;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;

/**
 * A host made of registers, raw entries and doorbell stores, for tests of the controller without
 * the driver. With {@code workers = 0} it also plays the worker. One thread at a time.
 */
final class RawHost implements AutoCloseable {
  static final int ADMIN_SIZE = 16;
  static final long PATIENCE_NANOS = 10_000_000_000L;
  private static final int REMOTE_POLLS = 3;

  /** Whether queues and buffers of new hosts are remote memory; see {@link InRemoteMemory}. */
  static volatile boolean remoteByDefault;

  final SimulatedController controller;
  final FakeGpu gpu;
  final boolean remote = remoteByDefault;
  final Bar bar;
  final Cap cap;
  final List<DmaBuffer> buffers = new ArrayList<>();
  RawQueue admin;

  private RawHost(SimulatedController controller) {
    this.controller = controller;
    gpu = new FakeGpu(controller);
    if (controller.simConfig().workers() > 0) {
      SplittableRandom random = new SplittableRandom(controller.simConfig().seed());
      gpu.delay(() -> random.nextInt(4));
    }
    bar = controller.bar(0);
    cap = new Cap(bar.read64(Registers.CAP));
    admin = queueMemory(0, ADMIN_SIZE, ADMIN_SIZE);
  }

  /** A controller in power-on state, bus master, nothing else. */
  static RawHost attach(SimConfig config) {
    return attach(SimulatedController.create(config));
  }

  static RawHost attach(SimulatedController controller) {
    RawHost host = new RawHost(controller);
    host.busMaster(true);
    return host;
  }

  /** A controller brought up with admin queues of {@link #ADMIN_SIZE} entries. */
  static RawHost start(SimConfig config) {
    RawHost host = attach(config);
    host.enable();
    return host;
  }

  void busMaster(boolean on) {
    ConfigSpace config = controller.config();
    int command = config.read(ConfigSpace.COMMAND, 2) | ConfigSpace.COMMAND_MEMORY;
    int bit = ConfigSpace.COMMAND_BUS_MASTER;
    config.write(ConfigSpace.COMMAND, 2, on ? command | bit : command & ~bit);
  }

  /** What maps memory of the default kind. */
  BusMapper mapper() {
    return remote ? gpu : controller;
  }

  /** Page-aligned, mapped memory; freed with the host. */
  DmaBuffer buffer(long bytes) {
    return keep(DmaBuffer.allocate(mapper(), bytes));
  }

  /** As {@link #buffer}, but the controller knows it as a device's memory. */
  DmaBuffer remoteBuffer(long bytes) {
    return keep(DmaBuffer.allocate(gpu, bytes));
  }

  /** Page-aligned memory of this process, whatever the default. */
  DmaBuffer hostBuffer(long bytes) {
    return keep(DmaBuffer.allocate(controller, bytes));
  }

  private DmaBuffer keep(DmaBuffer b) {
    buffers.add(b);
    return b;
  }

  /** Memory for a queue pair that the controller does not know of yet. */
  RawQueue queueMemory(int qid, int sqSize, int cqSize) {
    return queueMemory(qid, sqSize, cqSize, remote);
  }

  /** As above, in remote memory or not. */
  RawQueue queueMemory(int qid, int sqSize, int cqSize, boolean inRemote) {
    long sqBytes = sqSize * 64L;
    long cqBytes = cqSize * 16L;
    return new RawQueue(
        qid,
        sqSize,
        cqSize,
        inRemote ? remoteBuffer(sqBytes) : hostBuffer(sqBytes),
        inRemote ? remoteBuffer(cqBytes) : hostBuffer(cqBytes),
        bar.memory(Registers.DOORBELLS, doorbellBytes()),
        cap.get(Cap.DSTRD));
  }

  private long doorbellBytes() {
    return bar.size() - Registers.DOORBELLS > 4096 ? 8192 : 4096;
  }

  // ---- bring-up

  static Cc cc() {
    return new Cc(0).with(Cc.IOSQES, 6).with(Cc.IOCQES, 4);
  }

  void writeAdminQueues() {
    bar.write32(Registers.AQA, Aqa.of(admin.sqSize - 1, admin.cqSize - 1).value());
    bar.write64(Registers.ASQ, admin.sq.busAddress(0));
    bar.write64(Registers.ACQ, admin.cq.busAddress(0));
  }

  /** Enables the controller and waits for CSTS.RDY. */
  void enable() {
    writeAdminQueues();
    bar.write32(Registers.CC, cc().with(Cc.EN, true).value());
    await(() -> csts().isSet(Csts.RDY) || csts().isSet(Csts.CFS), "CSTS.RDY");
    if (csts().isSet(Csts.CFS)) {
      throw new AssertionError("fatal while enabling: " + controller.fatalReason());
    }
  }

  /** Disables the controller and waits; the queues are forgotten and the admin rings emptied. */
  void disable() {
    bar.write32(Registers.CC, cc().value());
    await(() -> !csts().isSet(Csts.RDY), "CSTS.RDY = 0");
    resetAdmin();
  }

  /** Empties the admin rings for the next enable. */
  void resetAdmin() {
    admin.sq.memory().fill((byte) 0);
    admin.cq.memory().fill((byte) 0);
    admin.tail = 0;
    admin.head = 0;
    admin.phase = 1;
  }

  Csts csts() {
    return new Csts(bar.read32(Registers.CSTS));
  }

  // ---- commands

  /** An entry; the CID comes later. */
  static MemorySegment sqe(
      int opcode, int nsid, long dptr1, long dptr2, int cdw10, int cdw11, int cdw12) {
    MemorySegment s = Arena.ofAuto().allocate(Sqe.SIZE, 8);
    Sqe.put(s, 0, Sqe.cdw0(opcode, 0, 0), nsid, 0, dptr1, dptr2, cdw10, cdw11, cdw12, 0, 0, 0);
    return s;
  }

  /** An I/O command on {@code blocks} logical blocks. */
  static MemorySegment io(int opcode, int nsid, long slba, int blocks, long prp1, long prp2) {
    return sqe(opcode, nsid, prp1, prp2, (int) slba, (int) (slba >>> 32), blocks - 1);
  }

  static MemorySegment createCq(int qid, int size, long bus, int flags, int vector) {
    return sqe(
        AdminOpcode.CREATE_IO_CQ, 0, bus, 0, qid | (size - 1) << 16, flags | vector << 16, 0);
  }

  static MemorySegment createSq(int qid, int size, long bus, int flags, int cqid) {
    return sqe(AdminOpcode.CREATE_IO_SQ, 0, bus, 0, qid | (size - 1) << 16, flags | cqid << 16, 0);
  }

  static MemorySegment deleteSq(int qid) {
    return sqe(AdminOpcode.DELETE_IO_SQ, 0, 0, 0, qid, 0, 0);
  }

  static MemorySegment deleteCq(int qid) {
    return sqe(AdminOpcode.DELETE_IO_CQ, 0, 0, 0, qid, 0, 0);
  }

  static MemorySegment abort(int sqid, int cid) {
    return sqe(AdminOpcode.ABORT, 0, 0, 0, sqid | cid << 16, 0, 0);
  }

  /** Runs one command on an otherwise idle queue. */
  RawQueue.Completion execute(RawQueue q, MemorySegment sqe) {
    int cid = q.push(sqe);
    q.ring();
    RawQueue.Completion c = next(q);
    if (c.cid() != cid || c.sqid() != q.qid) {
      throw new AssertionError("expected cid " + cid + " of queue " + q.qid + ", got " + c);
    }
    return c;
  }

  /** Runs one admin command. */
  RawQueue.Completion admin(MemorySegment sqe) {
    return execute(admin, sqe);
  }

  /** Runs one admin command that must succeed. Returns its dw0. */
  int adminOk(MemorySegment sqe) {
    RawQueue.Completion c = admin(sqe);
    if (c.status() != 0) {
      throw new AssertionError(Sqe.describe(sqe, 0) + ": " + Status.describe(c.status()));
    }
    return c.dw0();
  }

  /** Waits for the next completion. */
  RawQueue.Completion next(RawQueue q) {
    return await(q::poll, "a completion on queue " + q.qid);
  }

  /** Creates an I/O queue pair without interrupts. */
  RawQueue createQueue(int qid, int sqSize, int cqSize) {
    return createQueue(queueMemory(qid, sqSize, cqSize));
  }

  /** Creates an I/O queue pair whose rings are in remote memory. */
  RawQueue createRemoteQueue(int qid, int sqSize, int cqSize) {
    return createQueue(queueMemory(qid, sqSize, cqSize, true));
  }

  /** Creates an I/O queue pair whose doorbells are rung through the peer's window. */
  RawQueue createPeerQueue(int qid, int sqSize, int cqSize) {
    return asPeer(createQueue(qid, sqSize, cqSize));
  }

  /** The same queue, empty, as somebody sees it who rings through the peer's window. */
  RawQueue asPeer(RawQueue q) {
    MemorySegment doorbells = bar.peerMemory(Registers.DOORBELLS, doorbellBytes());
    return new RawQueue(q.qid, q.sqSize, q.cqSize, q.sq, q.cq, doorbells, cap.get(Cap.DSTRD));
  }

  private RawQueue createQueue(RawQueue q) {
    int qid = q.qid;
    adminOk(createCq(qid, q.cqSize, q.cq.busAddress(0), 1, 0));
    adminOk(createSq(qid, q.sqSize, q.sq.busAddress(0), 1, qid));
    return q;
  }

  void deleteQueue(RawQueue q) {
    adminOk(deleteSq(q.qid));
    adminOk(deleteCq(q.qid));
  }

  // ---- waiting

  /** Lets the controller work: its own threads do, or we. */
  void pump() {
    if (controller.simConfig().workers() == 0) {
      poll();
    } else {
      gpu.tick();
      // Tests have more threads than machines have cores.
      Thread.yield();
    }
  }

  /** What the workers do in one pass; in remote memory, until what they started has arrived. */
  void poll() {
    controller.poll();
    for (int i = 1; remote && i < REMOTE_POLLS; i++) {
      gpu.tick();
      controller.poll();
    }
    gpu.tick();
  }

  void await(BooleanSupplier condition, String what) {
    await(() -> condition.getAsBoolean() ? Boolean.TRUE : null, what);
  }

  <T> T await(Supplier<@org.jspecify.annotations.Nullable T> source, String what) {
    long start = System.nanoTime();
    while (true) {
      T value = source.get();
      if (value != null) {
        return value;
      }
      if (System.nanoTime() - start > PATIENCE_NANOS) {
        throw new AssertionError(
            "waited in vain for %s: CSTS %s, fatal %s, internal %s, %s"
                .formatted(
                    what,
                    csts(),
                    controller.fatalReason(),
                    controller.internalError(),
                    controller.stats()));
      }
      pump();
    }
  }

  /** Lets time pass for what must not happen. */
  void settle() {
    long start = System.nanoTime();
    do {
      pump();
    } while (System.nanoTime() - start < 20_000_000L);
  }

  @Override
  public void close() {
    Throwable error = controller.internalError();
    controller.close();
    buffers.forEach(DmaBuffer::close);
    gpu.requireNoMisuse();
    if (gpu.openPorts() != 0) {
      throw new AssertionError(gpu.openPorts() + " ports were left open");
    }
    if (error != null) {
      throw new AssertionError("the controller met a bug of its own", error);
    }
  }
}
