package io.gpunvme.sim;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.ThreadMXBean;
import io.gpunvme.nvme.spec.IoOpcode;
import io.gpunvme.nvme.spec.Prp;
import io.gpunvme.nvme.spec.SglDescriptor;
import io.gpunvme.nvme.spec.Sqe;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.management.ManagementFactory;
import java.util.Arrays;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Random I/O commands against a byte array, and what they allocate. */
class IoCommandRandomTest {
  private static final int SIZE = 1 << 20;
  private static final int STEPS = 3_000;
  private static final int PAGE = 4096;

  /** Points the command at {@code bytes} in the data buffer from {@code start}: PRP or SGL. */
  private static void point(
      CommandLab lab, MemorySegment s, SplittableRandom random, int start, int bytes) {
    if (random.nextInt(3) == 0) {
      int split = random.nextInt(bytes + 1);
      SglDescriptor.put(
          lab.list.memory(), 0, SglDescriptor.DATA_BLOCK, lab.data.busAddress(start), split);
      long second = split == bytes ? 0 : lab.data.busAddress(start + split);
      SglDescriptor.put(lab.list.memory(), 16, SglDescriptor.DATA_BLOCK, second, bytes - split);
      Sqe.psdt(s, 0, 1);
      SglDescriptor.put(s, Sqe.DPTR1, SglDescriptor.LAST_SEGMENT, lab.list.busAddress(0), 32);
      return;
    }
    Sqe.dptr1(s, 0, lab.data.busAddress(start));
    int pages = Math.ceilDiv(start % PAGE + bytes, PAGE);
    int second = (start / PAGE + 1) * PAGE;
    if (pages == 2) {
      Sqe.dptr2(s, 0, lab.data.busAddress(second));
    } else if (pages > 2) {
      long list = PAGE - 8L * random.nextInt(1, 4);
      putList(lab, list, second, pages - 1);
      Sqe.dptr2(s, 0, lab.list.busAddress(list));
    }
  }

  private static void putList(CommandLab lab, long list, int second, int entries) {
    long at = list;
    for (int i = 0; i < entries; i++) {
      if (at == PAGE - 8 && i < entries - 1) {
        Prp.put(lab.list.memory(), at, lab.list.busAddress(PAGE));
        at = PAGE;
      }
      Prp.put(lab.list.memory(), at, lab.data.busAddress(second + (long) i * PAGE));
      at += 8;
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {512, 4096})
  void readsSeeWhatWritesLeft(int block) {
    long seed = Long.getLong("gpunvme.seed", System.nanoTime());
    SplittableRandom random = new SplittableRandom(seed);
    byte[] model = new byte[SIZE];
    NamespaceConfig disk = NamespaceConfig.ram(SIZE, block);
    try (CommandLab lab = new CommandLab(b -> b.namespace(disk))) {
      for (int step = 0; step < STEPS; step++) {
        int most = (int) (CommandLab.MDTS / block);
        int slba = random.nextInt(SIZE / block);
        int blocks = 1 + random.nextInt(Math.min(most, SIZE / block - slba));
        int bytes = blocks * block;
        int start = random.nextInt((128 << 10) - bytes + 1) & ~3;
        int opcode =
            new int[] {IoOpcode.WRITE, IoOpcode.READ, IoOpcode.COMPARE, IoOpcode.WRITE_ZEROES}
                [random.nextInt(4)];
        MemorySegment s = RawHost.io(opcode, 3, slba, blocks, 0, 0);
        byte[] data = new byte[bytes];
        String what = "seed %d step %d %s".formatted(seed, step, Sqe.describe(s, 0));
        if (opcode == IoOpcode.WRITE_ZEROES) {
          lab.ioOk(s);
          Arrays.fill(model, slba * block, slba * block + bytes, (byte) 0);
          continue;
        }
        point(lab, s, random, start, bytes);
        MemorySegment buffer = lab.memory().asSlice(start, bytes);
        byte[] stored = Arrays.copyOfRange(model, slba * block, slba * block + bytes);
        switch (opcode) {
          case IoOpcode.WRITE -> {
            random.nextBytes(data);
            buffer.copyFrom(MemorySegment.ofArray(data));
            lab.ioOk(s);
            System.arraycopy(data, 0, model, slba * block, bytes);
          }
          case IoOpcode.READ -> {
            lab.ioOk(s);
            assertThat(Arrays.equals(buffer.toArray(ValueLayout.JAVA_BYTE), stored))
                .as(what)
                .isTrue();
          }
          default -> {
            buffer.copyFrom(MemorySegment.ofArray(stored));
            assertThat(lab.status(false, s)).as(what).isZero();
          }
        }
      }
    }
  }

  @Test
  void readAndWriteAllocateNothing() {
    ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    try (CommandLab lab = new CommandLab()) {
      MemorySegment write = RawHost.io(IoOpcode.WRITE, 1, 0, 16, lab.bus(), lab.bus() + PAGE);
      MemorySegment read = RawHost.io(IoOpcode.READ, 1, 0, 16, lab.bus(), lab.bus() + PAGE);
      SimulatedController controller = lab.host.controller;
      RawQueue q = lab.queue;
      long allocated = Long.MAX_VALUE;
      for (int round = 0; round < 50 && allocated != 0; round++) {
        long sum = 0;
        for (int i = 0; i < 1_000; i++) {
          q.push(i % 2 == 0 ? write : read);
          q.ring();
          long before = threads.getCurrentThreadAllocatedBytes();
          controller.poll();
          sum += threads.getCurrentThreadAllocatedBytes() - before;
          assertThat(q.poll()).isNotNull();
        }
        allocated = sum;
      }
      assertThat(allocated).as("bytes in 1000 commands, once warm").isZero();
    }
  }
}
