package io.gpunvme.sim;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.nvme.memory.DmaBuffer;
import io.gpunvme.nvme.spec.AdminOpcode;
import io.gpunvme.nvme.spec.Csts;
import io.gpunvme.nvme.spec.IoOpcode;
import io.gpunvme.nvme.spec.Registers;
import io.gpunvme.nvme.spec.StatusCode;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * What ends commands, while their data is being copied: nothing is written after the end was
 * announced, and nothing is lost that is not said to be.
 */
class RemoteInFlightTest {
  private static final int CODE = 0x7FF;
  private static final int RAM = 1;
  private static final int FILE = 2;
  private static final int COMMANDS = 12;
  private static final int BYTES = 128 << 10;
  private static final int FIT = (int) (BounceRing.BYTES / BYTES);
  private static final byte OLD = 0x55;

  @TempDir Path folder;

  private RawHost host;
  private RawQueue q;
  private DmaBuffer data;
  private DmaBuffer lists;

  @BeforeEach
  void start() {
    SimConfig config =
        SimConfig.builder()
            .workers(0)
            .latencyNanos(0)
            .maxTransfer(0)
            .namespace(NamespaceConfig.ram(8 << 20, 512))
            .namespace(NamespaceConfig.file(folder.resolve("disk"), 8 << 20, 512))
            .build();
    host = RawHost.start(config);
    q = host.createQueue(1, 32, 32);
    data = host.remoteBuffer(COMMANDS * BYTES);
    data.memory().fill(OLD);
    lists = host.buffer(COMMANDS * 4096);
  }

  @AfterEach
  void close() {
    host.gpu.release();
    host.close();
  }

  /** Reads of zeros into the data buffer that do not end before {@code release}. */
  private List<Integer> holdReads(int nsid) {
    host.gpu.hold(512);
    List<Integer> cids = new ArrayList<>();
    for (int c = 0; c < COMMANDS; c++) {
      long at = (long) c * BYTES;
      for (int i = 1; i < BYTES / 4096; i++) {
        lists
            .memory()
            .set(ValueLayout.JAVA_LONG, c * 4096L + (i - 1) * 8L, data.busAddress(at + i * 4096L));
      }
      cids.add(
          q.push(
              RawHost.io(
                  IoOpcode.READ,
                  nsid,
                  0,
                  BYTES / 512,
                  data.busAddress(at),
                  lists.busAddress(c * 4096L))));
    }
    q.ring();
    host.controller.poll();
    host.controller.poll();
    assertThat(host.gpu.underWay()).isEqualTo(nsid == RAM ? COMMANDS : FIT);
    return cids;
  }

  private boolean arrived(int command) {
    byte first = data.memory().get(ValueLayout.JAVA_BYTE, (long) command * BYTES);
    byte last = data.memory().get(ValueLayout.JAVA_BYTE, (command + 1L) * BYTES - 1);
    assertThat(first).as("all or nothing of command " + command).isEqualTo(last);
    return first == 0;
  }

  /** Does something that waits for copies, in a thread of its own, and lets them end meanwhile. */
  private int underWayAfter(Runnable what) throws InterruptedException {
    return underWayAfter(what, () -> true);
  }

  /**
   * As above, but lets them end only when {@code begun}.
   *
   * @return how many copies were under way when it was done
   */
  private int underWayAfter(Runnable what, BooleanSupplier begun) throws InterruptedException {
    AtomicInteger left = new AtomicInteger(-1);
    AtomicReference<Throwable> failure = new AtomicReference<>();
    Thread t =
        new Thread(
            () -> {
              try {
                what.run();
                left.set(host.gpu.underWay());
              } catch (Throwable e) {
                failure.set(e);
              }
            });
    t.start();
    for (int i = 0; (i < 2_000 || !begun.getAsBoolean()) && t.isAlive(); i++) {
      host.gpu.tick();
      Thread.yield();
    }
    host.gpu.release();
    t.join();
    assertThat(failure.get()).isNull();
    return left.get();
  }

  // ---- Abort

  @Test
  void aCommandWhoseCopiesAreUnderWayIsNotAborted() {
    List<Integer> cids = holdReads(RAM);
    assertThat(host.adminOk(RawHost.abort(1, cids.get(0)))).isEqualTo(1);
    assertThat(q.peek()).isNull();
    host.gpu.release();
    host.controller.poll();
    for (int i = 0; i < COMMANDS; i++) {
      assertThat(q.poll()).returns(cids.get(i), c -> c.cid()).returns(0, c -> c.status());
      assertThat(arrived(i)).isTrue();
    }
  }

