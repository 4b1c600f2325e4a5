package io.gpunvme.sim;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.nvme.memory.DmaBuffer;
import io.gpunvme.nvme.spec.IoOpcode;
import io.gpunvme.nvme.spec.SglDescriptor;
import io.gpunvme.nvme.spec.Sqe;
import io.gpunvme.nvme.spec.Status;
import io.gpunvme.nvme.spec.StatusCode;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Scatter gather lists, right and wrong. */
class PrpWalkSglTest {
  private static final int BLOCK = SglDescriptor.DATA_BLOCK;
  private static final int BUCKET = SglDescriptor.BIT_BUCKET;
  private static final int SEGMENT = SglDescriptor.SEGMENT;
  private static final int LAST = SglDescriptor.LAST_SEGMENT;
  private static final long BAD = 0xBAD0_0000_0000L;

  private final long seed = Long.getLong("gpunvme.seed", System.nanoTime());
  private final Random random = new Random(seed);
  private final RawHost host =
      RawHost.start(SimConfig.builder().workers(0).latencyNanos(0).maxTransfer(1 << 20).build());
  private final RawQueue q = host.createQueue(1, 8, 8);
  private final DmaBuffer data = host.buffer(4 << 20);
  private final DmaBuffer lists = host.buffer(1 << 20);
  private int listEnd;

  @AfterEach
  void close() {
    host.close();
  }

  private void expect(StatusCode code, int status) {
    int bits = status & ~Status.MORE;
    int expected = code == StatusCode.DATA_TRANSFER_ERROR ? code.status() : code.dnr();
    assertThat(Status.describe(bits))
        .isEqualTo(Status.describe(code == StatusCode.SUCCESS ? 0 : expected));
  }

  private int run(int opcode, int bytes, int type, long address, long length) {
    MemorySegment sqe = RawHost.io(opcode, 1, 0, bytes / 512, 0, 0);
    Sqe.flags(sqe, 0, Sqe.PSDT_SGL << 6);
    SglDescriptor.put(sqe, Sqe.DPTR1, type, address, (int) length);
    return host.execute(q, sqe).status();
  }

  private int read(int bytes, int type, long address, long length) {
    return run(IoOpcode.READ, bytes, type, address, length);
  }

  /** Appends a descriptor to the list memory. */
  private void put(int type, long address, long length) {
    SglDescriptor.put(lists.memory(), listEnd, type, address, (int) length);
    listEnd += SglDescriptor.SIZE;
  }

  private byte[] fill(int bytes) {
    byte[] expected = new byte[bytes];
    random.nextBytes(expected);
    MemorySegment.copy(expected, 0, data.memory(), ValueLayout.JAVA_BYTE, 0, bytes);
    expect(StatusCode.SUCCESS, run(IoOpcode.WRITE, bytes, BLOCK, data.busAddress(0), bytes));
    data.memory().fill((byte) 0);
    return expected;
  }

  private byte[] bytes(long offset, int n) {
    return data.memory().asSlice(offset, n).toArray(ValueLayout.JAVA_BYTE);
  }

  @Test
  void oneBlockAnywhere() {
    byte[] expected = fill(4096);
    expect(StatusCode.SUCCESS, read(4096, BLOCK, data.busAddress(12345), 4096));
    assertThat(bytes(12345, 4096)).isEqualTo(expected);
  }

  @Test
  void randomListsOfBlocksAndBuckets() {
    for (int round = 0; round < 300; round++) {
      int total = 512 * (1 + random.nextInt(64));
      byte[] content = fill(total);
      byte[] expected = new byte[total * 2];
      listEnd = 0;
      int at = 0;
      int segments = 1 + random.nextInt(5);
      long first = lists.busAddress(0);
      int firstLength = 0;
      for (int s = 0; s < segments; s++) {
        int start = listEnd;
        boolean last = s == segments - 1;
        int pieces = 1 + random.nextInt(4);
        for (int p = 0; p < pieces; p++) {
          int n = last && p == pieces - 1 ? total - at : random.nextInt(total - at + 1);
          boolean skip = random.nextInt(5) == 0;
          put(skip ? BUCKET : BLOCK, skip ? 0 : data.busAddress(at * 2L), n);
          if (!skip) {
            System.arraycopy(content, at, expected, at * 2, n);
          }
          at += n;
        }
        int length = listEnd - start + (last ? 0 : SglDescriptor.SIZE);
        if (s == 0) {
          firstLength = length;
        } else {
          patch(length, last);
        }
        if (!last) {
          patchAt = listEnd;
          put(SEGMENT, lists.busAddress(listEnd + SglDescriptor.SIZE), 0);
        }
      }
      expect(StatusCode.SUCCESS, read(total, segments == 1 ? LAST : SEGMENT, first, firstLength));
      assertThat(bytes(0, expected.length)).as("seed %d round %d", seed, round).isEqualTo(expected);
      data.memory().fill((byte) 0);
    }
  }

  private int patchAt;

  /** Fills in the pointer to the segment just finished. */
  private void patch(int length, boolean last) {
    long address = SglDescriptor.address(lists.memory(), patchAt);
    SglDescriptor.put(lists.memory(), patchAt, last ? LAST : SEGMENT, address, length);
  }

