package io.gpunvme.sim;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.nvme.memory.DmaBuffer;
import io.gpunvme.nvme.pci.ConfigSpace;
import io.gpunvme.nvme.spec.Cc;
import io.gpunvme.nvme.spec.Registers;
import io.gpunvme.nvme.spec.Sqe;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Random;
import org.junit.jupiter.api.Test;

/**
 * A host that does anything at all: the controller answers, refuses or goes fatal, and recovers.
 */
class EngineFuzzTest {
  private static final int ROUNDS = 60;
  private static final int STEPS = 2_000;

  private final long seed = Long.getLong("gpunvme.seed", System.nanoTime());
  private final Random random = new Random(seed);

  @Test
  void survivesAnything() {
    for (int round = 0; round < ROUNDS; round++) {
      SimConfig config =
          SimConfig.builder()
              .workers(0)
              .latencyNanos(round % 3 == 0 ? 2_000 : 0)
              .outOfOrder(round % 2 == 0)
              .contiguousQueues(round % 4 != 0)
              .ioQueues(4)
              .mqes(63)
              .cmbBytes(round % 5 == 0 ? 65536 : 0)
              .namespace(NamespaceConfig.ram(1 << 20, 512))
              .seed(seed + round)
              .build();
      String what = "seed " + seed + " round " + round;
      try (RawHost host = RawHost.start(config)) {
        RawQueue q = host.createQueue(1, 16, 16);
        DmaBuffer data = host.buffer(1 << 16);
        for (int step = 0; step < STEPS; step++) {
          abuse(host, q, data);
        }
        assertThat(host.controller.internalError()).as(what).isNull();
        recover(host, what);
      }
    }
  }

  private void abuse(RawHost host, RawQueue q, DmaBuffer data) {
    switch (random.nextInt(40)) {
      case 0 -> registers(host);
      case 1 -> q.ringTail(random.nextInt());
      case 2 -> q.ringHead(random.nextInt(20));
      case 3 ->
          host.bar
              .memory(Registers.DOORBELLS, 4096)
              .set(ValueLayout.JAVA_INT, random.nextInt(16) * 4L, random.nextInt(70));
      case 4 -> host.controller.config().write(random.nextInt(64) * 4, 4, random.nextInt());
      case 5 -> host.busMaster(random.nextInt(4) != 0);
      case 6 -> {
        if (random.nextInt(20) == 0) {
          host.buffer(4096).range().close();
        }
      }
      case 7 -> host.controller.bar(4).write32(random.nextInt(64) * 4L, random.nextInt());
      default -> command(host, random.nextBoolean() ? q : host.admin, data);
    }
    host.poll();
    drain(q);
    drain(host.admin);
  }

  private void registers(RawHost host) {
    long offset = random.nextInt(5) == 0 ? random.nextInt(0x400) * 4L : random.nextInt(28) * 4L;
    int value = random.nextInt();
    if (offset == Registers.CC && random.nextInt(3) != 0) {
      value = RawHost.cc().with(Cc.EN, true).value();
    }
    host.bar.write32(offset, value);
    host.bar.read32(random.nextInt(0x500) * 4L);
  }

  private void command(RawHost host, RawQueue q, DmaBuffer data) {
    MemorySegment sqe = Arena.ofAuto().allocate(Sqe.SIZE, 8);
    byte[] noise = new byte[Sqe.SIZE];
    random.nextBytes(noise);
    MemorySegment.copy(noise, 0, sqe, ValueLayout.JAVA_BYTE, 0, Sqe.SIZE);
    Sqe.opcode(sqe, 0, random.nextInt(16) == 0 ? random.nextInt(256) : random.nextInt(26));
    if (random.nextInt(4) != 0) {
      Sqe.flags(sqe, 0, random.nextInt(8) == 0 ? Sqe.PSDT_SGL << 6 : 0);
      Sqe.nsid(sqe, 0, random.nextInt(3));
      Sqe.cdw2(sqe, 0, 0);
      Sqe.cdw3(sqe, 0, 0);
      Sqe.mptr(sqe, 0, 0);
      Sqe.cdw10(sqe, 0, random.nextInt(8) | random.nextInt(70) << 16);
      Sqe.cdw11(sqe, 0, random.nextInt(4) | random.nextInt(6) << 16);
      Sqe.cdw12(sqe, 0, random.nextInt(64));
      Sqe.cdw13(sqe, 0, 0);
      Sqe.cdw14(sqe, 0, 0);
      Sqe.cdw15(sqe, 0, 0);
    }
    if (random.nextInt(4) != 0) {
      // Data pointers that lead somewhere, also into the list that is being read.
      Sqe.dptr1(sqe, 0, data.busAddress(random.nextInt(16) * 4096L));
      Sqe.dptr2(sqe, 0, data.busAddress(random.nextInt(8192) * 8L));
      for (int i = 0; i < 8; i++) {
        data.memory()
            .set(
                ValueLayout.JAVA_LONG,
                random.nextInt(8192) * 8L,
                data.busAddress(random.nextInt(16) * 4096L));
      }
    }
    q.push(sqe, random.nextInt(64));
    q.ring();
  }

  private static void drain(RawQueue q) {
    for (int i = 0; i < 32 && q.poll() != null; i++) {
      // Whatever it says.
    }
  }

  private static void recover(RawHost host, String what) {
    ConfigSpace space = host.controller.config();
    space.write(ConfigSpace.COMMAND, 2, ConfigSpace.COMMAND_MEMORY);
    host.controller.reset();
    host.busMaster(true);
    host.admin = host.queueMemory(0, RawHost.ADMIN_SIZE, RawHost.ADMIN_SIZE);
    host.enable();
    RawQueue q = host.createQueue(3, 8, 8);
    DmaBuffer buffer = host.buffer(4096);
    int status =
        host.execute(q, RawHost.io(2, 1, 0, 1, buffer.busAddress(0), 0)).status() & ~(1 << 14);
    // Namespace 1 may have been written "uncorrectable" by the noise.
    assertThat(status & 0x7FF).as(what).isIn(0, 0x281);
  }
}
