package io.gpunvme.sim;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.nvme.memory.DmaBuffer;
import io.gpunvme.nvme.spec.AdminOpcode;
import io.gpunvme.nvme.spec.Cc;
import io.gpunvme.nvme.spec.FeatureId;
import io.gpunvme.nvme.spec.IoOpcode;
import io.gpunvme.nvme.spec.Prp;
import io.gpunvme.nvme.spec.Registers;
import io.gpunvme.nvme.spec.Status;
import io.gpunvme.nvme.spec.StatusCode;
import java.lang.foreign.MemorySegment;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Creating and deleting queues. */
class QueueAdminTest {
  private static final int PC = 1;
  private static final int IEN = 2;

  private RawHost host =
      RawHost.start(SimConfig.builder().workers(0).latencyNanos(0).mqes(63).ioQueues(4).build());
  private final DmaBuffer ring = host.buffer(64 * 1024);

  @AfterEach
  void close() {
    host.close();
  }

  private void expect(StatusCode code, MemorySegment sqe) {
    int status = host.admin(sqe).status();
    assertThat(Status.describe(status & ~Status.MORE)).isEqualTo(Status.describe(code.dnr()));
  }

  private MemorySegment cq(int qid, int size) {
    return RawHost.createCq(qid, size, ring.busAddress(0), PC, 0);
  }

  private MemorySegment sq(int qid, int size, int cqid) {
    return RawHost.createSq(qid, size, ring.busAddress(8192), PC, cqid);
  }

  @Test
  void completionQueuesNeedAFreeIdentifierInRange() {
    expect(StatusCode.INVALID_QUEUE_IDENTIFIER, cq(0, 8));
    expect(StatusCode.INVALID_QUEUE_IDENTIFIER, cq(5, 8));
    expect(StatusCode.INVALID_QUEUE_IDENTIFIER, cq(0xFFFF, 8));
    host.adminOk(cq(4, 8));
    expect(StatusCode.INVALID_QUEUE_IDENTIFIER, cq(4, 8));
  }

  @Test
  void submissionQueuesNeedAFreeIdentifierInRange() {
    host.adminOk(cq(1, 8));
    expect(StatusCode.INVALID_QUEUE_IDENTIFIER, sq(0, 8, 1));
    expect(StatusCode.INVALID_QUEUE_IDENTIFIER, sq(5, 8, 1));
    host.adminOk(sq(2, 8, 1));
    expect(StatusCode.INVALID_QUEUE_IDENTIFIER, sq(2, 8, 1));
  }

  @Test
  void submissionQueuesNeedACompletionQueue() {
    expect(StatusCode.COMPLETION_QUEUE_INVALID, sq(1, 8, 1));
    expect(StatusCode.INVALID_QUEUE_IDENTIFIER, sq(1, 8, 0));
    expect(StatusCode.INVALID_QUEUE_IDENTIFIER, sq(1, 8, 5));
    expect(StatusCode.INVALID_QUEUE_IDENTIFIER, sq(1, 8, 0xFFFF));
  }

  @Test
  void sizesGoFromTwoToMqes() {
    expect(StatusCode.INVALID_QUEUE_SIZE, cq(1, 1));
    expect(StatusCode.INVALID_QUEUE_SIZE, cq(1, 65));
    expect(StatusCode.INVALID_QUEUE_SIZE, cq(1, 65536));
    host.adminOk(cq(1, 64));
    expect(StatusCode.INVALID_QUEUE_SIZE, sq(1, 1, 1));
    expect(StatusCode.INVALID_QUEUE_SIZE, sq(1, 65, 1));
    host.adminOk(sq(1, 2, 1));
  }

  @Test
  void entrySizesMustBeSetInCc() {
    host.bar.write32(Registers.CC, new Cc(0).with(Cc.EN, true).value());
    expect(StatusCode.INVALID_QUEUE_SIZE, cq(1, 8));
    host.bar.write32(Registers.CC, new Cc(0).with(Cc.EN, true).with(Cc.IOCQES, 4).value());
    host.adminOk(cq(1, 8));
    expect(StatusCode.INVALID_QUEUE_SIZE, sq(1, 8, 1));
  }

  @Test
  void memoryMustBeAlignedAndMapped() {
    expect(StatusCode.PRP_OFFSET_INVALID, RawHost.createCq(1, 8, ring.busAddress(16), PC, 0));
    assertThat(host.admin(RawHost.createCq(1, 8, 0x1000, PC, 0)).status() & ~Status.MORE)
        .isEqualTo(StatusCode.DATA_TRANSFER_ERROR.status());
    long lastPage = ring.busAddress(ring.size() - 4096);
    host.adminOk(RawHost.createCq(1, 64, lastPage, PC, 0));
    DmaBuffer page = host.buffer(4096);
    host.adminOk(RawHost.createSq(1, 64, page.busAddress(0), PC, 1));
    expect(StatusCode.PRP_OFFSET_INVALID, RawHost.createSq(2, 8, page.busAddress(64), PC, 1));
  }

