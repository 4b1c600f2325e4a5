package io.gpunvme.sim;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.nvme.memory.DmaBuffer;
import io.gpunvme.nvme.spec.AdminOpcode;
import io.gpunvme.nvme.spec.FeatureId;
import io.gpunvme.nvme.spec.HostMemoryBufferEntry;
import io.gpunvme.nvme.spec.IdentifyController;
import io.gpunvme.nvme.spec.IoOpcode;
import io.gpunvme.nvme.spec.Sqe;
import io.gpunvme.nvme.spec.StatusCode;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Data in remote memory: when it moves, what passes by, and what the media have to do with it. */
class RemoteDataTest {
  private static final int CODE = 0x7FF;
  private static final long SIZE = 8 << 20;
  private static final int RAM = 1;
  private static final int FILE = 2;
  private static final int NOTHING = 3;
  private static final MemorySegment FLUSH = RawHost.sqe(IoOpcode.FLUSH, 1, 0, 0, 0, 0, 0);

  @TempDir Path folder;

  private RawHost host;
  private RawQueue q;
  private DmaBuffer remote;
  private DmaBuffer local;

  @BeforeEach
  void start() {
    SimConfig config =
        SimConfig.builder()
            .workers(0)
            .latencyNanos(0)
            .maxTransfer(4 << 20)
            .namespace(NamespaceConfig.ram(SIZE, 512))
            .namespace(NamespaceConfig.file(folder.resolve("disk"), SIZE, 512))
            .namespace(NamespaceConfig.discarding(SIZE, 512))
            .build();
    host = RawHost.start(config);
    q = host.createQueue(1, 64, 64);
    remote = host.remoteBuffer(2 << 20);
    local = host.buffer(64 << 10);
  }

  @AfterEach
  void close() {
    host.gpu.release();
    host.close();
  }

  /** One page of the remote buffer, starting at block {@code 8 * page} of the namespace. */
  private MemorySegment page(int opcode, int nsid, int page) {
    return RawHost.io(opcode, nsid, 8L * page, 8, remote.busAddress(page * 4096L), 0);
  }

  private void fill(DmaBuffer buffer, int salt) {
    MemorySegment m = buffer.memory();
    for (long i = 0; i < m.byteSize(); i += 8) {
      m.set(ValueLayout.JAVA_LONG, i, i * 0x9E3779B97F4A7C15L + salt);
    }
  }

