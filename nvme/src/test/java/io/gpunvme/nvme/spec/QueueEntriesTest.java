package io.gpunvme.nvme.spec;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;

/** Base 2.0, 3.3.3.1 and 3.3.3.2: submission and completion queue entries. */
class QueueEntriesTest {
  private static final int OFFSET = 64;

  private final MemorySegment queue = Arena.ofAuto().allocate(3 * OFFSET, 64);

  interface Getter {
    long get(MemorySegment s, long off);
  }

  interface Setter {
    void set(MemorySegment s, long off, long value);
  }

  /** A field of the entry and the bytes the specification gives it. */
  record Part(String name, int first, int length, Getter getter, Setter setter) {
    @Override
    public String toString() {
      return name;
    }
  }

  static Stream<Part> sqeParts() {
    return Stream.of(
        new Part("opcode", 0, 1, Sqe::opcode, (s, o, v) -> Sqe.opcode(s, o, (int) v)),
        new Part("flags", 1, 1, Sqe::flags, (s, o, v) -> Sqe.flags(s, o, (int) v)),
        new Part("cid", 2, 2, Sqe::cid, (s, o, v) -> Sqe.cid(s, o, (int) v)),
        new Part("nsid", 4, 4, Sqe::nsid, (s, o, v) -> Sqe.nsid(s, o, (int) v)),
        new Part("cdw2", 8, 4, Sqe::cdw2, (s, o, v) -> Sqe.cdw2(s, o, (int) v)),
        new Part("cdw3", 12, 4, Sqe::cdw3, (s, o, v) -> Sqe.cdw3(s, o, (int) v)),
        new Part("mptr", 16, 8, Sqe::mptr, Sqe::mptr),
        new Part("dptr1", 24, 8, Sqe::dptr1, Sqe::dptr1),
        new Part("dptr2", 32, 8, Sqe::dptr2, Sqe::dptr2),
        new Part("cdw10", 40, 4, Sqe::cdw10, (s, o, v) -> Sqe.cdw10(s, o, (int) v)),
        new Part("cdw11", 44, 4, Sqe::cdw11, (s, o, v) -> Sqe.cdw11(s, o, (int) v)),
        new Part("cdw12", 48, 4, Sqe::cdw12, (s, o, v) -> Sqe.cdw12(s, o, (int) v)),
        new Part("cdw13", 52, 4, Sqe::cdw13, (s, o, v) -> Sqe.cdw13(s, o, (int) v)),
        new Part("cdw14", 56, 4, Sqe::cdw14, (s, o, v) -> Sqe.cdw14(s, o, (int) v)),
        new Part("cdw15", 60, 4, Sqe::cdw15, (s, o, v) -> Sqe.cdw15(s, o, (int) v)),
        new Part("slba", 40, 8, Sqe::slba, Sqe::slba));
  }

  @ParameterizedTest
  @MethodSource("sqeParts")
  void everyPartOfAnSqeHasItsBytes(Part part) {
    for (int noise : new int[] {0, 0xFF, 0xA5}) {
      queue.fill((byte) noise);
      MemorySegment expected = Arena.ofAuto().allocate(queue.byteSize());
      expected.fill((byte) noise);
      long value = 0;
      for (int i = 0; i < part.length(); i++) {
        int b = 0x81 + 0x13 * i;
        expected.set(ValueLayout.JAVA_BYTE, OFFSET + part.first() + i, (byte) b);
        value |= (b & 0xFFL) << (8 * i);
      }
      part.setter().set(queue, OFFSET, value);
      assertThat(hex(queue)).as("noise %02X", noise).isEqualTo(hex(expected));
      long read = part.getter().get(queue, OFFSET);
      assertThat(part.length() == 4 ? read & 0xFFFFFFFFL : read).isEqualTo(value);
    }
  }

  @Test
  void sqeOffsets() {
    assertThat(
            List.of(
                Sqe.OPCODE,
                Sqe.FLAGS,
                Sqe.CID,
                Sqe.NSID,
                Sqe.CDW2,
                Sqe.CDW3,
                Sqe.MPTR,
                Sqe.DPTR1,
                Sqe.DPTR2,
                Sqe.CDW10,
                Sqe.CDW11,
                Sqe.CDW12,
                Sqe.CDW13,
                Sqe.CDW14,
                Sqe.CDW15,
                Sqe.SIZE))
        .containsExactly(0, 1, 2, 4, 8, 12, 16, 24, 32, 40, 44, 48, 52, 56, 60, 64);
    assertThat(List.of(Sqe.PSDT_PRP, Sqe.PSDT_SGL, Sqe.PSDT_SGL_METADATA)).containsExactly(0, 1, 2);
    assertThat(Sqe.NSID_ALL).isEqualTo(-1);
  }

