package io.gpunvme.sim.serve;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.ffi.Errno;
import io.gpunvme.ffi.Futex;
import io.gpunvme.ffi.Mapping;
import io.gpunvme.ffi.Posix;
import io.gpunvme.ffi.PosixException;
import io.gpunvme.nvme.spec.IoOpcode;
import io.gpunvme.nvme.vfiouser.Capabilities;
import io.gpunvme.nvme.vfiouser.Command;
import io.gpunvme.nvme.vfiouser.Message;
import io.gpunvme.nvme.vfiouser.Protocol;
import io.gpunvme.nvme.vfiouser.SleepRegion;
import io.gpunvme.sim.SimConfigBuilder;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.concurrent.locks.LockSupport;
import org.assertj.core.api.Assertions;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** The region by which a client learns that the server sleeps, and wakes it. */
class VfioUserSleepTest extends ServerRig {
  private static final VarHandle INT = ValueLayout.JAVA_INT.varHandle().withInvokeExactBehavior();
  private static final Capabilities KNOWS = new Capabilities(0, 1, 16, 1 << 20, true);
  private static final long PATIENCE_NANOS = 20_000_000_000L;

  /** Longer than it takes to fall asleep, and than one sleep. */
  private static final long LONG_NANOS = 500_000_000;

  private Mapping page;
  private RawNvme nvme;

  @Override
  SimConfigBuilder config() {
    // The I/O queue is worker 1's.
    return super.config().workers(3);
  }

  @AfterEach
  void unmap() {
    if (page != null) {
      page.close();
    }
    if (nvme != null) {
      nvme.close();
    }
  }

  private void greet() {
    client.close();
    client = RawClient.greeted(socket, KNOWS);
    page = map();
  }

  private void start() {
    greet();
    nvme = RawNvme.start(client);
  }

  private Mapping map() {
    try (Message answer = info()) {
      int fd = answer.descriptors().getFirst();
      return Mapping.shared(fd, 0, SleepRegion.BYTES, Posix.PROT_READ | Posix.PROT_WRITE);
    }
  }

  private Message info() {
    return client.call(
        Command.DEVICE_GET_REGION_INFO, RawClient.regionInfo(4096, SleepRegion.INDEX));
  }

  private int asleep() {
    return (int) INT.getVolatile(page.segment(), (long) SleepRegion.ASLEEP);
  }

  private void silent(int initiators) {
    INT.setVolatile(page.segment(), (long) SleepRegion.SILENT, initiators);
  }

  /** Waits until the server sleeps; which sleep it is. */
  private int awaitSleep() {
    long end = System.nanoTime() + PATIENCE_NANOS;
    while (asleep() == 0) {
      assertThat(System.nanoTime()).as("it does not fall asleep").isLessThan(end);
      Thread.onSpinWait();
    }
    return asleep();
  }

  private void assertNeverAsleep() {
    long end = System.nanoTime() + LONG_NANOS;
    while (System.nanoTime() < end) {
      assertThat(asleep()).isZero();
      LockSupport.parkNanos(100_000);
    }
  }

  private void kick() {
    int sleep = asleep();
    if (sleep != 0 && INT.compareAndSet(page.segment(), (long) SleepRegion.ASLEEP, sleep, 0)) {
      Futex.wake(page.segment().asSlice(SleepRegion.ASLEEP, Integer.BYTES));
    }
  }

  @Test
  void isThereForThoseWhoKnowIt() {
    assertThat(
            client.errno(
                Command.DEVICE_GET_REGION_INFO, RawClient.regionInfo(4096, SleepRegion.INDEX)))
        .isEqualTo(Errno.EINVAL);
    assertThat(client.errno(Command.REGION_READ, RawClient.access(SleepRegion.INDEX, 0, 4)))
        .isEqualTo(Errno.EINVAL);
    client.close();
    client = RawClient.connect(socket);
    try (Message version = client.call(Command.VERSION, KNOWS.payload(0))) {
      assertThat(Capabilities.parse(version.payload()).sleep()).isTrue();
    }
    try (Message device = client.call(Command.DEVICE_GET_INFO, RawClient.ints(16, 0, 0, 0))) {
      assertThat(device.payload().getInt(8)).isEqualTo(10);
    }
    try (Message answer = info()) {
      ByteBuffer p = answer.payload();
      assertThat(p.remaining()).isEqualTo(Protocol.REGION_INFO_BYTES);
      assertThat(p.getInt(4)).isEqualTo(7);
      assertThat(p.getInt(8)).isEqualTo(SleepRegion.INDEX);
      assertThat(p.getLong(16)).isEqualTo(SleepRegion.BYTES);
      assertThat(p.getLong(24)).isZero();
      assertThat(answer.descriptors()).hasSize(1);
      int fd = answer.descriptors().getFirst();
      Assertions.assertThatThrownBy(() -> Posix.ftruncate(fd, 0))
          .isInstanceOf(PosixException.class);
    }
  }

