package io.gpunvme.sim;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.nvme.spec.DsmRange;
import io.gpunvme.nvme.spec.FeatureId;
import io.gpunvme.nvme.spec.IoOpcode;
import io.gpunvme.nvme.spec.SglDescriptor;
import io.gpunvme.nvme.spec.Sqe;
import io.gpunvme.nvme.spec.StatusCode;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** I/O commands where they succeed, and what failing media do to them. */
class IoCommandTest {
  private static final int BLOCK = 512;
  private static final int FUA = 1 << 30;
  private static final int DEAC = 1 << 25;

  private static byte[] read(CommandLab lab, int nsid, long slba, int blocks) {
    lab.memory().asSlice(65536, 65536).fill((byte) 0xEE);
    long data = lab.data.busAddress(65536);
    long prp2 = blocks * 512 > 4096 ? data + 4096 : 0;
    lab.ioOk(RawHost.io(IoOpcode.READ, nsid, slba, blocks, data, prp2));
    return lab.memory().asSlice(65536, blocks * 512L).toArray(ValueLayout.JAVA_BYTE);
  }

  private static void write(CommandLab lab, long slba, int blocks) {
    long prp2 = blocks * 512 > 4096 ? lab.bus() + 4096 : 0;
    lab.ioOk(RawHost.io(IoOpcode.WRITE, 1, slba, blocks, lab.bus(), prp2));
  }

  private static byte[] buffer(CommandLab lab, int blocks) {
    return lab.memory().asSlice(0, (long) blocks * BLOCK).toArray(ValueLayout.JAVA_BYTE);
  }

  @Test
  void unwrittenBlocksAreZeros() {
    try (CommandLab lab = new CommandLab()) {
      assertThat(read(lab, 1, CommandLab.BLOCKS - 8, 8)).isEqualTo(new byte[4096]);
    }
  }

  @Test
  void whatWasWrittenIsReadAndNothingElseChanges() {
    try (CommandLab lab = new CommandLab()) {
      lab.pattern(1);
      write(lab, 100, 16);
      assertThat(read(lab, 1, 100, 16)).isEqualTo(buffer(lab, 16));
      assertThat(read(lab, 1, 99, 1)).isEqualTo(new byte[BLOCK]);
      assertThat(read(lab, 1, 116, 1)).isEqualTo(new byte[BLOCK]);
      assertThat(read(lab, 2, 100, 1)).as("another namespace").isEqualTo(new byte[BLOCK]);
    }
  }

  @Test
  void theLastBlockOfATransferOfExactlyMdts() {
    try (CommandLab lab = new CommandLab()) {
      int blocks = (int) (CommandLab.MDTS / BLOCK);
      lab.pattern(2);
      MemorySegment s =
          RawHost.io(IoOpcode.WRITE, 1, CommandLab.BLOCKS - blocks, blocks, lab.bus(), 0);
      Sqe.psdt(s, 0, 1);
      SglDescriptor.put(s, Sqe.DPTR1, SglDescriptor.DATA_BLOCK, lab.bus(), (int) CommandLab.MDTS);
      lab.ioOk(s);
      byte[] last = read(lab, 1, CommandLab.BLOCKS - 1, 1);
      byte[] sent = buffer(lab, blocks);
      assertThat(last)
          .isEqualTo(java.util.Arrays.copyOfRange(sent, sent.length - BLOCK, sent.length));
    }
  }

  @Test
  void aBufferNeedNotBePageAligned() {
    try (CommandLab lab = new CommandLab()) {
      lab.pattern(3);
      long start = 4096 - 4;
      lab.ioOk(
          RawHost.io(
              IoOpcode.WRITE, 1, 5, 1, lab.data.busAddress(start), lab.data.busAddress(4096)));
      byte[] sent = lab.memory().asSlice(start, BLOCK).toArray(ValueLayout.JAVA_BYTE);
      assertThat(read(lab, 1, 5, 1)).isEqualTo(sent);
    }
  }

