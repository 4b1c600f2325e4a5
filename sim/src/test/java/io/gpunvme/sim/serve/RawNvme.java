package io.gpunvme.sim.serve;

import io.gpunvme.ffi.Mapping;
import io.gpunvme.ffi.Posix;
import io.gpunvme.nvme.pci.ConfigSpace;
import io.gpunvme.nvme.spec.AdminOpcode;
import io.gpunvme.nvme.spec.Aqa;
import io.gpunvme.nvme.spec.Cc;
import io.gpunvme.nvme.spec.Cqe;
import io.gpunvme.nvme.spec.Csts;
import io.gpunvme.nvme.spec.IoOpcode;
import io.gpunvme.nvme.spec.Registers;
import io.gpunvme.nvme.spec.Sqe;
import io.gpunvme.nvme.spec.Status;
import io.gpunvme.nvme.vfiouser.Protocol;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.util.Arrays;

/**
 * The least of a driver over a {@link RawClient}: an admin queue and one I/O queue of 16 entries.
 * One thread.
 */
final class RawNvme implements AutoCloseable {
  /** Where the queues are mapped. */
  static final long QUEUES = 0x10_0000;

  /** One after the other: admin submission, admin completion, I/O submission, I/O completion. */
  static final long QUEUE = 2 * Pages.PAGE;

  static final long ALL_QUEUES = 4 * QUEUE;

  static final int ENTRIES = 16;
  static final int ADMIN = 0;
  static final int IO = 1;

  private static final long PATIENCE_NANOS = 20_000_000_000L;
  private static final int READ_WRITE = Protocol.DMA_READABLE | Protocol.DMA_WRITABLE;
  private static final VarHandle INT = ValueLayout.JAVA_INT.varHandle().withInvokeExactBehavior();

  final RawClient client;
  final Pages queues = Pages.allocate(ALL_QUEUES);
  private final Mapping doorbells;
  private final int[] tails = new int[2];
  private final int[] heads = new int[2];
  private final int[] phases = {1, 1};
  private int lastCid;

  private RawNvme(RawClient client) {
    this.client = client;
    int fd = client.doorbells();
    doorbells =
        Mapping.shared(fd, Registers.DOORBELLS, Pages.PAGE, Posix.PROT_READ | Posix.PROT_WRITE);
    Posix.close(fd);
  }

  /** Brings the controller up. Owns the client from now on. */
  static RawNvme start(RawClient client) {
    return start(client, ConfigSpace.COMMAND_INTX_DISABLE, 0);
  }

  /** With pages of 8 KiB. */
  static RawNvme startWithLargePages(RawClient client) {
    return start(client, ConfigSpace.COMMAND_INTX_DISABLE, 0, new Cc(0).with(Cc.MPS, 1));
  }

  /**
   * As above.
   *
   * @param command more bits for the Command register
   * @param cqFlags of the I/O completion queue beyond that it is contiguous; bit 1 for interrupts
   */
  static RawNvme start(RawClient client, int command, int cqFlags) {
    return start(client, command, cqFlags, new Cc(0));
  }

  private static RawNvme start(RawClient client, int command, int cqFlags, Cc cc) {
    RawNvme nvme = new RawNvme(client);
    nvme.client.map(nvme.queues, QUEUES, READ_WRITE);
    int on = ConfigSpace.COMMAND_MEMORY | ConfigSpace.COMMAND_BUS_MASTER | command;
    client.write(Protocol.REGION_CONFIG, ConfigSpace.COMMAND, (byte) on, (byte) (on >> 8));
    client.write32(0, Registers.AQA, Aqa.of(ENTRIES - 1, ENTRIES - 1).value());
    client.write64(0, Registers.ASQ, QUEUES);
    client.write64(0, Registers.ACQ, QUEUES + QUEUE);
    client.write32(
        0, Registers.CC, cc.with(Cc.IOSQES, 6).with(Cc.IOCQES, 4).with(Cc.EN, true).value());
    long end = System.nanoTime() + PATIENCE_NANOS;
    while (!nvme.csts().isSet(Csts.RDY)) {
      if (nvme.csts().isSet(Csts.CFS) || System.nanoTime() > end) {
        throw new AssertionError("the controller does not become ready: " + nvme.csts());
      }
    }
    int sizes = (ENTRIES - 1) << 16 | IO;
    nvme.ok(AdminOpcode.CREATE_IO_CQ, QUEUES + 3 * QUEUE, sizes, 1 | cqFlags);
    nvme.ok(AdminOpcode.CREATE_IO_SQ, QUEUES + 2 * QUEUE, sizes, 1 | IO << 16);
    return nvme;
  }