  private void poll(int times) {
    for (int i = 0; i < times; i++) {
      host.gpu.tick();
      host.controller.poll();
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {RAM, FILE})
  void aReadCompletesOnlyWhenItsDataHasArrived(int nsid) {
    fill(remote, 1);
    byte[] expected = remote.memory().asSlice(0, 4096).toArray(ValueLayout.JAVA_BYTE);
    assertThat(host.execute(q, page(IoOpcode.WRITE, nsid, 0)).status()).isZero();
    remote.memory().fill((byte) 0x55);
    host.gpu.hold(512);
    int cid = q.push(page(IoOpcode.READ, nsid, 0));
    q.ring();
    poll(50);
    assertThat(host.gpu.underWay()).isEqualTo(1);
    assertThat(q.peek()).as("completed before its data").isNull();
    assertThat(remote.memory().get(ValueLayout.JAVA_BYTE, 0)).isEqualTo((byte) 0x55);
    host.gpu.release();
    poll(1);
    assertThat(q.poll()).returns(cid, c -> c.cid()).returns(0, c -> c.status());
    assertThat(remote.memory().asSlice(0, 4096).toArray(ValueLayout.JAVA_BYTE)).isEqualTo(expected);
    assertThat(remote.memory().get(ValueLayout.JAVA_BYTE, 4096)).isEqualTo((byte) 0x55);
  }

  @ParameterizedTest
  @ValueSource(ints = {RAM, FILE})
  void aWriteCompletesOnlyWhenItsDataIsStored(int nsid) {
    fill(remote, 2);
    host.gpu.hold(512);
    q.push(page(IoOpcode.WRITE, nsid, 3));
    q.ring();
    poll(50);
    assertThat(q.peek()).isNull();
    host.gpu.release();
    poll(1);
    assertThat(q.poll().status()).isZero();
    assertThat(
            host.execute(q, RawHost.io(IoOpcode.READ, nsid, 24, 8, local.busAddress(0), 0))
                .status())
        .isZero();
    assertThat(MemorySegment.mismatch(local.memory(), 0, 4096, remote.memory(), 12288, 16384))
        .isEqualTo(-1);
  }

  @Test
  void aWorkerDoesNotSleepWhileSomethingIsUnderWay() {
    CommandPipeline pipeline = host.controller.workerFor(1).pipeline();
    assertThat(pipeline.neededIn(host.controller.now())).isEqualTo(Long.MAX_VALUE);
    host.gpu.hold(512);
    q.push(page(IoOpcode.READ, RAM, 0));
    q.ring();
    poll(1);
    assertThat(pipeline.neededIn(host.controller.now())).isZero();
    host.gpu.release();
    poll(1);
    assertThat(pipeline.neededIn(host.controller.now())).isEqualTo(Long.MAX_VALUE);
  }

  @Test
  void hostMemoryIsMovedAtOnce() {
    host.execute(q, page(IoOpcode.READ, RAM, 0));
    q.push(RawHost.io(IoOpcode.READ, RAM, 0, 8, local.busAddress(0), 0));
    q.ring();
    host.controller.poll();
    assertThat(q.poll()).isNotNull();
  }

  @Test
  void othersPassByWhatIsUnderWay() {
    host.gpu.hold(512);
    int slow = q.push(page(IoOpcode.READ, RAM, 0));
    int flush = q.push(FLUSH);
    int fast = q.push(RawHost.io(IoOpcode.READ, RAM, 0, 8, local.busAddress(0), 0));
    q.ring();
    poll(3);
    assertThat(q.poll().cid()).isEqualTo(flush);
    assertThat(q.poll().cid()).isEqualTo(fast);
    assertThat(q.poll()).isNull();
    q.push(page(IoOpcode.READ, RAM, 1), slow);
    q.ring();
    poll(3);
    assertThat(q.poll().status() & CODE)
        .as("its identifier is in use")
        .isEqualTo(StatusCode.COMMAND_ID_CONFLICT.status());
    host.gpu.release();
    poll(2);
    assertThat(q.poll()).returns(slow, c -> c.cid()).returns(0, c -> c.status());
    assertThat(q.poll()).isNull();
  }

  @ParameterizedTest
  @ValueSource(ints = {RAM, FILE})
  void aLongTransferIsOneCommand(int nsid) {
    fill(remote, 3);
    int blocks = (int) (remote.size() / 512);
    DmaBuffer list = host.buffer(8192);
    for (int i = 1; i < remote.size() / 4096; i++) {
      list.memory().set(ValueLayout.JAVA_LONG, (i - 1) * 8L, remote.busAddress(i * 4096L));
    }
    MemorySegment write =
        RawHost.io(IoOpcode.WRITE, nsid, 64, blocks, remote.busAddress(0), list.busAddress(0));
    assertThat(host.execute(q, write).status()).isZero();
    long started = host.gpu.startedReads();
    assertThat(started)
        .as("adjacent pages are one piece")
        .isEqualTo(nsid == RAM ? 1 : remote.size() / BounceRing.CHUNK);
    byte[] expected = remote.memory().toArray(ValueLayout.JAVA_BYTE);
    remote.memory().fill((byte) 0);
    MemorySegment read =
        RawHost.io(IoOpcode.READ, nsid, 64, blocks, remote.busAddress(0), list.busAddress(0));
    assertThat(host.execute(q, read).status()).isZero();
    assertThat(remote.memory().mismatch(MemorySegment.ofArray(expected))).isEqualTo(-1);
    assertThat(host.controller.stats().readBytes()).isEqualTo(remote.size());
    assertThat(host.controller.stats().writtenBytes()).isEqualTo(remote.size());
  }

  /** More data than the ring has room for; what does not fit waits, and nobody is forgotten. */
  @Test
  void commandsWaitForRoomInTheBounceRing() {
    fill(remote, 4);
    byte[] expected = remote.memory().toArray(ValueLayout.JAVA_BYTE);
    DmaBuffer lists = host.buffer(16 * 4096);
    int pages = 32;
    int commands = (int) (remote.size() / (pages * 4096L));
    for (int opcode : new int[] {IoOpcode.WRITE, IoOpcode.READ}) {
      host.gpu.hold(512);
      for (int c = 0; c < commands; c++) {
        long at = (long) c * pages * 4096;
        for (int i = 1; i < pages; i++) {
          long entry = c * 4096L + (i - 1) * 8L;
          lists.memory().set(ValueLayout.JAVA_LONG, entry, remote.busAddress(at + i * 4096L));
        }
        q.push(
            RawHost.io(
                opcode,
                FILE,
                at / 512,
                pages * 8,
                remote.busAddress(at),
                lists.busAddress(c * 4096L)));
      }
      q.ring();
      poll(20);
      assertThat(host.gpu.underWay()).isEqualTo((int) (BounceRing.BYTES / BounceRing.CHUNK));
      assertThat(q.peek()).isNull();
      host.gpu.release();
      poll(4);
      for (int c = 0; c < commands; c++) {
        assertThat(q.poll()).as("command " + c).isNotNull().returns(0, x -> x.status());
      }
      assertThat(q.poll()).isNull();
      if (opcode == IoOpcode.WRITE) {
        remote.memory().fill((byte) 0);
      }
    }
    assertThat(remote.memory().mismatch(MemorySegment.ofArray(expected))).isEqualTo(-1);
  }

  @Test
  void nothingMovesToOrFromAMediumThatKeepsNothing() {
    remote.memory().fill((byte) 0x55);
    assertThat(host.execute(q, page(IoOpcode.READ, NOTHING, 0)).status()).isZero();
    assertThat(host.execute(q, page(IoOpcode.WRITE, NOTHING, 0)).status()).isZero();
    assertThat(host.gpu.startedReads() + host.gpu.startedWrites()).isZero();
    assertThat(host.gpu.openPorts()).isZero();
    assertThat(remote.memory().get(ValueLayout.JAVA_BYTE, 0)).isEqualTo((byte) 0x55);
    assertThat(host.controller.stats().readBytes()).isEqualTo(4096);
  }

  @Test
  void aMediumThatFailsFailsTheCommandAndNoOther() throws IOException {
    try (FileChannel file = FileChannel.open(folder.resolve("disk"), StandardOpenOption.WRITE)) {
      file.truncate(3 * 4096);
    }
    assertThat(host.execute(q, page(IoOpcode.READ, FILE, 2)).status()).isZero();
    assertThat(host.execute(q, page(IoOpcode.READ, FILE, 3)).status() & CODE)
        .isEqualTo(StatusCode.UNRECOVERED_READ_ERROR.status());
    assertThat(host.execute(q, page(IoOpcode.READ, FILE, 2)).status()).isZero();
    assertThat(host.controller.remoteFailure()).isNull();
  }

  @Test
  void smallThingsAreCopiedAtOnce() {
    MemorySegment identify = RawHost.sqe(AdminOpcode.IDENTIFY, 0, remote.busAddress(0), 0, 1, 0, 0);
    host.adminOk(identify);
    assertThat(new IdentifyController(remote.memory()).getInt(IdentifyController.SQES))
        .isEqualTo(0x66);
    fill(remote, 5);
    host.execute(q, page(IoOpcode.WRITE, RAM, 0));
    assertThat(host.execute(q, page(IoOpcode.COMPARE, RAM, 0)).status()).isZero();
    remote.memory().set(ValueLayout.JAVA_BYTE, 4095, (byte) 1);
    assertThat(host.execute(q, page(IoOpcode.COMPARE, RAM, 0)).status() & CODE)
        .isEqualTo(StatusCode.COMPARE_FAILURE.status());
    assertThat(host.gpu.reads()).isEqualTo(2);
    assertThat(host.gpu.writes()).isEqualTo(1);
  }

  @Test
  void aListThatHasChangedIsReadAgain() {
    SimConfig config = SimConfig.builder().workers(0).hmbPreferred(4).hmbMinimum(2).build();
    try (RawHost other = RawHost.start(config)) {
      DmaBuffer list = other.remoteBuffer(4096);
      long bus = list.busAddress(0);
      MemorySegment set =
          RawHost.sqe(AdminOpcode.SET_FEATURES, 0, 0, 0, FeatureId.HOST_MEMORY_BUFFER, 1, 4);
      Sqe.cdw13(set, 0, (int) bus);
      Sqe.cdw14(set, 0, (int) (bus >>> 32));
      Sqe.cdw15(set, 0, 1);
      HostMemoryBufferEntry.put(list.memory(), 0, 0x1000, 4);
      assertThat(other.admin(set).status() & CODE)
          .isEqualTo(StatusCode.DATA_TRANSFER_ERROR.status());
      HostMemoryBufferEntry.put(list.memory(), 0, other.buffer(16384).busAddress(0), 4);
      other.adminOk(set);
    }
  }

  @Test
  void portsAreOpenedWhenNeededAndClosedWithTheMapping() {
    assertThat(host.gpu.openPorts()).isZero();
    host.execute(q, page(IoOpcode.READ, RAM, 0));
    assertThat(host.gpu.openPorts()).as("for data").isEqualTo(1);
    host.execute(q, page(IoOpcode.COMPARE, RAM, 0));
    assertThat(host.gpu.openPorts()).as("and for small things").isEqualTo(2);
    remote.range().close();
    assertThat(host.gpu.openPorts()).isZero();
    assertThat(host.execute(q, FLUSH).status()).isZero();
  }

  @Test
  void nobodyElseIsAskedWhereMemoryIsNotMapped() {
    long end = remote.busAddress(remote.size() - 4096) + 4096;
    for (long bus : new long[] {end, end - 4092}) {
      int status = host.execute(q, RawHost.io(IoOpcode.READ, RAM, 0, 8, bus, 0)).status();
      assertThat(status & CODE).isEqualTo(StatusCode.DATA_TRANSFER_ERROR.status());
    }
    assertThat(host.gpu.openPorts()).isZero();
  }
}
