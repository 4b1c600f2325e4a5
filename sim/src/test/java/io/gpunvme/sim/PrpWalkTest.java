package io.gpunvme.sim;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.nvme.memory.DmaBuffer;
import io.gpunvme.nvme.spec.Cc;
import io.gpunvme.nvme.spec.Csts;
import io.gpunvme.nvme.spec.IoOpcode;
import io.gpunvme.nvme.spec.Prp;
import io.gpunvme.nvme.spec.Registers;
import io.gpunvme.nvme.spec.StatusCode;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** PRP entries and lists, checked byte by byte through Write and Read. */
class PrpWalkTest {
  private static final int CODE = 0x7FF;
  private static final int PAGE = 4096;
  private static final long MAX = 8L << 20;
  private static final long BAD = 0xBAD0_0000_0000L;

  private final long seed = Long.getLong("gpunvme.seed", System.nanoTime());
  private final Random random = new Random(seed);
  private final RawHost host =
      RawHost.start(
          SimConfig.builder().workers(0).latencyNanos(0).maxTransfer(MAX).mpsMax(4).build());
  private final RawQueue q = host.createQueue(1, 8, 8);
  private final DmaBuffer data = host.buffer(MAX + PAGE);
  private final DmaBuffer lists = host.buffer(64 * PAGE);

  @AfterEach
  void close() {
    host.close();
  }

  private int run(int opcode, long bytes, long prp1, long prp2) {
    MemorySegment sqe = RawHost.io(opcode, 1, 0, (int) (bytes / 512), prp1, prp2);
    return host.execute(q, sqe).status() & CODE;
  }

  /** Writes random bytes from the start of the buffer by the simplest pointer and returns them. */
  private byte[] fill(long bytes) {
    byte[] expected = new byte[(int) bytes];
    random.nextBytes(expected);
    MemorySegment.copy(expected, 0, data.memory(), ValueLayout.JAVA_BYTE, 0, expected.length);
    List<Long> pages = new ArrayList<>();
    for (long at = PAGE; at < bytes; at += PAGE) {
      pages.add(data.busAddress(at));
    }
    assertThat(run(IoOpcode.WRITE, bytes, data.busAddress(0), second(pages, 0))).isZero();
    data.memory().fill((byte) 0);
    return expected;
  }

  /** PRP2 for these further pages: nothing, the page itself, or a list that starts at an offset. */
  private long second(List<Long> pages, int listOffset) {
    if (pages.isEmpty()) {
      return BAD;
    }
    return pages.size() == 1 ? pages.get(0) : list(pages, listOffset);
  }

  private long list(List<Long> pages, int listOffset) {
    int at = listOffset;
    for (int i = 0; i < pages.size(); i++) {
      if (at % PAGE == PAGE - 8 && i < pages.size() - 1) {
        // Chain to a page that is not the next one.
        int next = (at / PAGE + 2) * PAGE;
        Prp.put(lists.memory(), at, lists.busAddress(next));
        at = next;
      }
      Prp.put(lists.memory(), at, pages.get(i));
      at += 8;
    }
    if (at % PAGE != 0) {
      Prp.put(lists.memory(), at, BAD);
    }
    return lists.busAddress(listOffset);
  }

  private void expectBuffer(byte[] expected, long offset) {
    MemorySegment got = data.memory().asSlice(offset, expected.length);
    assertThat(got.mismatch(MemorySegment.ofArray(expected))).as("seed " + seed).isEqualTo(-1);
    assertThat(
            data.memory()
                .asSlice(0, offset)
                .mismatch(MemorySegment.ofArray(new byte[(int) offset])))
        .as("before the data")
        .isEqualTo(-1);
    long end = offset + expected.length;
    byte[] rest = new byte[(int) (data.size() - end)];
    assertThat(data.memory().asSlice(end).mismatch(MemorySegment.ofArray(rest)))
        .as("behind the data")
        .isEqualTo(-1);
  }