  Csts csts() {
    return new Csts(client.read32(0, Registers.CSTS));
  }

  private void ok(int opcode, long prp1, int cdw10, int cdw11) {
    int status = await(ADMIN, submit(ADMIN, opcode, 0, prp1, 0, cdw10, cdw11, 0));
    if (status != 0) {
      throw new AssertionError("status %Xh of admin command %Xh".formatted(status, opcode));
    }
  }

  /** Puts a command into a queue and rings; its CID. */
  int submit(int qid, int opcode, int nsid, long prp1, long prp2, int cdw10, int cdw11, int cdw12) {
    int cid = ++lastCid & 0xFFFF;
    MemorySegment sq = queues.memory().asSlice(2L * qid * QUEUE, QUEUE);
    Sqe.put(
        sq,
        (long) tails[qid] * Sqe.SIZE,
        Sqe.cdw0(opcode, 0, cid),
        nsid,
        0,
        prp1,
        prp2,
        cdw10,
        cdw11,
        cdw12,
        0,
        0,
        0);
    tails[qid] = (tails[qid] + 1) % ENTRIES;
    // Release: the controller acquires it and sees the entry.
    INT.setRelease(doorbells.segment(), 8L * qid, tails[qid]);
    return cid;
  }

  /** A Read or Write of blocks of namespace 1 from block {@code slba} on. */
  int io(int opcode, int slba, int blocks, long prp1, long prp2) {
    return submit(IO, opcode, 1, prp1, prp2, slba, 0, blocks - 1);
  }

  /** The status of a Read or Write of one page. */
  int page(int opcode, int slba, long address) {
    return await(IO, io(opcode, slba, 8, address, 0));
  }

  /** Waits for the next completion, which must be that of {@code cid}; its status. */
  int await(int qid, int cid) {
    int[] next = take(qid);
    if (next[0] != cid) {
      throw new AssertionError("CID " + next[0] + " instead of " + cid);
    }
    return next[1];
  }

  /** Waits for the next completion; its CID and status. */
  int[] take(int qid) {
    MemorySegment cq = queues.memory().asSlice((2L * qid + 1) * QUEUE, QUEUE);
    long at = (long) heads[qid] * Cqe.SIZE;
    long end = System.nanoTime() + PATIENCE_NANOS;
    int dw3 = Cqe.dw3Acquire(cq, at);
    while (Cqe.phase(dw3) != phases[qid]) {
      if (System.nanoTime() > end) {
        throw new AssertionError("no completion; CSTS " + csts());
      }
      Thread.onSpinWait();
      dw3 = Cqe.dw3Acquire(cq, at);
    }
    heads[qid] = (heads[qid] + 1) % ENTRIES;
    if (heads[qid] == 0) {
      phases[qid] ^= 1;
    }
    INT.setRelease(doorbells.segment(), 8L * qid + 4, heads[qid]);
    // More says that the error log has an entry.
    return new int[] {Cqe.cid(dw3), Cqe.status(dw3) & ~Status.MORE};
  }

  /** The doorbells as they are mapped here. */
  MemorySegment doorbells() {
    return doorbells.segment();
  }

  /** Writes a page of marks to the namespace and reads it back to other memory. */
  void roundTrip(int slba, int seed) {
    long address = 0x4000_0000L;
    try (Pages data = Pages.allocate(2 * Pages.PAGE)) {
      client.map(data, address, READ_WRITE);
      byte[] marks = new byte[(int) Pages.PAGE];
      for (int i = 0; i < marks.length; i++) {
        marks[i] = (byte) (i * 31 + seed);
      }
      MemorySegment.copy(marks, 0, data.memory(), ValueLayout.JAVA_BYTE, 0, marks.length);
      int wrote = page(IoOpcode.WRITE, slba, address);
      int read = page(IoOpcode.READ, slba, address + Pages.PAGE);
      byte[] back = data.memory().asSlice(Pages.PAGE, Pages.PAGE).toArray(ValueLayout.JAVA_BYTE);
      if (wrote != 0 || read != 0 || !Arrays.equals(marks, back)) {
        throw new AssertionError("wrote %Xh, read %Xh".formatted(wrote, read));
      }
      int unmapped = client.unmap(address, 2 * Pages.PAGE);
      if (unmapped != 0) {
        throw new AssertionError("error " + unmapped + " of DMA_UNMAP");
      }
    }
  }

  @Override
  public void close() {
    client.close();
    doorbells.close();
    queues.close();
  }
}