  @Test
  void aCapabilityThatIsNotTrueIsNone() {
    client.close();
    client = RawClient.connect(socket);
    String text = "{\"capabilities\":{\"" + SleepRegion.CAPABILITY + "\":1}}\0";
    ByteBuffer version = Protocol.payload(4 + text.length()).putShort((short) 0);
    version.putShort((short) 1).put(text.getBytes(java.nio.charset.StandardCharsets.US_ASCII));
    try (Message answer = client.call(Command.VERSION, version.flip())) {
      assertThat(Capabilities.parse(answer.payload()).sleep()).isFalse();
    }
  }

  @Test
  void itIsMappedAndNothingElse() {
    greet();
    assertThat(client.errno(Command.REGION_READ, RawClient.access(SleepRegion.INDEX, 0, 4)))
        .isEqualTo(Errno.EINVAL);
    assertThat(
            client.errno(
                Command.REGION_WRITE, RawClient.access(SleepRegion.INDEX, 0, 4, new byte[4])))
        .isEqualTo(Errno.EINVAL);
  }

  /** A client that does not look at doorbells' other side may write registers instead. */
  @Test
  void anyMessageWakesIt() {
    start();
    silent(0);
    int first = awaitSleep();
    nvme.csts();
    assertThat(awaitSleep()).isNotEqualTo(first);
  }

  @Test
  void sleepsOnlyWhenTheClientPromisesToWakeIt() {
    start();
    assertThat((int) INT.getVolatile(page.segment(), (long) SleepRegion.SILENT)).isEqualTo(1);
    assertNeverAsleep();
    nvme.roundTrip(0, 1);
    silent(0);
    int first = awaitSleep();
    silent(-1);
    kick();
    nvme.roundTrip(8, 2);
    assertNeverAsleep();
    silent(0);
    assertThat(awaitSleep()).isNotEqualTo(first);
  }

  /** Without the kick the server would look after 200 ms. */
  @Test
  void aKickWakesIt() {
    start();
    silent(0);
    long[] nanos = new long[11];
    for (int i = 0; i < nanos.length; i++) {
      awaitSleep();
      // Behind its last look at the doorbells.
      LockSupport.parkNanos(10_000_000);
      long began = System.nanoTime();
      int cid = nvme.submit(RawNvme.IO, IoOpcode.FLUSH, 1, 0, 0, 0, 0, 0);
      kick();
      assertThat(nvme.await(RawNvme.IO, cid)).isZero();
      nanos[i] = System.nanoTime() - began;
    }
    Arrays.sort(nanos);
    assertThat(nanos[nanos.length / 2]).isLessThan(50_000_000);
  }

  @Test
  void aClientThatForgetsToKickIsServedAllTheSame() {
    start();
    silent(0);
    for (int i = 0; i < 4; i++) {
      awaitSleep();
      LockSupport.parkNanos(10_000_000);
      int cid = nvme.submit(RawNvme.IO, IoOpcode.FLUSH, 1, 0, 0, 0, 0, 0);
      assertThat(nvme.await(RawNvme.IO, cid)).isZero();
    }
  }

  /** Nobody kicks when completion queue entries become free. */
  @Test
  void doesNotSleepOverCompletionsThatWait() {
    start();
    silent(0);
    int sent = 0;
    // One entry of 16 stays empty; a second round must wait for the first to be taken.
    for (; sent < 15; sent++) {
      nvme.submit(RawNvme.IO, IoOpcode.FLUSH, 1, 0, 0, 0, 0, 0);
    }
    kick();
    LockSupport.parkNanos(20_000_000);
    for (; sent < 20; sent++) {
      nvme.submit(RawNvme.IO, IoOpcode.FLUSH, 1, 0, 0, 0, 0, 0);
    }
    kick();
    LockSupport.parkNanos(20_000_000);
    assertNeverAsleep();
    for (; sent > 0; sent--) {
      assertThat(nvme.take(RawNvme.IO)[1]).isZero();
    }
    awaitSleep();
  }

  @Test
  void theNextClientHasAPageOfItsOwn() {
    start();
    silent(0);
    awaitSleep();
    nvme.close();
    nvme = null;
    try (Mapping old = page) {
      start();
      INT.setVolatile(old.segment(), (long) SleepRegion.SILENT, 0);
      assertNeverAsleep();
      assertThat((int) INT.getVolatile(old.segment(), (long) SleepRegion.ASLEEP)).isZero();
      nvme.roundTrip(0, 3);
    }
  }
}