  @ParameterizedTest
  @CsvSource({
    // bytes, offset of the data in its first page, offset of the list in its page
    "512, 0, 0",
    "4096, 0, 0",
    "512, 4, 0",
    "512, 3584, 0",
    "512, 3588, 0",
    "4096, 512, 0",
    "4096, 4092, 0",
    "8192, 0, 0",
    "8192, 4, 0",
    "8192, 4092, 4080",
    "12288, 0, 4088",
    "12288, 0, 4080",
    "12288, 2048, 0",
    "2097152, 0, 0",
    "2101248, 0, 0",
    "2097664, 4, 0",
    "2097152, 4, 8",
    "2101248, 0, 4088",
    "4194304, 0, 0",
    "8388608, 0, 0",
    "8388608, 4, 4088"
  })
  void readsWhatWasWritten(int bytes, int offset, int listOffset) {
    byte[] expected = fill(bytes);
    List<Long> pages = new ArrayList<>();
    for (long at = PAGE; at < offset + bytes; at += PAGE) {
      pages.add(data.busAddress(at));
    }
    assertThat(run(IoOpcode.READ, bytes, data.busAddress(offset), second(pages, listOffset)))
        .isZero();
    expectBuffer(expected, offset);
    // And back to the medium from there.
    assertThat(run(IoOpcode.WRITE, bytes, data.busAddress(offset), second(pages, listOffset)))
        .isZero();
    data.memory().fill((byte) 0);
    assertThat(run(IoOpcode.READ, bytes, data.busAddress(offset), second(pages, listOffset)))
        .isZero();
    expectBuffer(expected, offset);
  }

  @Test
  void pagesMayComeInAnyOrder() {
    for (int round = 0; round < 200; round++) {
      int bytes = 512 * (1 + random.nextInt(1200));
      byte[] expected = fill(bytes);
      int offset = 4 * random.nextInt(1024);
      int needed = (offset + bytes + PAGE - 1) / PAGE;
      List<Integer> order = new ArrayList<>();
      for (int i = 0; i < MAX / PAGE; i++) {
        order.add(i);
      }
      Collections.shuffle(order, random);
      List<Long> pages = new ArrayList<>();
      for (int i = 1; i < needed; i++) {
        pages.add(data.busAddress((long) order.get(i) * PAGE));
      }
      long prp1 = data.busAddress((long) order.get(0) * PAGE + offset);
      assertThat(run(IoOpcode.READ, bytes, prp1, second(pages, 8 * random.nextInt(512)))).isZero();
      byte[] got = new byte[bytes];
      for (int done = 0, page = 0; done < bytes; page++) {
        int from = page == 0 ? offset : 0;
        int n = Math.min(PAGE - from, bytes - done);
        MemorySegment.copy(
            data.memory(),
            ValueLayout.JAVA_BYTE,
            (long) order.get(page) * PAGE + from,
            got,
            done,
            n);
        done += n;
      }
      assertThat(got).as("seed %d round %d", seed, round).isEqualTo(expected);
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 4095})
  void dataStartsAtADword(int offset) {
    assertThat(run(IoOpcode.READ, 512, data.busAddress(offset), 0))
        .isEqualTo(StatusCode.PRP_OFFSET_INVALID.status());
  }

