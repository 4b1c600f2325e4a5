package io.gpunvme.sim.serve;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.ffi.Errno;
import io.gpunvme.ffi.EventFd;
import io.gpunvme.nvme.pci.ConfigSpace;
import io.gpunvme.nvme.spec.IoOpcode;
import io.gpunvme.nvme.vfiouser.Command;
import io.gpunvme.nvme.vfiouser.Message;
import io.gpunvme.nvme.vfiouser.Protocol;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** DEVICE_GET_IRQ_INFO, DEVICE_SET_IRQS, and interrupts that arrive. */
class VfioUserIrqsTest extends ServerRig {
  private static final int TRIGGER = Protocol.SET_TRIGGER;
  private static final int EVENT = Protocol.SET_EVENTFD | TRIGGER;
  private static final int MSIX = Protocol.IRQ_MSIX;
  private static final int INTX = Protocol.IRQ_INTX;
  private static final int MSIX_CONTROL = 0x52;
  private static final int CQ_INTERRUPTS = 2;
  private static final int INTERRUPT_STATUS = 1 << 3;

  private EventFd first;
  private EventFd second;

  @BeforeEach
  void makeEvents() {
    first = EventFd.create();
    second = EventFd.create();
  }

  @Override
  @AfterEach
  void nothingIsLeft() {
    first.close();
    second.close();
    super.nothingIsLeft();
  }

  private int set(ByteBuffer asked, int... descriptors) {
    return client.errno(Command.DEVICE_SET_IRQS, asked, descriptors);
  }