  @Test
  void bucketsCountOnlyTowardsTheHost() {
    byte[] content = fill(1024);
    put(BUCKET, 0, 512);
    put(BLOCK, data.busAddress(0), 512);
    expect(StatusCode.SUCCESS, read(1024, LAST, lists.busAddress(0), listEnd));
    assertThat(bytes(0, 512)).isEqualTo(Arrays.copyOfRange(content, 512, 1024));
    int status = run(IoOpcode.WRITE, 512, LAST, lists.busAddress(0), listEnd);
    expect(StatusCode.SUCCESS, status);
    expect(StatusCode.SUCCESS, read(1024, BLOCK, data.busAddress(8192), 1024));
    assertThat(bytes(8192, 512)).isEqualTo(Arrays.copyOfRange(content, 512, 1024));
    assertThat(bytes(8704, 512)).isEqualTo(Arrays.copyOfRange(content, 512, 1024));
  }

  @Test
  void hugeBucketsNeedNoMemory() {
    byte[] content = fill(1 << 20);
    put(BUCKET, 0, (1 << 20) - 512);
    put(BLOCK, data.busAddress(0), 512);
    expect(StatusCode.SUCCESS, read(1 << 20, LAST, lists.busAddress(0), listEnd));
    assertThat(bytes(0, 512)).isEqualTo(Arrays.copyOfRange(content, (1 << 20) - 512, 1 << 20));
  }

  @ParameterizedTest
  @ValueSource(longs = {0, 511, 513, 1024, 0xFFFFFFFFL})
  void lengthsMustAddUp(long length) {
    expect(StatusCode.DATA_SGL_LENGTH_INVALID, read(512, BLOCK, data.busAddress(0), length));
    if (length != 0) {
      expect(StatusCode.DATA_SGL_LENGTH_INVALID, read(512, BUCKET, 0, length));
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {4, 5, 6, 10, 15})
  void unknownTypes(int type) {
    expect(StatusCode.SGL_DESCRIPTOR_TYPE_INVALID, read(512, type, data.busAddress(0), 512));
  }

  @Test
  void subtypesAreNotSupported() {
    put(BLOCK, data.busAddress(0), 512);
    lists.memory().set(ValueLayout.JAVA_BYTE, 15, (byte) 1);
    expect(StatusCode.SGL_DESCRIPTOR_TYPE_INVALID, read(512, LAST, lists.busAddress(0), listEnd));
  }

  @Test
  void segmentsMustBeWellFormed() {
    put(BLOCK, data.busAddress(0), 512);
    long list = lists.busAddress(0);
    expect(StatusCode.INVALID_SGL_SEGMENT_DESCRIPTOR, read(512, LAST, list, 0));
    expect(StatusCode.INVALID_SGL_SEGMENT_DESCRIPTOR, read(512, LAST, list, 8));
    expect(StatusCode.INVALID_SGL_SEGMENT_DESCRIPTOR, read(512, LAST, list, 24));
    expect(StatusCode.INVALID_SGL_SEGMENT_DESCRIPTOR, read(512, LAST, list + 4, 16));
    // Not the last one, and leads nowhere.
    expect(StatusCode.INVALID_SGL_SEGMENT_DESCRIPTOR, read(512, SEGMENT, list, 16));
    expect(StatusCode.SUCCESS, read(512, LAST, list, 16));
  }

  @Test
  void segmentPointersComeLastAndNotInTheLastSegment() {
    put(LAST, lists.busAddress(64), 16);
    put(BLOCK, data.busAddress(0), 512);
    listEnd = 64;
    put(BLOCK, data.busAddress(0), 512);
    long list = lists.busAddress(0);
    expect(StatusCode.INVALID_SGL_SEGMENT_DESCRIPTOR, read(512, SEGMENT, list, 32));
    expect(StatusCode.INVALID_SGL_SEGMENT_DESCRIPTOR, read(512, LAST, list, 16));
    expect(StatusCode.SUCCESS, read(512, SEGMENT, list, 16));
  }

  @Test
  void endlessListsAreCutOff() {
    put(BLOCK, data.busAddress(0), 0);
    put(SEGMENT, lists.busAddress(0), 32);
    expect(
        StatusCode.INVALID_SGL_DESCRIPTOR_COUNT, read(512, SEGMENT, lists.busAddress(0), listEnd));
  }

  @Test
  void whatIsNotMappedIsATransferError() {
    expect(StatusCode.DATA_TRANSFER_ERROR, read(512, BLOCK, BAD, 512));
    expect(StatusCode.DATA_TRANSFER_ERROR, read(512, LAST, BAD, 16));
    put(BLOCK, BAD, 512);
    expect(StatusCode.DATA_TRANSFER_ERROR, read(512, LAST, lists.busAddress(0), 16));
    long end = data.busAddress(data.size() - 1) - 255;
    expect(StatusCode.DATA_TRANSFER_ERROR, read(512, BLOCK, end, 512));
    expect(StatusCode.DATA_TRANSFER_ERROR, read(512, BLOCK, -256, 512));
  }

  @Test
  void reservedPsdtAndMissingSupportAreInvalidFields() {
    MemorySegment sqe = RawHost.io(IoOpcode.READ, 1, 0, 1, data.busAddress(0), 0);
    Sqe.flags(sqe, 0, 3 << 6);
    expect(StatusCode.INVALID_FIELD, host.execute(q, sqe).status());
    try (RawHost plain =
        RawHost.start(SimConfig.builder().workers(0).latencyNanos(0).sgl(false).build())) {
      RawQueue queue = plain.createQueue(1, 8, 8);
      DmaBuffer buffer = plain.buffer(4096);
      Sqe.flags(sqe, 0, Sqe.PSDT_SGL << 6);
      SglDescriptor.put(sqe, Sqe.DPTR1, BLOCK, buffer.busAddress(0), 512);
      expect(StatusCode.INVALID_FIELD, plain.execute(queue, sqe).status());
    }
  }
}