  @ParameterizedTest
  @ValueSource(ints = {4, 8, 512, 4095})
  void theSecondPageHasNoOffset(int offset) {
    assertThat(run(IoOpcode.READ, 8192, data.busAddress(0), data.busAddress(PAGE + offset)))
        .isEqualTo(StatusCode.PRP_OFFSET_INVALID.status());
    expectBuffer(new byte[0], 0);
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 4, 7, 4092})
  void listsStartAtAQword(int offset) {
    assertThat(run(IoOpcode.READ, 3 * PAGE, data.busAddress(0), lists.busAddress(offset)))
        .isEqualTo(StatusCode.PRP_OFFSET_INVALID.status());
  }

  @Test
  void listEntriesHaveNoOffset() {
    long list = list(List.of(data.busAddress(PAGE), data.busAddress(2 * PAGE + 8)), 0);
    assertThat(run(IoOpcode.READ, 3 * PAGE, data.busAddress(0), list))
        .isEqualTo(StatusCode.PRP_OFFSET_INVALID.status());
    expectBuffer(new byte[0], 0);
  }

  @Test
  void chainPointersHaveNoOffset() {
    Prp.put(lists.memory(), PAGE - 8, lists.busAddress(PAGE + 8));
    assertThat(run(IoOpcode.READ, 3 * PAGE, data.busAddress(0), lists.busAddress(PAGE - 8)))
        .isEqualTo(StatusCode.PRP_OFFSET_INVALID.status());
  }

  @Test
  void whatIsNotMappedIsATransferError() {
    int error = StatusCode.DATA_TRANSFER_ERROR.status();
    assertThat(run(IoOpcode.READ, 512, BAD, 0)).isEqualTo(error);
    assertThat(run(IoOpcode.READ, 8192, data.busAddress(0), BAD)).isEqualTo(error);
    assertThat(run(IoOpcode.READ, 3 * PAGE, data.busAddress(0), BAD)).isEqualTo(error);
    long list = list(List.of(data.busAddress(PAGE), BAD), 0);
    assertThat(run(IoOpcode.READ, 3 * PAGE, data.busAddress(0), list)).isEqualTo(error);
    Prp.put(lists.memory(), PAGE - 8, BAD);
    long chain = lists.busAddress(PAGE - 8);
    assertThat(run(IoOpcode.READ, 3 * PAGE, data.busAddress(0), chain)).isEqualTo(error);
    long end = data.busAddress(data.size() - PAGE);
    assertThat(run(IoOpcode.READ, 8192, end, end + PAGE)).isEqualTo(error);
    expectBuffer(new byte[0], 0);
  }

  @Test
  void listsMayChainForEverWithoutHarm() {
    byte[] expected = fill(MAX);
    // A list whose last slot leads back to its start.
    Prp.put(lists.memory(), PAGE - 8, lists.busAddress(0));
    for (int at = 0; at < PAGE - 8; at += 8) {
      Prp.put(lists.memory(), at, data.busAddress(0));
    }
    assertThat(run(IoOpcode.READ, MAX, data.busAddress(0), lists.busAddress(0))).isZero();
    MemorySegment last = MemorySegment.ofArray(expected).asSlice(MAX - PAGE);
    assertThat(data.memory().asSlice(0, PAGE).mismatch(last)).isEqualTo(-1);
  }

  @Test
  void pagesFollowTheirConfiguredSize() {
    host.disable();
    int mps = 2;
    long page = (long) PAGE << mps;
    while ((host.admin.sq.busAddress(0) | host.admin.cq.busAddress(0)) % page != 0) {
      host.admin = host.queueMemory(0, 16, 16);
    }
    host.writeAdminQueues();
    host.bar.write32(Registers.CC, RawHost.cc().with(Cc.MPS, mps).with(Cc.EN, true).value());
    assertThat(host.csts().isSet(Csts.CFS)).isFalse();
    RawQueue ring = host.queueMemory(1, 8, 8);
    while ((ring.sq.busAddress(0) | ring.cq.busAddress(0)) % page != 0) {
      ring = host.queueMemory(1, 8, 8);
    }
    host.adminOk(RawHost.createCq(1, 8, ring.cq.busAddress(0), 1, 0));
    host.adminOk(RawHost.createSq(1, 8, ring.sq.busAddress(0), 1, 1));
    long base = -data.busAddress(0) & page - 1;
    byte[] expected = new byte[(int) (3 * page)];
    random.nextBytes(expected);
    MemorySegment.copy(
        expected, 0, data.memory(), ValueLayout.JAVA_BYTE, base + 8192, expected.length);
    // Offset 8192 into the first page of 16 KiB; then whole pages.
    Prp.put(lists.memory(), 0, data.busAddress(base + page));
    Prp.put(lists.memory(), 8, data.busAddress(base + 2 * page));
    Prp.put(lists.memory(), 16, data.busAddress(base + 3 * page));
    for (int opcode : new int[] {IoOpcode.WRITE, IoOpcode.READ}) {
      MemorySegment sqe =
          RawHost.io(
              opcode,
              1,
              0,
              expected.length / 512,
              data.busAddress(base + 8192),
              lists.busAddress(0));
      assertThat(host.execute(ring, sqe).status()).isZero();
      if (opcode == IoOpcode.WRITE) {
        data.memory().fill((byte) 0);
      }
    }
    expectBuffer(expected, base + 8192);
    assertThat(new Cc(host.bar.read32(Registers.CC)).get(Cc.MPS)).isEqualTo(mps);
  }
}
