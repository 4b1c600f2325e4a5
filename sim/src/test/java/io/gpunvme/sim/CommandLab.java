package io.gpunvme.sim;

import io.gpunvme.nvme.memory.DmaBuffer;
import io.gpunvme.nvme.spec.AdminOpcode;
import io.gpunvme.nvme.spec.Cns;
import io.gpunvme.nvme.spec.DsmRange;
import io.gpunvme.nvme.spec.FeatureId;
import io.gpunvme.nvme.spec.HostMemoryBufferEntry;
import io.gpunvme.nvme.spec.IdentifyNamespace;
import io.gpunvme.nvme.spec.IoOpcode;
import io.gpunvme.nvme.spec.LogId;
import io.gpunvme.nvme.spec.Sqe;
import io.gpunvme.nvme.spec.Status;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.function.LongSupplier;
import java.util.function.UnaryOperator;

/**
 * A running controller that the test polls, one I/O queue, memory for data, and one valid example
 * of every command. NSID 1 is an ordinary namespace of 2048 blocks, 2 is write protected, 3 does
 * not exist, 4 is the last valid identifier. MDTS is 64 KiB.
 */
final class CommandLab implements AutoCloseable {
  static final int INACTIVE = 3;
  static final int NN = 4;
  static final long BLOCKS = 2048;
  static final long MDTS = 64 << 10;
  static final int QUEUES = 4;
  static final int MQES = 31;
  static final int PAGE = 4096;

  /** Not mapped: nobody maps the first page. */
  static final long NOWHERE = 0x1000;

  final RawHost host;
  final RawQueue queue;
  final DmaBuffer data;
  final DmaBuffer list;

  CommandLab(UnaryOperator<SimConfigBuilder> variation) {
    this(variation, System::nanoTime);
  }

  CommandLab(UnaryOperator<SimConfigBuilder> variation, LongSupplier clock) {
    SimConfigBuilder b =
        SimConfig.builder()
            .workers(0)
            .latencyNanos(0)
            .namespace(NamespaceConfig.ram(BLOCKS * 512, 512))
            .namespace(NamespaceConfig.ram(BLOCKS * 512, 512).asReadOnly())
            .maxNamespaces(NN)
            .maxTransfer(MDTS)
            .mqes(MQES)
            .ioQueues(QUEUES)
            .vectors(4)
            .namespaceManagement(true)
            .keepAlive(true)
            .hmbPreferred(4)
            .hmbMinimum(2)
            .aerl(1);
    host = RawHost.attach(SimulatedController.create(variation.apply(b).build(), clock));
    host.enable();
    queue = host.createQueue(1, 16, 16);
    data = host.buffer(128 << 10);
    list = host.buffer(4 * PAGE);
  }

  CommandLab() {
    this(b -> b);
  }

  /** Runs a command; the status without the More bit. */
  int status(boolean admin, MemorySegment sqe) {
    return run(admin, sqe).status() & ~Status.MORE;
  }

  RawQueue.Completion run(boolean admin, MemorySegment sqe) {
    return host.execute(admin ? host.admin : queue, sqe);
  }

  /** Runs an I/O command that must succeed. */
  RawQueue.Completion ioOk(MemorySegment sqe) {
    RawQueue.Completion c = run(false, sqe);
    if (c.status() != 0) {
      throw new AssertionError(Sqe.describe(sqe, 0) + ": " + Status.describe(c.status()));
    }
    return c;
  }

  long bus() {
    return data.busAddress(0);
  }

  MemorySegment memory() {
    return data.memory();
  }

  /** Fills the data buffer with bytes that depend on position and {@code salt}. */
  void pattern(int salt) {
    MemorySegment m = memory();
    for (long i = 0; i < m.byteSize(); i++) {
      m.set(ValueLayout.JAVA_BYTE, i, (byte) (i * 31 + (i >> 9) + salt));
    }
  }

  // ---- one valid example of every command

  private MemorySegment withData(int opcode, int nsid, int cdw10, int cdw11, int cdw12) {
    return RawHost.sqe(opcode, nsid, bus(), 0, cdw10, cdw11, cdw12);
  }

  private static MemorySegment plain(int opcode, int nsid, int cdw10, int cdw11) {
    return RawHost.sqe(opcode, nsid, 0, 0, cdw10, cdw11, 0);
  }

  MemorySegment identify(int cns, int nsid) {
    return withData(AdminOpcode.IDENTIFY, nsid, cns, 0, 0);
  }

  MemorySegment identifyController() {
    return identify(Cns.CONTROLLER, 0);
  }

  /** {@code bytes} from the start of a log page. */
  MemorySegment getLog(int id, int bytes) {
    int numd = bytes / 4 - 1;
    return withData(AdminOpcode.GET_LOG_PAGE, Sqe.NSID_ALL, id | numd << 16, numd >>> 16, 0);
  }