  @Test
  void putWritesTheWholeEntryAndNothingElse() {
    queue.fill((byte) 0xA5);
    Sqe.put(
        queue,
        OFFSET,
        0x84838281,
        0x88878685,
        0x9F9E9D9C9B9A9998L,
        0xA7A6A5A4A3A2A1A0L,
        0xAFAEADACABAAA9A8L,
        0xB3B2B1B0,
        0xB7B6B5B4,
        0xBBBAB9B8,
        0xBFBEBDBC,
        0xC3C2C1C0,
        0xC7C6C5C4);
    assertThat(hex(queue))
        .isEqualTo(
            "a5".repeat(64)
                + "8182838485868788"
                + "0000000000000000"
                + "98999a9b9c9d9e9f"
                + "a0a1a2a3a4a5a6a7"
                + "a8a9aaabacadaeaf"
                + "b0b1b2b3b4b5b6b7"
                + "b8b9babbbcbdbebf"
                + "c0c1c2c3c4c5c6c7"
                + "a5".repeat(64));
  }

  @Test
  void putKeepsSmallPositiveWordsApart() {
    Sqe.put(queue, OFFSET, -1, 0, 0, 0, 0, -1, 0, -1, 0, -1, 0);
    assertThat(Sqe.nsid(queue, OFFSET)).isZero();
    assertThat(Sqe.cdw11(queue, OFFSET)).isZero();
    assertThat(Sqe.cdw13(queue, OFFSET)).isZero();
    assertThat(Sqe.cdw15(queue, OFFSET)).isZero();
  }

  @Test
  void clearZeroesTheEntryAndNothingElse() {
    queue.fill((byte) 0xA5);
    Sqe.clear(queue, OFFSET);
    assertThat(hex(queue)).isEqualTo("a5".repeat(64) + "00".repeat(64) + "a5".repeat(64));
  }

  @Test
  void commandDwordZero() {
    assertThat(Sqe.cdw0(0x02, 0x40, 0x8123)).isEqualTo(0x81234002);
    assertThat(Sqe.cdw0(0x180, 0x1FF, 0x1FFFF)).isEqualTo(0xFFFFFF80);
    assertThat(Sqe.cdw0(0x80, 0, 0)).isEqualTo(0x80);
  }

  @Test
  void fuseAndPsdtShareAByteWithReservedBits() {
    Sqe.flags(queue, OFFSET, 0x3C);
    Sqe.fuse(queue, OFFSET, 2);
    Sqe.psdt(queue, OFFSET, 1);
    assertThat(Sqe.flags(queue, OFFSET)).isEqualTo(0x7E);
    assertThat(Sqe.fuse(queue, OFFSET)).isEqualTo(2);
    assertThat(Sqe.psdt(queue, OFFSET)).isEqualTo(1);
    Sqe.flags(queue, OFFSET, 0xFF);
    Sqe.fuse(queue, OFFSET, 1);
    assertThat(Sqe.flags(queue, OFFSET)).isEqualTo(0xFD);
    Sqe.psdt(queue, OFFSET, 2);
    assertThat(Sqe.flags(queue, OFFSET)).isEqualTo(0xBD);
    assertThat(Sqe.psdt(queue, OFFSET)).isEqualTo(2);
    Sqe.fuse(queue, OFFSET, 4);
    assertThat(Sqe.flags(queue, OFFSET)).isEqualTo(0xBC);
  }

  @Test
  void describeShowsEveryDwordThatMatters() {
    Sqe.put(queue, OFFSET, Sqe.cdw0(2, 0x40, 7), -1, 0xA0, 0xB000, 0xC000, 1, 2, 3, 4, 5, 6);
    assertThat(Sqe.describe(queue, OFFSET))
        .isEqualTo(
            "opcode 02h flags 40h cid 7 nsid 4294967295 mptr A0 dptr B000 C000 cdw10-15"
                + " 00000001 00000002 00000003 00000004 00000005 00000006");
  }