  @Test
  void allOfAQueueMustBeMapped() {
    host.close();
    host = RawHost.start(SimConfig.builder().workers(0).latencyNanos(0).build());
    DmaBuffer pages = host.buffer(3 * 4096);
    int error = StatusCode.DATA_TRANSFER_ERROR.status();
    long last = pages.busAddress(2 * 4096);
    assertThat(host.admin(RawHost.createCq(1, 257, last, PC, 0)).status() & 0x7FF).isEqualTo(error);
    host.adminOk(RawHost.createCq(1, 256, last, PC, 0));
    long first = pages.busAddress(0);
    assertThat(host.admin(RawHost.createSq(1, 193, first, PC, 1)).status() & 0x7FF)
        .isEqualTo(error);
    host.adminOk(RawHost.createSq(1, 192, first, PC, 1));
  }

  @Test
  void contiguousQueuesAreRequired() {
    expect(StatusCode.INVALID_FIELD, RawHost.createCq(1, 8, ring.busAddress(0), 0, 0));
    host.adminOk(cq(1, 8));
    expect(StatusCode.INVALID_FIELD, RawHost.createSq(1, 8, ring.busAddress(0), 0, 1));
  }

  @Test
  void vectorsMustExist() {
    expect(
        StatusCode.INVALID_INTERRUPT_VECTOR,
        RawHost.createCq(1, 8, ring.busAddress(0), PC | IEN, 65));
    expect(
        StatusCode.INVALID_INTERRUPT_VECTOR,
        RawHost.createCq(1, 8, ring.busAddress(0), PC, 0xFFFF));
    expect(
        StatusCode.INVALID_INTERRUPT_VECTOR,
        RawHost.createCq(1, 8, ring.busAddress(0), PC | IEN, 1));
    host.adminOk(RawHost.createCq(1, 8, ring.busAddress(0), PC | IEN, 0));
  }

  @Test
  void withoutMessagesAVectorThatExistsIsTakenIfNotStrict() {
    host.close();
    host = RawHost.start(SimConfig.builder().workers(0).latencyNanos(0).strict(false).build());
    DmaBuffer page = host.buffer(4096);
    expect(
        StatusCode.INVALID_INTERRUPT_VECTOR,
        RawHost.createCq(1, 8, page.busAddress(0), PC | IEN, 65));
    host.adminOk(RawHost.createCq(1, 8, page.busAddress(0), PC | IEN, 1));
  }

  @Test
  void deletionFindsWhatIsThere() {
    expect(StatusCode.INVALID_QUEUE_IDENTIFIER, RawHost.deleteSq(0));
    expect(StatusCode.INVALID_QUEUE_IDENTIFIER, RawHost.deleteSq(1));
    expect(StatusCode.INVALID_QUEUE_IDENTIFIER, RawHost.deleteSq(0xFFFF));
    expect(StatusCode.INVALID_QUEUE_IDENTIFIER, RawHost.deleteCq(0));
    expect(StatusCode.INVALID_QUEUE_IDENTIFIER, RawHost.deleteCq(1));
    expect(StatusCode.INVALID_QUEUE_IDENTIFIER, RawHost.deleteCq(0xFFFF));
  }

  @Test
  void completionQueuesOutliveTheirSubmissionQueues() {
    host.adminOk(cq(1, 8));
    host.adminOk(sq(1, 8, 1));
    host.adminOk(sq(2, 8, 1));
    expect(StatusCode.INVALID_QUEUE_DELETION, RawHost.deleteCq(1));
    host.adminOk(RawHost.deleteSq(1));
    expect(StatusCode.INVALID_QUEUE_DELETION, RawHost.deleteCq(1));
    host.adminOk(RawHost.deleteSq(2));
    host.adminOk(RawHost.deleteCq(1));
    expect(StatusCode.INVALID_QUEUE_IDENTIFIER, RawHost.deleteCq(1));
  }

  @Test
  void whatWasGrantedIsTheLimit() {
    MemorySegment grant =
        RawHost.sqe(AdminOpcode.SET_FEATURES, 0, 0, 0, FeatureId.NUMBER_OF_QUEUES, 1 | 2 << 16, 0);
    assertThat(host.adminOk(grant)).isEqualTo(1 | 2 << 16);
    host.adminOk(cq(3, 8));
    expect(StatusCode.INVALID_QUEUE_IDENTIFIER, cq(4, 8));
    host.adminOk(sq(2, 8, 3));
    expect(StatusCode.INVALID_QUEUE_IDENTIFIER, sq(3, 8, 3));
    expect(StatusCode.COMMAND_SEQUENCE_ERROR, grant);
    host.disable();
    host.enable();
    host.adminOk(cq(4, 8));
  }