  @Test
  void aCommandThatWaitsForRoomIsAborted() {
    List<Integer> cids = holdReads(FILE);
    int victim = FIT + 1;
    assertThat(host.adminOk(RawHost.abort(1, cids.get(victim)))).isZero();
    assertThat(q.poll())
        .returns(cids.get(victim), c -> c.cid())
        .returns(StatusCode.ABORT_REQUESTED.status(), c -> c.status() & CODE);
    assertThat(host.adminOk(RawHost.abort(1, cids.get(0)))).as("under way").isEqualTo(1);
    host.gpu.release();
    for (int i = 0; i < 4; i++) {
      host.controller.poll();
    }
    for (int i = 0; i < COMMANDS; i++) {
      if (i != victim) {
        assertThat(q.poll()).returns(cids.get(i), c -> c.cid()).returns(0, c -> c.status());
      }
      assertThat(arrived(i)).isEqualTo(i != victim);
    }
    assertThat(q.poll()).isNull();
  }

  // ---- Delete Submission Queue

  @ParameterizedTest
  @ValueSource(ints = {RAM, FILE})
  void deletingAQueueLetsItsCopiesEnd(int nsid) throws InterruptedException {
    List<Integer> cids = holdReads(nsid);
    host.admin.push(RawHost.deleteSq(1));
    host.admin.ring();
    SimStats stats = host.controller.stats();
    int left =
        underWayAfter(
            host.controller::poll, () -> stats.adminCommands(AdminOpcode.DELETE_IO_SQ) == 1);
    assertThat(left).isZero();
    assertThat(host.admin.poll().status()).isZero();
    int whole = nsid == RAM ? COMMANDS : FIT;
    List<Integer> ended = new ArrayList<>();
    for (RawQueue.Completion c = q.poll(); c != null; c = q.poll()) {
      int i = cids.indexOf(c.cid());
      ended.add(i);
      assertThat(c.status() & CODE)
          .isEqualTo(i < whole ? 0 : StatusCode.ABORTED_SQ_DELETION.status());
      assertThat(arrived(i)).isEqualTo(i < whole);
    }
    assertThat(ended).hasSize(COMMANDS).doesNotHaveDuplicates();
    expectQuiet();
    host.adminOk(RawHost.deleteCq(1));
    expectUsable();
  }

  // ---- resets

  /** How a controller forgets its commands. */
  enum End {
    DISABLE(h -> h.bar.write32(Registers.CC, RawHost.cc().value())),
    FUNCTION_RESET(h -> h.controller.reset()),
    SUBSYSTEM_RESET(h -> h.bar.write32(Registers.NSSR, Registers.NSSR_MAGIC)),
    CLOSE(h -> h.controller.close());

    private final Consumer<RawHost> how;

    End(Consumer<RawHost> how) {
      this.how = how;
    }
  }

  @ParameterizedTest
  @EnumSource(End.class)
  void nothingIsWrittenAfterAReset(End end) throws InterruptedException {
    holdReads(FILE);
    assertThat(underWayAfter(() -> end.how.accept(host))).isZero();
    assertThat(q.peek()).as("completions of forgotten commands").isNull();
    data.memory().fill(OLD);
    expectQuiet();
    if (end != End.CLOSE) {
      host.busMaster(true);
      host.disable();
      host.enable();
      expectUsable();
    }
  }

  /** A controller that stopped for another reason still waits when it is reset. */
  @Test
  void aFatalControllerForgetsItsCopiesToo() throws InterruptedException {
    holdReads(RAM);
    host.controller.faults().add(FaultRule.of(FaultRule.Action.CFS).onIo().nth(1).build());
    q.push(RawHost.sqe(IoOpcode.FLUSH, 1, 0, 0, 0, 0, 0));
    q.ring();
    host.controller.poll();
    assertThat(host.csts().isSet(Csts.CFS)).isTrue();
    assertThat(underWayAfter(() -> host.bar.write32(Registers.CC, RawHost.cc().value()))).isZero();
    data.memory().fill(OLD);
    expectQuiet();
    host.disable();
    host.enable();
    expectUsable();
  }

  // ---- unmapping