  MemorySegment getErrorLog() {
    return getLog(LogId.ERROR, 64);
  }

  MemorySegment getFeature(int fid, int select) {
    return plain(AdminOpcode.GET_FEATURES, 0, fid | select << 8, 0);
  }

  MemorySegment setFeature(int fid, int value) {
    return plain(AdminOpcode.SET_FEATURES, 0, fid, value);
  }

  MemorySegment getTimestamp() {
    return withData(AdminOpcode.GET_FEATURES, 0, FeatureId.TIMESTAMP, 0, 0);
  }

  MemorySegment setTimestamp() {
    return withData(AdminOpcode.SET_FEATURES, 0, FeatureId.TIMESTAMP, 0, 0);
  }

  /** A list of one 16 KiB buffer, enabled. */
  MemorySegment setHmb() {
    HostMemoryBufferEntry.put(list.memory(), 0, bus(), 4);
    MemorySegment s =
        RawHost.sqe(AdminOpcode.SET_FEATURES, 0, 0, 0, FeatureId.HOST_MEMORY_BUFFER, 1, 4);
    Sqe.cdw13(s, 0, (int) list.busAddress(0));
    Sqe.cdw14(s, 0, (int) (list.busAddress(0) >>> 32));
    Sqe.cdw15(s, 0, 1);
    return s;
  }

  MemorySegment createCq() {
    return RawHost.createCq(2, 8, bus(), 1, 0);
  }

  MemorySegment createSq() {
    return RawHost.createSq(2, 8, bus(), 1, 1);
  }

  MemorySegment abort() {
    return RawHost.abort(1, 0x7777);
  }

  MemorySegment asyncEventRequest() {
    return plain(AdminOpcode.ASYNC_EVENT_REQUEST, 0, 0, 0);
  }

  MemorySegment keepAlive() {
    return plain(AdminOpcode.KEEP_ALIVE, 0, 0, 0);
  }

  MemorySegment format() {
    return plain(AdminOpcode.FORMAT_NVM, 1, 0, 0);
  }

  /** Both pages in {@link #list}. */
  MemorySegment doorbellBuffer() {
    return RawHost.sqe(
        AdminOpcode.DOORBELL_BUFFER_CONFIG, 0, list.busAddress(0), list.busAddress(PAGE), 0, 0, 0);
  }

  /** Asks for 8 blocks of 512 bytes. */
  MemorySegment createNamespace() {
    memory().asSlice(0, PAGE).fill((byte) 0);
    new IdentifyNamespace(memory()).set(IdentifyNamespace.NSZE, 8).set(IdentifyNamespace.NCAP, 8);
    return withData(AdminOpcode.NS_MANAGEMENT, 0, 0, 0, 0);
  }

  MemorySegment deleteNamespace(int nsid) {
    return plain(AdminOpcode.NS_MANAGEMENT, nsid, 1, 0);
  }

  /** Attaches (0) or detaches (1). */
  MemorySegment attach(int nsid, int select) {
    memory().asSlice(0, PAGE).fill((byte) 0);
    memory().set(ValueLayout.JAVA_SHORT, 0, (short) 1);
    memory().set(ValueLayout.JAVA_SHORT, 2, (short) IdentifyData.CONTROLLER_ID);
    return withData(AdminOpcode.NS_ATTACHMENT, nsid, select, 0, 0);
  }

  MemorySegment flush() {
    return plain(IoOpcode.FLUSH, 1, 0, 0);
  }

  /** Read, Write or Compare of 8 blocks from block 16. */
  MemorySegment transfer(int opcode) {
    return RawHost.io(opcode, 1, 16, 8, bus(), 0);
  }

  /** Write Zeroes, Verify or Write Uncorrectable of 8 blocks from block 16. */
  MemorySegment range(int opcode) {
    return RawHost.io(opcode, 1, 16, 8, 0, 0);
  }

  /** Deallocates 8 blocks from block 16 and 8 from 32. */
  MemorySegment dsm() {
    DsmRange.put(memory(), 0, 0, 8, 16);
    DsmRange.put(memory(), 16, 0, 8, 32);
    return withData(IoOpcode.DATASET_MANAGEMENT, 1, 1, DsmRange.AD, 0);
  }

  /** Copies 8 blocks from 16 and 4 blocks from 32 to block 100. */
  MemorySegment copy() {
    memory().asSlice(0, 64).fill((byte) 0);
    copySource(0, 16, 8);
    copySource(1, 32, 4);
    return withData(IoOpcode.COPY, 1, 100, 0, 1);
  }

  /** Writes a source range entry of Copy to the data buffer. */
  void copySource(int index, long slba, int blocks) {
    memory().set(ValueLayout.JAVA_LONG, index * 32L + 8, slba);
    memory().set(ValueLayout.JAVA_SHORT, index * 32L + 16, (short) (blocks - 1));
  }

  @Override
  public void close() {
    host.close();
  }
}