  @Test
  void cqeLayout() {
    assertThat(List.of(Cqe.DW0, Cqe.DW1, Cqe.DW2, Cqe.DW3, Cqe.SIZE))
        .containsExactly(0, 4, 8, 12, 16);
    queue.fill((byte) 0xA5);
    Cqe.put(queue, OFFSET, 0x84838281, 0x88878685, 0x8A89, 0x8C8B, 0x8E8D, 0x4281, 1);
    assertThat(hex(queue))
        .isEqualTo(
            "a5".repeat(64) + "8182838485868788" + "898a8b8c8d8e" + "0385" + "a5".repeat(112));
    assertThat(Cqe.dw0(queue, OFFSET)).isEqualTo(0x84838281);
    assertThat(Cqe.dw1(queue, OFFSET)).isEqualTo(0x88878685);
    assertThat(Cqe.sqhd(queue, OFFSET)).isEqualTo(0x8A89);
    assertThat(Cqe.sqid(queue, OFFSET)).isEqualTo(0x8C8B);
    int dw3 = Cqe.dw3Acquire(queue, OFFSET);
    assertThat(dw3).isEqualTo(0x85038E8D);
    assertThat(Cqe.cid(dw3)).isEqualTo(0x8E8D);
    assertThat(Cqe.phase(dw3)).isEqualTo(1);
    assertThat(Cqe.status(dw3)).isEqualTo(0x4281);
  }

  @Test
  void cqeValuesAreCutToTheirFields() {
    Cqe.put(queue, OFFSET, 0, 0, 0x1_FFFF, 0x7_0001, 0xF_8001, 0x1_8000, 2);
    assertThat(Cqe.sqhd(queue, OFFSET)).isEqualTo(0xFFFF);
    assertThat(Cqe.sqid(queue, OFFSET)).isEqualTo(1);
    int dw3 = Cqe.dw3Acquire(queue, OFFSET);
    assertThat(dw3).isEqualTo(0x8001);
    assertThat(Cqe.phase(dw3)).isZero();
    assertThat(Cqe.status(dw3)).isZero();
  }

  @ParameterizedTest
  @CsvSource({"0xFFFEFFFF, 65535, 0, 32767", "0x00010000, 0, 1, 0", "0x80020005, 5, 0, 16385"})
  void dwordThree(String dword, int cid, int phase, int status) {
    int dw3 = Long.decode(dword).intValue();
    assertThat(Cqe.cid(dw3)).isEqualTo(cid);
    assertThat(Cqe.phase(dw3)).isEqualTo(phase);
    assertThat(Cqe.status(dw3)).isEqualTo(status);
    assertThat(Cqe.dw3(cid, status, phase)).isEqualTo(dw3);
  }

  @Test
  @Timeout(300)
  void readersSeeCompleteEntriesOnceThePhaseTurns() throws InterruptedException {
    List<String> torn = new ArrayList<>();
    int rounds = 2_000;
    Thread controller =
        new Thread(
            () -> {
              for (int i = 0; i < rounds; i++) {
                while ((int) Wire.INT.getAcquire(queue, 0L) != i) {
                  Thread.yield();
                }
                Cqe.put(queue, OFFSET, i, ~i, i, 3, i, 0, (i & 1) ^ 1);
              }
            });
    controller.setDaemon(true);
    Cqe.put(queue, OFFSET, 0, 0, 0, 0, 0, 0, 0);
    controller.start();
    for (int i = 0; i < rounds; i++) {
      int dw3;
      while (Cqe.phase(dw3 = Cqe.dw3Acquire(queue, OFFSET)) == (i & 1)) {
        Thread.yield();
      }
      if (Cqe.dw0(queue, OFFSET) != i || Cqe.dw1(queue, OFFSET) != ~i || Cqe.cid(dw3) != (char) i) {
        torn.add("round " + i);
      }
      Wire.INT.setRelease(queue, 0L, i + 1);
    }
    controller.join();
    assertThat(torn).isEmpty();
  }

  private static String hex(MemorySegment s) {
    return HexFormat.of().formatHex(s.toArray(ValueLayout.JAVA_BYTE));
  }
}