  @Test
  void aBitBucketSwallowsPartOfARead() {
    try (CommandLab lab = new CommandLab()) {
      lab.pattern(4);
      write(lab, 0, 2);
      byte[] sent = buffer(lab, 2);
      lab.memory().fill((byte) 0x55);
      SglDescriptor.put(lab.list.memory(), 0, SglDescriptor.BIT_BUCKET, 0, BLOCK);
      SglDescriptor.put(lab.list.memory(), 16, SglDescriptor.DATA_BLOCK, lab.bus(), BLOCK);
      MemorySegment s = RawHost.io(IoOpcode.READ, 1, 0, 2, 0, 0);
      Sqe.psdt(s, 0, 1);
      SglDescriptor.put(s, Sqe.DPTR1, SglDescriptor.LAST_SEGMENT, lab.list.busAddress(0), 32);
      lab.ioOk(s);
      assertThat(buffer(lab, 1)).isEqualTo(java.util.Arrays.copyOfRange(sent, BLOCK, 2 * BLOCK));
      assertThat(lab.memory().get(ValueLayout.JAVA_BYTE, BLOCK)).isEqualTo((byte) 0x55);
    }
  }

  @Test
  void compareFindsEveryByte() {
    try (CommandLab lab = new CommandLab()) {
      lab.pattern(5);
      write(lab, 8, 16);
      MemorySegment s = RawHost.io(IoOpcode.COMPARE, 1, 8, 16, lab.bus(), lab.bus() + 4096);
      lab.ioOk(s);
      for (int at : new int[] {0, 4095, 4096, 8191}) {
        byte old = lab.memory().get(ValueLayout.JAVA_BYTE, at);
        lab.memory().set(ValueLayout.JAVA_BYTE, at, (byte) ~old);
        assertThat(lab.status(false, s)).isEqualTo(StatusCode.COMPARE_FAILURE.dnr());
        lab.memory().set(ValueLayout.JAVA_BYTE, at, old);
      }
      lab.ioOk(s);
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {0, DEAC})
  void writeZeroesZeroesExactlyItsRange(int flags) {
    try (CommandLab lab = new CommandLab()) {
      lab.pattern(6);
      write(lab, 0, 16);
      MemorySegment s = lab.range(IoOpcode.WRITE_ZEROES);
      Sqe.slba(s, 0, 3);
      Sqe.cdw12(s, 0, 9 | flags);
      lab.ioOk(s);
      byte[] expected = buffer(lab, 16);
      java.util.Arrays.fill(expected, 3 * BLOCK, 13 * BLOCK, (byte) 0);
      assertThat(read(lab, 1, 0, 16)).isEqualTo(expected);
    }
  }

  @Test
  void deallocatedBlocksAreZeros() {
    try (CommandLab lab = new CommandLab()) {
      lab.pattern(7);
      write(lab, 0, 16);
      byte[] expected = buffer(lab, 16);
      DsmRange.put(lab.memory(), 0, 0, 2, 1);
      DsmRange.put(lab.memory(), 16, 0, 0, Long.MAX_VALUE);
      DsmRange.put(lab.memory(), 32, 7, 1, 15);
      MemorySegment s =
          RawHost.sqe(IoOpcode.DATASET_MANAGEMENT, 1, lab.bus(), 0, 2, DsmRange.AD, 0);
      lab.ioOk(s);
      java.util.Arrays.fill(expected, BLOCK, 3 * BLOCK, (byte) 0);
      java.util.Arrays.fill(expected, 15 * BLOCK, 16 * BLOCK, (byte) 0);
      assertThat(read(lab, 1, 0, 16)).isEqualTo(expected);
    }
  }

  @Test
  void hintsWithoutDeallocateChangeNothingEvenWhenWriteProtected() {
    try (CommandLab lab = new CommandLab()) {
      lab.pattern(8);
      write(lab, 16, 1);
      byte[] expected = buffer(lab, 1);
      MemorySegment s = lab.dsm();
      Sqe.cdw11(s, 0, DsmRange.IDR | DsmRange.IDW);
      lab.ioOk(s);
      assertThat(read(lab, 1, 16, 1)).isEqualTo(expected);
      Sqe.nsid(s, 0, 2);
      lab.ioOk(lab.dsm());
      lab.ioOk(s);
    }
  }

  @Test
  void badRangesDeallocateNothing() {
    try (CommandLab lab = new CommandLab()) {
      lab.pattern(9);
      write(lab, 16, 1);
      byte[] expected = buffer(lab, 1);
      MemorySegment s = lab.dsm();
      DsmRange.put(lab.memory(), 16, 0, 1, CommandLab.BLOCKS);
      assertThat(lab.status(false, s)).isEqualTo(StatusCode.LBA_OUT_OF_RANGE.dnr());
      assertThat(read(lab, 1, 16, 1)).isEqualTo(expected);
    }
  }

  @Test
  void copyMovesRangesOneBehindTheOther() {
    try (CommandLab lab = new CommandLab()) {
      lab.pattern(10);
      write(lab, 16, 16);
      byte[] sent = buffer(lab, 16);
      MemorySegment s = lab.copy();
      lab.copySource(0, 20, 3);
      lab.copySource(1, 16, 2);
      lab.ioOk(s);
      byte[] copied = read(lab, 1, 100, 6);
      byte[] expected = new byte[6 * BLOCK];
      System.arraycopy(sent, 4 * BLOCK, expected, 0, 3 * BLOCK);
      System.arraycopy(sent, 0, expected, 3 * BLOCK, 2 * BLOCK);
      assertThat(copied).isEqualTo(expected);
    }
  }

  @Test
  void copyNamesTheRangeThatFailed() {
    try (CommandLab lab = new CommandLab()) {
      MemorySegment s = lab.copy();
      lab.copySource(1, CommandLab.BLOCKS, 1);
      assertThat(lab.run(false, s).dw0()).isEqualTo(1);
    }
  }

  @Test
  void copyIsLimitedInAllThreeWays() {
    try (CommandLab lab = new CommandLab(b -> b.namespace(NamespaceConfig.ram(64 << 20, BLOCK)))) {
      MemorySegment s = RawHost.sqe(IoOpcode.COPY, 3, lab.bus(), 0, 0, 0, 16);
      for (int i = 0; i < 16; i++) {
        lab.copySource(i, 0, 4096);
      }
      lab.copySource(16, 0, 1);
      assertThat(lab.status(false, s)).isEqualTo(StatusCode.COMMAND_SIZE_LIMIT_EXCEEDED.dnr());
      Sqe.cdw12(s, 0, 15);
      lab.ioOk(s);
    }
  }

  @Test
  void uncorrectableBlocksAreCuredByWriting() {
    try (CommandLab lab = new CommandLab()) {
      MemorySegment spoil = lab.range(IoOpcode.WRITE_UNCORRECTABLE);
      MemorySegment verify = lab.range(IoOpcode.VERIFY);
      int lost = StatusCode.UNRECOVERED_READ_ERROR.status();

      lab.ioOk(spoil);
      assertThat(lab.status(false, verify)).isEqualTo(lost);
      lab.ioOk(lab.transfer(IoOpcode.WRITE));
      lab.ioOk(verify);

      lab.ioOk(spoil);
      lab.ioOk(lab.range(IoOpcode.WRITE_ZEROES));
      lab.ioOk(verify);

      lab.ioOk(spoil);
      lab.ioOk(lab.dsm());
      lab.ioOk(verify);

      lab.ioOk(spoil);
      MemorySegment half = RawHost.io(IoOpcode.WRITE, 1, 16, 4, lab.bus(), 0);
      lab.ioOk(half);
      assertThat(lab.status(false, verify)).isEqualTo(lost);
      assertThat(read(lab, 1, 16, 4)).hasSize(4 * BLOCK);
      lab.host.adminOk(lab.format());
      lab.ioOk(verify);
    }
  }

  @Test
  void flushOfAllNamespaces() {
    try (CommandLab lab = new CommandLab()) {
      MemorySegment s = lab.flush();
      Sqe.nsid(s, 0, Sqe.NSID_ALL);
      lab.ioOk(s);
    }
  }

  @Test
  void aReadOnlyNamespaceCanBeReadAndVerified() {
    try (CommandLab lab = new CommandLab()) {
      for (int opcode : new int[] {IoOpcode.READ, IoOpcode.VERIFY, IoOpcode.COMPARE}) {
        boolean data = opcode != IoOpcode.VERIFY;
        lab.memory().fill((byte) 0);
        lab.ioOk(RawHost.io(opcode, 2, 0, 8, data ? lab.bus() : 0, 0));
      }
      MemorySegment fua = RawHost.io(IoOpcode.READ, 2, 0, 8, lab.bus(), 0);
      Sqe.cdw12(fua, 0, 7 | FUA);
      lab.ioOk(fua);
    }
  }

  @Test
  void theBlockSizeIsTheFormats() {
    try (CommandLab lab = new CommandLab()) {
      MemorySegment format = lab.format();
      Sqe.cdw10(format, 0, 1);
      lab.host.adminOk(format);
      lab.pattern(11);
      lab.ioOk(RawHost.io(IoOpcode.WRITE, 1, CommandLab.BLOCKS / 8 - 1, 1, lab.bus(), 0));
      assertThat(
              lab.status(
                  false, RawHost.io(IoOpcode.READ, 1, CommandLab.BLOCKS / 8, 1, lab.bus(), 0)))
          .isEqualTo(StatusCode.LBA_OUT_OF_RANGE.dnr());
      Sqe.cdw10(format, 0, 0);
      lab.host.adminOk(format);
      assertThat(read(lab, 1, CommandLab.BLOCKS - 8, 8)).as("wiped").isEqualTo(new byte[4096]);
    }
  }

  @Test
  void theBackingFileIsTheNamespace(@TempDir Path folder) throws IOException {
    Path file = folder.resolve("disk");
    byte[] sent;
    NamespaceConfig disk = NamespaceConfig.file(file, 1 << 20, BLOCK);
    try (CommandLab lab = new CommandLab(b -> b.namespace(disk))) {
      lab.pattern(12);
      MemorySegment s = lab.transfer(IoOpcode.WRITE);
      Sqe.nsid(s, 0, 3);
      Sqe.cdw12(s, 0, 7 | FUA);
      lab.ioOk(s);
      sent = buffer(lab, 8);
      byte[] stored = Files.readAllBytes(file);
      assertThat(stored).hasSize(1 << 20);
      assertThat(java.util.Arrays.copyOfRange(stored, 16 * BLOCK, 24 * BLOCK)).isEqualTo(sent);
    }
    try (CommandLab lab = new CommandLab(b -> b.namespace(NamespaceConfig.file(file, 0, BLOCK)))) {
      assertThat(read(lab, 3, 16, 8)).as("after a restart").isEqualTo(sent);
    }
  }

  @Test
  void aFailingMediumIsAMediaErrorAndMayBeTriedAgain(@TempDir Path folder) throws IOException {
    NamespaceConfig disk = NamespaceConfig.file(folder.resolve("disk"), 1 << 20, BLOCK);
    try (CommandLab lab = new CommandLab(b -> b.namespace(disk))) {
      SimNamespace ns = lab.host.controller.namespaces().allocated(3);
      assertThat(ns).isNotNull();
      ns.media().close();
      int writeFault = StatusCode.WRITE_FAULT.status();
      int unrecovered = StatusCode.UNRECOVERED_READ_ERROR.status();
      MemorySegment[] commands = {
        lab.transfer(IoOpcode.WRITE),
        lab.transfer(IoOpcode.READ),
        lab.transfer(IoOpcode.COMPARE),
        lab.range(IoOpcode.WRITE_ZEROES),
        lab.range(IoOpcode.VERIFY),
        lab.flush(),
        lab.dsm(),
      };
      int[] expected = {
        writeFault, unrecovered, unrecovered, writeFault, unrecovered, writeFault, writeFault
      };
      for (int i = 0; i < commands.length; i++) {
        Sqe.nsid(commands[i], 0, 3);
        assertThat(lab.status(false, commands[i])).as("%d", i).isEqualTo(expected[i]);
      }
      MemorySegment all = lab.flush();
      Sqe.nsid(all, 0, Sqe.NSID_ALL);
      assertThat(lab.status(false, all)).isEqualTo(writeFault);
      MemorySegment format = lab.format();
      Sqe.nsid(format, 0, 3);
      assertThat(lab.status(true, format)).isEqualTo(writeFault);
      lab.host.adminOk(lab.setFeature(FeatureId.VOLATILE_WRITE_CACHE, 0));
      assertThat(lab.host.controller.namespaces().flushFailures()).isEqualTo(1);
      lab.ioOk(lab.transfer(IoOpcode.WRITE));
    }
  }

  @Test
  void nothingIsStoredByADiscardingNamespace() {
    NamespaceConfig none = NamespaceConfig.discarding(1L << 40, 4096);
    try (CommandLab lab = new CommandLab(b -> b.namespace(none))) {
      lab.memory().fill((byte) 1);
      MemorySegment s = RawHost.io(IoOpcode.READ, 3, (1L << 28) - 1, 1, lab.bus(), 0);
      lab.ioOk(s);
      assertThat(lab.memory().get(ValueLayout.JAVA_BYTE, 0)).isEqualTo((byte) 1);
      assertThat(lab.host.controller.stats().readBytes()).isEqualTo(4096);
    }
  }
}