  /** What a counter holds, without waiting for anything. */
  private static long count(EventFd event) {
    try {
      return Files.readAllLines(Path.of("/proc/self/fdinfo/" + event.fd())).stream()
          .filter(l -> l.startsWith("eventfd-count:"))
          .mapToLong(l -> Long.parseLong(l.substring("eventfd-count:".length()).strip(), 16))
          .sum();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static void awaitCount(EventFd event, long least) {
    long end = System.nanoTime() + 10_000_000_000L;
    while (count(event) < least) {
      assertThat(System.nanoTime()).as("waiting for %d events", least).isLessThan(end);
      Thread.onSpinWait();
    }
  }

  // ---- what there is

  @ParameterizedTest
  @CsvSource({"0, 7, 1", "1, 1, 0", "3, 1, 1", "4, 1, 1"})
  void types(int index, int flags, int count) {
    try (Message answer =
        client.call(Command.DEVICE_GET_IRQ_INFO, RawClient.ints(16, 0, index, 0))) {
      assertThat(answer.payload()).isEqualTo(RawClient.ints(16, flags, index, count));
    }
  }

  @Test
  void thereAreAsManyVectorsAsTheTableHas() {
    try (Message answer =
        client.call(Command.DEVICE_GET_IRQ_INFO, RawClient.ints(16, 0, MSIX, 0))) {
      assertThat(answer.payload().getInt(12)).isEqualTo(controller.simConfig().vectors());
    }
  }

  @ParameterizedTest
  @CsvSource({"15, 0", "0, 0", "16, 5", "16, -1"})
  void refusesWhatIsNot(int argsz, int index) {
    assertThat(client.errno(Command.DEVICE_GET_IRQ_INFO, RawClient.ints(argsz, 0, index, 0)))
        .isEqualTo(Errno.EINVAL);
    assertThat(client.errno(Command.DEVICE_GET_IRQ_INFO, RawClient.ints(16, 0, 0)))
        .isEqualTo(Errno.EINVAL);
  }

  // ---- what is set

  @ParameterizedTest
  @CsvSource({
    "0x20, 2, 0, 1", "0x04, 2, 0, 1", "0x27, 2, 0, 1", "0x64, 2, 0, 1", "0x3C, 2, 0, 1",
    "0x124, 2, 0, 1", "0x24, 5, 0, 1", "0x24, -1, 0, 1", "0x24, 1, 0, 1", "0x24, 0, 1, 1",
    "0x24, 0, 0, 2", "0x24, 2, 0, 100000", "0x24, 2, 100000, 1", "0x24, 2, -1, 2", "0x24, 2, 1, -1",
    "0x22, 2, 0, 1", "0x21, 2, 0, 100000"
  })
  void refusesWhatMakesNoSense(String flags, int index, int start, int count) {
    assertThat(set(RawClient.irqs(Integer.decode(flags), index, start, count)))
        .isEqualTo(Errno.EINVAL);
  }

  @Test
  void argszIsAtLeastTheSize() {
    assertThat(set(RawClient.ints(19, EVENT, MSIX, 0, 0))).isEqualTo(Errno.EINVAL);
    assertThat(set(RawClient.ints(20, EVENT, MSIX, 0))).isEqualTo(Errno.EINVAL);
    assertThat(set(RawClient.ints(-1, EVENT, MSIX, 0, 1), first.fd())).isZero();
  }

  @Test
  void asManyDescriptorsAsVectors() {
    assertThat(set(RawClient.irqs(EVENT, MSIX, 0, 2), first.fd())).isEqualTo(Errno.EINVAL);
    assertThat(set(RawClient.irqs(EVENT, MSIX, 0, 1), first.fd(), second.fd()))
        .isEqualTo(Errno.EINVAL);
    assertThat(set(RawClient.irqs(EVENT, MSIX, 0, 0), first.fd())).isEqualTo(Errno.EINVAL);
    assertThat(set(RawClient.irqs(Protocol.SET_NONE | TRIGGER, MSIX, 0, 1), first.fd()))
        .isEqualTo(Errno.EINVAL);
    assertThat(set(RawClient.irqs(Protocol.SET_BOOL | TRIGGER, MSIX, 0, 1, (byte) 1), first.fd()))
        .isEqualTo(Errno.EINVAL);
    assertThat(set(RawClient.irqs(EVENT, MSIX, 0, 2), first.fd(), second.fd())).isZero();
  }

  @Test
  void onlyEventsAreSignalled() {
    try (Pages pages = Pages.allocate(Pages.PAGE)) {
      assertThat(set(RawClient.irqs(EVENT, MSIX, 0, 1), pages.fd())).isEqualTo(Errno.EINVAL);
      assertThat(set(RawClient.irqs(EVENT, MSIX, 0, 2), first.fd(), pages.fd()))
          .isEqualTo(Errno.EINVAL);
    }
    assertThat(set(RawClient.irqs(Protocol.SET_NONE | TRIGGER, MSIX, 0, 1))).isZero();
    assertThat(count(first)).as("nothing of a refused message counts").isZero();
  }

  @Test
  void eventsAreForTriggersOnly() {
    for (int action : new int[] {Protocol.SET_MASK, Protocol.SET_UNMASK}) {
      assertThat(set(RawClient.irqs(Protocol.SET_EVENTFD | action, INTX, 0, 1), first.fd()))
          .isEqualTo(Errno.EOPNOTSUPP);
    }
  }

  @Test
  void theClientCanTriggerThemItself() {
    assertThat(set(RawClient.irqs(EVENT, MSIX, 1, 2), first.fd(), second.fd())).isZero();
    assertThat(set(RawClient.irqs(Protocol.SET_NONE | TRIGGER, MSIX, 1, 1))).isZero();
    assertThat(count(first)).isEqualTo(1);
    assertThat(set(RawClient.irqs(Protocol.SET_BOOL | TRIGGER, MSIX, 0, 3, new byte[] {1, 0, 1})))
        .isZero();
    assertThat(count(first)).isEqualTo(1);
    assertThat(count(second)).isEqualTo(1);
    assertThat(set(RawClient.irqs(EVENT, MSIX, 1, 1))).as("without descriptors: off").isZero();
    assertThat(set(RawClient.irqs(Protocol.SET_NONE | TRIGGER, MSIX, 0, 3))).isZero();
    assertThat(count(first)).isEqualTo(1);
    assertThat(count(second)).isEqualTo(2);
    assertThat(set(RawClient.irqs(Protocol.SET_NONE | TRIGGER, MSIX, 0, 0))).as("all off").isZero();
    assertThat(set(RawClient.irqs(Protocol.SET_NONE | TRIGGER, MSIX, 0, 3))).isZero();
    assertThat(count(second)).isEqualTo(2);
  }

  // ---- what arrives

  private void enableMessages() {
    client.write(Protocol.REGION_CONFIG, MSIX_CONTROL + 1, (byte) 0x80);
  }

  @Test
  void messages() {
    enableMessages();
    assertThat(set(RawClient.irqs(EVENT, MSIX, 0, 1), first.fd())).isZero();
    try (RawNvme nvme = RawNvme.start(client, 0, CQ_INTERRUPTS)) {
      // Those of the admin queue, too, which may come after their completions: two made the I/O
      // queues.
      int admin = 2;
      awaitCount(first, admin);
      for (int i = 1; i <= 50; i++) {
        nvme.await(RawNvme.IO, flush(nvme));
        awaitCount(first, admin + i);
      }
      assertThat(count(first)).isEqualTo(admin + 50);
      assertThat(count(second)).isZero();
    }
  }

  @Test
  void aMessageWaitsForItsEvent() {
    enableMessages();
    try (RawNvme nvme = RawNvme.start(client, 0, CQ_INTERRUPTS)) {
      nvme.await(RawNvme.IO, flush(nvme));
      assertThat(set(RawClient.irqs(EVENT, MSIX, 0, 1), first.fd())).isZero();
      awaitCount(first, 1);
    }
  }

  @Test
  void eventsGivenWhileMemorySpaceIsOffArriveAfterwards() {
    client.write(Protocol.REGION_CONFIG, ConfigSpace.COMMAND, (byte) 0, (byte) 0);
    enableMessages();
    assertThat(set(RawClient.irqs(EVENT, MSIX, 0, 1), first.fd())).isZero();
    try (RawNvme nvme = RawNvme.start(client, 0, CQ_INTERRUPTS)) {
      nvme.await(RawNvme.IO, flush(nvme));
      awaitCount(first, 1);
    }
  }

  @Test
  void eventsOutliveAReset() {
    assertThat(set(RawClient.irqs(EVENT, MSIX, 0, 1), first.fd())).isZero();
    assertThat(client.errno(Command.DEVICE_RESET, Protocol.payload(0))).isZero();
    enableMessages();
    try (RawNvme nvme = RawNvme.start(client, 0, CQ_INTERRUPTS)) {
      nvme.await(RawNvme.IO, flush(nvme));
      awaitCount(first, 1);
    }
  }

  @Test
  void theLineIsMaskedUntilTheClientUnmasksIt() {
    assertThat(set(RawClient.irqs(EVENT, INTX, 0, 1), first.fd())).isZero();
    try (RawNvme nvme = RawNvme.start(client, 0, CQ_INTERRUPTS)) {
      // Each completion is left until the line is seen: one that is consumed at once need not
      // raise it.
      int flush = flush(nvme);
      awaitCount(first, 1);
      consume(nvme, flush);
      flush = flush(nvme);
      awaitPending(nvme, true);
      assertThat(count(first)).as("masked since the first one").isEqualTo(1);
      consume(nvme, flush);
      // The line is low: unmasking signals nothing by itself.
      assertThat(set(RawClient.irqs(Protocol.SET_NONE | Protocol.SET_UNMASK, INTX, 0, 1))).isZero();
      assertThat(count(first)).isEqualTo(1);
      flush = flush(nvme);
      awaitCount(first, 2);
      consume(nvme, flush);
      assertThat(set(RawClient.irqs(Protocol.SET_NONE | Protocol.SET_MASK, INTX, 0, 1))).isZero();
      flush(nvme);
      awaitPending(nvme, true);
      assertThat(count(first)).isEqualTo(2);
      // Asserted: unmasking signals at once.
      assertThat(set(RawClient.irqs(Protocol.SET_NONE | Protocol.SET_UNMASK, INTX, 0, 1))).isZero();
      awaitCount(first, 3);
    }
  }

  private static int flush(RawNvme nvme) {
    return nvme.submit(RawNvme.IO, IoOpcode.FLUSH, 1, 0, 0, 0, 0, 0);
  }

  /** Takes a completion and waits until the controller has seen that. */
  private static void consume(RawNvme nvme, int cid) {
    nvme.await(RawNvme.IO, cid);
    awaitPending(nvme, false);
  }

  /**
   * Waits until Interrupt Status is as wanted: the controller has seen the doorbells, and has told
   * its client of the line.
   */
  private static void awaitPending(RawNvme nvme, boolean pending) {
    long end = System.nanoTime() + 10_000_000_000L;
    int status = ConfigSpace.COMMAND + Short.BYTES;
    while (((nvme.client.read(Protocol.REGION_CONFIG, status, 1)[0] & INTERRUPT_STATUS) != 0)
        != pending) {
      assertThat(System.nanoTime()).as("waiting for Interrupt Status %b", pending).isLessThan(end);
    }
  }

  @Test
  void withTheLineDisabledNothingIsSignalled() {
    assertThat(set(RawClient.irqs(EVENT, INTX, 0, 1), first.fd())).isZero();
    try (RawNvme nvme = RawNvme.start(client, ConfigSpace.COMMAND_INTX_DISABLE, CQ_INTERRUPTS)) {
      flush(nvme);
      awaitPending(nvme, true);
      assertThat(count(first)).isZero();
    }
  }

  @Test
  void theNextClientsInterruptsAreItsOwn() {
    enableMessages();
    assertThat(set(RawClient.irqs(EVENT, MSIX, 0, 1), first.fd())).isZero();
    nextClient();
    enableMessages();
    assertThat(set(RawClient.irqs(EVENT, MSIX, 0, 1), second.fd())).isZero();
    try (RawNvme nvme = RawNvme.start(client, 0, CQ_INTERRUPTS)) {
      nvme.await(RawNvme.IO, flush(nvme));
      awaitCount(second, 1);
      assertThat(count(first)).isZero();
    }
  }
}