  @Test
  void severalSubmissionQueuesShareACompletionQueue() {
    RawQueue first = host.createQueue(1, 8, 32);
    RawQueue second = host.queueMemory(2, 4, 2);
    host.adminOk(RawHost.createSq(2, 4, second.sq.busAddress(0), PC, 1));
    for (int i = 0; i < 100; i++) {
      RawQueue from = i % 3 == 0 ? second : first;
      int cid = from.push(RawHost.sqe(IoOpcode.FLUSH, 1, 0, 0, 0, 0, 0));
      from.ring();
      RawQueue.Completion c = host.next(first);
      assertThat(c).isEqualTo(new RawQueue.Completion(0, 0, from.tail, from.qid, cid, 0));
    }
  }

  @Test
  void queuesMayBeScattered() {
    host.close();
    SimConfig scattered =
        SimConfig.builder().workers(0).latencyNanos(0).mqes(65535).contiguousQueues(false).build();
    host = RawHost.start(scattered);
    int size = 65536;
    int pages = size * 64 / 4096;
    // 1024 pages need a list of 512 entries of which the last leads to the second list.
    DmaBuffer entries = host.buffer(size * 64L);
    DmaBuffer lists = host.buffer(3 * 4096);
    for (int i = 0; i < pages; i++) {
      long at = i < 511 ? i * 8L : i < 1022 ? 4096 + (i - 511) * 8L : 8192 + (i - 1022) * 8L;
      // Pages in reverse order.
      Prp.put(lists.memory(), at, entries.busAddress((pages - 1L - i) * 4096));
    }
    Prp.put(lists.memory(), 4088, lists.busAddress(4096));
    Prp.put(lists.memory(), 8184, lists.busAddress(8192));
    RawQueue q = host.queueMemory(1, size, 16);
    host.adminOk(RawHost.createCq(1, 16, q.cq.busAddress(0), PC, 0));
    host.adminOk(RawHost.createSq(1, size, lists.busAddress(0), 0, 1));
    MemorySegment flush = RawHost.sqe(IoOpcode.FLUSH, 1, 0, 0, 0, 0, 0);
    for (int i = 0; i < size + 200; i++) {
      int slot = q.tail;
      int cid = q.push(flush);
      long page = pages - 1L - slot * 64L / 4096;
      MemorySegment.copy(
          q.sq.memory(), slot * 64L, entries.memory(), page * 4096 + slot * 64L % 4096, 64);
      q.sq.memory().asSlice(slot * 64L, 64).fill((byte) 0xFF);
      q.ring();
      host.poll();
      assertThat(q.poll()).returns(cid, RawQueue.Completion::cid).returns(0, c -> c.status());
    }
  }

  @Test
  void aScatteredQueuesListMayFillItsPageExactly() {
    host.close();
    SimConfig scattered =
        SimConfig.builder().workers(0).latencyNanos(0).mqes(65535).contiguousQueues(false).build();
    host = RawHost.start(scattered);
    DmaBuffer list = host.buffer(4096);
    DmaBuffer page = host.buffer(4096);
    for (int i = 0; i < 512; i++) {
      Prp.put(list.memory(), i * 8L, page.busAddress(0));
    }
    RawQueue q = host.queueMemory(1, 2, 4);
    host.adminOk(RawHost.createCq(1, 4, q.cq.busAddress(0), PC, 0));
    host.adminOk(RawHost.createSq(1, 512 * 64, list.busAddress(0), 0, 1));
  }

  @Test
  void aScatteredQueuesListMustBeRight() {
    host.close();
    host = RawHost.start(SimConfig.builder().workers(0).contiguousQueues(false).build());
    DmaBuffer list = host.buffer(4096);
    host.adminOk(RawHost.createCq(1, 4, host.buffer(4096).busAddress(0), PC, 0));
    expect(StatusCode.PRP_OFFSET_INVALID, RawHost.createSq(1, 8, list.busAddress(8), 0, 1));
    Prp.put(list.memory(), 0, list.busAddress(64));
    expect(StatusCode.PRP_OFFSET_INVALID, RawHost.createSq(1, 8, list.busAddress(0), 0, 1));
    Prp.put(list.memory(), 0, 0x7000);
    assertThat(host.admin(RawHost.createSq(1, 8, list.busAddress(0), 0, 1)).status())
        .satisfies(s -> assertThat(Status.sc(s)).isEqualTo(StatusCode.DATA_TRANSFER_ERROR.sc()));
    assertThat(host.admin(RawHost.createSq(1, 8, 0x7000, 0, 1)).status())
        .satisfies(s -> assertThat(Status.sc(s)).isEqualTo(StatusCode.DATA_TRANSFER_ERROR.sc()));
  }
}