  @ParameterizedTest
  @ValueSource(ints = {RAM, FILE})
  void unmappingWaitsForCopiesAndStartsNoOthers(int nsid) throws InterruptedException {
    List<Integer> cids = holdReads(nsid);
    assertThat(underWayAfter(data.range()::close)).isZero();
    assertThat(host.gpu.openPorts()).isZero();
    int whole = nsid == RAM ? COMMANDS : FIT;
    for (int i = 0; i < COMMANDS; i++) {
      assertThat(arrived(i)).isEqualTo(i < whole);
    }
    data.memory().fill(OLD);
    for (int i = 0; i < 4; i++) {
      host.controller.poll();
    }
    for (int i = 0; i < COMMANDS; i++) {
      RawQueue.Completion c = q.poll();
      assertThat(c).as("command " + i).isNotNull();
      assertThat(c.status() & CODE)
          .isEqualTo(cids.indexOf(c.cid()) < whole ? 0 : StatusCode.DATA_TRANSFER_ERROR.status());
    }
    expectQuiet();
    expectUsable();
  }

  /** A fault that changes data once it has arrived finds it gone. */
  @Test
  void memoryThatIsGoneIsNotCorruptedEither() throws InterruptedException {
    host.controller
        .faults()
        .add(FaultRule.of(FaultRule.Action.CORRUPT).amount(9).onIo(IoOpcode.READ).build());
    holdReads(RAM);
    assertThat(underWayAfter(data.range()::close)).isZero();
    data.memory().fill(OLD);
    for (int i = 0; i < COMMANDS; i++) {
      host.controller.poll();
      assertThat(q.poll().status() & CODE).isEqualTo(StatusCode.DATA_TRANSFER_ERROR.status());
    }
    expectQuiet();
  }

  @Test
  void otherRegionsCopiesGoOn() throws InterruptedException {
    DmaBuffer other = host.remoteBuffer(4096);
    holdReads(RAM);
    assertThat(underWayAfter(other.range()::close))
        .as("nothing of its own to wait for")
        .isPositive();
    host.controller.poll();
    for (int i = 0; i < COMMANDS; i++) {
      assertThat(q.poll().status()).isZero();
    }
  }

  /** The completion queue cannot be reached either then, so the controller is fatal. */
  @Test
  void withoutBusMasterNoFurtherCopyIsStarted() {
    holdReads(FILE);
    long started = host.gpu.startedWrites();
    host.busMaster(false);
    host.gpu.release();
    host.controller.poll();
    assertThat(host.csts().isSet(Csts.CFS)).isTrue();
    host.busMaster(true);
    host.controller.poll();
    assertThat(host.gpu.startedWrites()).isEqualTo(started);
    assertThat(arrived(FIT)).isFalse();
    host.disable();
    host.enable();
    expectUsable();
  }

  // ---- faults on top

  @Test
  void faultsAboutCompletionsWaitForTheData() {
    host.controller.faults().add("drop on read count=1");
    host.controller.faults().add("duplicate on read nth=2");
    List<Integer> cids = holdReads(RAM);
    assertThat(q.peek()).isNull();
    host.gpu.release();
    host.controller.poll();
    List<Integer> got = new ArrayList<>();
    for (RawQueue.Completion c = q.poll(); c != null; c = q.poll()) {
      got.add(cids.indexOf(c.cid()));
    }
    assertThat(got).doesNotContain(0).contains(1).hasSize(COMMANDS);
    assertThat(arrived(0)).as("the lost completion's data").isTrue();
    assertThat(host.adminOk(RawHost.abort(1, cids.get(0)))).as("it is over").isEqualTo(1);
  }

  // ---- afterwards

  /** Nothing moves any more. */
  private void expectQuiet() {
    byte[] before = data.memory().toArray(ValueLayout.JAVA_BYTE);
    for (int i = 0; i < 50; i++) {
      host.gpu.tick();
      host.controller.poll();
    }
    assertThat(data.memory().mismatch(MemorySegment.ofArray(before))).isEqualTo(-1);
    assertThat(host.gpu.underWay()).isZero();
  }

  private void expectUsable() {
    RawQueue fresh = host.createRemoteQueue(2, 8, 8);
    DmaBuffer page = host.remoteBuffer(4096);
    page.memory().fill((byte) 7);
    for (int nsid : new int[] {RAM, FILE}) {
      int write = 0;
      for (int opcode : new int[] {IoOpcode.WRITE, IoOpcode.READ}) {
        MemorySegment s = RawHost.io(opcode, nsid, 100, 8, page.busAddress(0), 0);
        write |= host.execute(fresh, s).status();
        byte got = page.memory().get(ValueLayout.JAVA_BYTE, 4095);
        page.memory().fill((byte) 0);
        assertThat(got).isEqualTo((byte) 7);
      }
      page.memory().fill((byte) 7);
      assertThat(write).isZero();
    }
    assertThat(host.controller.stats().adminCommands(AdminOpcode.CREATE_IO_SQ)).isPositive();
  }
}
