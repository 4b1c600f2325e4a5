package io.gpunvme.models.tensor;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.models.tensor.TensorKernels.Piece;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import java.util.zip.CRC32C;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** What holds on every accelerator, beside plain Java. */
abstract class TensorKernelsContract {
  private static final int BYTES = 1 << 18;

  private final long seed = Long.getLong("gpunvme.seed", System.nanoTime());
  final SplittableRandom random = new SplittableRandom(seed);
  Accelerator accelerator;
  TensorKernels kernels;

  abstract Accelerator open();

  /** How many random cases a test tries. */
  abstract int rounds();

  @BeforeEach
  void openKernels() {
    accelerator = open();
    kernels = TensorKernels.open(accelerator);
  }

  @AfterEach
  void closeKernels() {
    if (accelerator != null) {
      kernels.close();
      accelerator.close();
    }
  }

  static byte[] bytes(DeviceBuffer buffer) {
    byte[] bytes = new byte[(int) buffer.size()];
    buffer.copyToHost(0, MemorySegment.ofArray(bytes));
    return bytes;
  }

  /** Random bytes of both kinds of memory. */
  DeviceBuffer filled(boolean pinned, int size) {
    DeviceBuffer buffer = pinned ? accelerator.allocatePinned(size) : accelerator.allocate(size);
    byte[] bytes = new byte[(int) buffer.size()];
    random.nextBytes(bytes);
    buffer.copyFromHost(MemorySegment.ofArray(bytes), 0);
    return buffer;
  }

  // ---- rows

  private record Rows(
      int sourceOffset, int sourcePitch, int targetOffset, int targetPitch, int width, int rows) {
    /** Any that fit, with addresses that are multiples of a power of two. */
    static Rows random(SplittableRandom random) {
      int unit = 1 << random.nextInt(6);
      int width = unit * random.nextInt(random.nextBoolean() ? 8 : 2048 / unit + 2);
      int rows = random.nextInt(4) == 0 ? random.nextInt(3) : random.nextInt(200);
      int sourcePitch = unit * random.nextInt(1000 / unit + 1) + random.nextInt(2) * width;
      int targetPitch = width + (random.nextInt(3) == 0 ? 0 : unit * random.nextInt(512 / unit));
      long sourceSpan = (long) Math.max(0, rows - 1) * sourcePitch + width;
      long targetSpan = (long) Math.max(0, rows - 1) * targetPitch + width;
      if (Math.max(sourceSpan, targetSpan) > BYTES) {
        return random(random);
      }
      int sourceOffset = random.nextInt((int) (BYTES - sourceSpan) / unit + 1) * unit;
      int targetOffset = random.nextInt((int) (BYTES - targetSpan) / unit + 1) * unit;
      return new Rows(sourceOffset, sourcePitch, targetOffset, targetPitch, width, rows);
    }

    void copy(byte[] source, byte[] target) {
      for (int i = 0; i < rows; i++) {
        System.arraycopy(
            source, sourceOffset + i * sourcePitch, target, targetOffset + i * targetPitch, width);
      }
    }
  }

  private void start(DeviceBuffer source, DeviceBuffer target, Rows r) {
    kernels.stridedCopy(
        source,
        r.sourceOffset,
        r.sourcePitch,
        target,
        r.targetOffset,
        r.targetPitch,
        r.width,
        r.rows);
  }

  @Test
  void rowsArriveAndNothingElseChanges() {
    for (int kinds = 0; kinds < 4; kinds++) {
      try (DeviceBuffer source = filled((kinds & 1) != 0, BYTES);
          DeviceBuffer target = filled((kinds & 2) != 0, BYTES)) {
        byte[] from = bytes(source);
        byte[] expected = bytes(target);
        for (int round = 0; round < rounds(); round++) {
          Rows rows = Rows.random(random);
          rows.copy(from, expected);
          start(source, target, rows);
          kernels.await();
          byte[] got = bytes(target);
          assertThat(Arrays.mismatch(got, expected))
              .as("first wrong byte; seed %d, kinds %d, %s", seed, kinds, rows)
              .isEqualTo(-1);
        }
      }
    }
  }

  @Test
  void copiesAreCarriedOutInTheOrderOfTheCalls() {
    try (DeviceBuffer a = filled(false, BYTES);
        DeviceBuffer b = filled(false, BYTES)) {
      byte[] inA = bytes(a);
      byte[] inB = bytes(b);
      for (int round = 0; round < rounds(); round++) {
        Rows rows = Rows.random(random);
        if (round % 2 == 0) {
          rows.copy(inA, inB);
          start(a, b, rows);
        } else {
          rows.copy(inB, inA);
          start(b, a, rows);
        }
      }
      CRC32C crc = new CRC32C();
      crc.update(inB);
      assertThat(kernels.crc32c(b, 0, b.size()))
          .as("seed %d", seed)
          .isEqualTo((int) crc.getValue());
      assertThat(Arrays.mismatch(bytes(b), inB)).as("seed %d", seed).isEqualTo(-1);
      assertThat(Arrays.mismatch(bytes(a), inA)).as("seed %d", seed).isEqualTo(-1);
    }
  }

  @Test
  void rowsOfOneBufferGoToAnotherPartOfIt() {
    try (DeviceBuffer buffer = filled(false, BYTES)) {
      byte[] expected = bytes(buffer);
      Rows rows = new Rows(64, 96, BYTES / 2, 32, 32, 1000);
      rows.copy(expected, expected);
      start(buffer, buffer, rows);
      kernels.await();
      assertThat(bytes(buffer)).isEqualTo(expected);
    }
  }

  @Test
  void rowsThatLeaveABufferAreRefused() {
    try (DeviceBuffer source = accelerator.allocate(4096);
        DeviceBuffer target = accelerator.allocate(4096)) {
      kernels.stridedCopy(source, 0, 2048, target, 4064, 16, 16, 2);
      for (long[] bad :
          new long[][] {
            {-1, 16, 0, 16, 16, 2},
            {0, 16, -1, 16, 16, 2},
            {0, -16, 0, 16, 16, 2},
            {0, 16, 0, -16, 16, 2},
            {0, 16, 0, 16, -16, 2},
            {0, 16, 0, 16, 16, -2},
            {0, 4081, 0, 16, 16, 2},
            {0, 16, 4065, 16, 16, 2},
            {4097, 16, 0, 16, 0, 0},
            {0, 16, 4081, 16, 16, 1},
            {Long.MAX_VALUE, 16, 0, 16, 16, 2},
            {0, Long.MAX_VALUE, 0, 16, 16, 3},
            {0, 16, 0, 16, Long.MAX_VALUE, 2},
            {0, 16, 0, 16, 16, Long.MAX_VALUE},
            {0, 0, 0, 1L << 62, 1, 5},
          }) {
        assertThatThrownBy(
                () ->
                    kernels.stridedCopy(
                        source, bad[0], bad[1], target, bad[2], bad[3], bad[4], bad[5]))
            .as(Arrays.toString(bad))
            .isInstanceOf(InvalidRequestException.class);
      }
    }
  }

  @Test
  void rowsThatOverlapAreRefused() {
    try (DeviceBuffer source = accelerator.allocate(4096);
        DeviceBuffer target = accelerator.allocate(4096)) {
      assertThatThrownBy(() -> kernels.stridedCopy(source, 0, 16, target, 0, 15, 16, 2))
          .isInstanceOf(InvalidRequestException.class)
          .hasMessageContaining("overlap in the target");
      assertThatThrownBy(() -> kernels.stridedCopy(source, 0, 64, source, 64, 64, 32, 2))
          .isInstanceOf(InvalidRequestException.class)
          .hasMessageContaining("same buffer");
      kernels.stridedCopy(source, 0, 64, source, 96, 64, 32, 2);
      kernels.stridedCopy(source, 0, 64, source, 0, 64, 0, 2);
    }
  }

  // ---- checksums

  static int expected(byte[] bytes, Piece piece) {
    CRC32C crc = new CRC32C();
    crc.update(bytes, (int) piece.offset(), (int) piece.length());
    return (int) crc.getValue();
  }

  @Test
  void checksumsAreThoseOfJava() {
    for (boolean pinned : new boolean[] {false, true}) {
      try (DeviceBuffer buffer = filled(pinned, BYTES)) {
        byte[] bytes = bytes(buffer);
        for (int round = 0; round < rounds(); round++) {
          int length = random.nextInt(random.nextBoolean() ? 9000 : BYTES + 1);
          Piece piece = new Piece(buffer, random.nextInt(BYTES - length + 1), length);
          assertThat(kernels.crc32c(buffer, piece.offset(), length))
              .as("seed %d, %s", seed, piece)
              .isEqualTo(expected(bytes, piece));
        }
      }
    }
  }

  @Test
  void manyPiecesOfSeveralBuffersAtOnce() {
    try (DeviceBuffer a = filled(false, BYTES);
        DeviceBuffer b = filled(true, BYTES)) {
      byte[] inA = bytes(a);
      byte[] inB = bytes(b);
      List<Piece> pieces = new ArrayList<>();
      for (int i = 0; i < 5000; i++) {
        int length = random.nextInt(10) == 0 ? 0 : random.nextInt(random.nextBoolean() ? 40 : 9000);
        pieces.add(new Piece(i % 3 == 0 ? b : a, random.nextInt(BYTES - length + 1), length));
      }
      int[] crcs = kernels.crc32c(pieces);
      assertThat(crcs).hasSize(pieces.size());
      for (int i = 0; i < crcs.length; i++) {
        Piece piece = pieces.get(i);
        assertThat(crcs[i])
            .as("seed %d, piece %d, %s", seed, i, piece)
            .isEqualTo(expected(piece.buffer().equals(a) ? inA : inB, piece));
      }
    }
  }

  @Test
  void longPiecesAreCutAndPutTogether() {
    int size = 21 << 20;
    try (DeviceBuffer buffer = filled(false, size)) {
      byte[] bytes = bytes(buffer);
      Piece whole = new Piece(buffer, 0, buffer.size());
      Piece part = new Piece(buffer, 4099, size - 10_001);
      assertThat(kernels.crc32c(List.of(whole, part, whole)))
          .containsExactly(expected(bytes, whole), expected(bytes, part), expected(bytes, whole));
    }
  }

  @Test
  void nothingHasTheChecksum0() {
    try (DeviceBuffer buffer = filled(false, 4096)) {
      assertThat(kernels.crc32c(List.of())).isEmpty();
      assertThat(kernels.crc32c(buffer, 4096, 0)).isZero();
      assertThat(kernels.crc32c(buffer, 7, 0)).isZero();
    }
  }

  @Test
  void piecesThatLeaveTheirBufferAreRefused() {
    try (DeviceBuffer buffer = filled(false, 4096)) {
      for (long[] bad :
          new long[][] {{-1, 1}, {0, 4097}, {4097, 0}, {1, Long.MAX_VALUE}, {0, -1}}) {
        assertThatThrownBy(() -> kernels.crc32c(buffer, bad[0], bad[1]))
            .as(Arrays.toString(bad))
            .isInstanceOf(InvalidRequestException.class);
      }
    }
  }

  // ---- life

  @Test
  void whatIsClosedIsNotUsed() {
    DeviceBuffer open = filled(false, 4096);
    DeviceBuffer closed = filled(true, 4096);
    closed.close();
    assertThatThrownBy(() -> kernels.crc32c(closed, 0, 16)).isInstanceOf(RuntimeException.class);
    assertThatThrownBy(() -> kernels.stridedCopy(open, 0, 32, closed, 0, 16, 16, 2))
        .isInstanceOf(RuntimeException.class);
    kernels.close();
    kernels.close();
    assertThatThrownBy(() -> kernels.crc32c(open, 0, 16)).isInstanceOf(IllegalStateException.class);
    assertThatThrownBy(() -> kernels.stridedCopy(open, 0, 16, open, 64, 16, 16, 1))
        .isInstanceOf(IllegalStateException.class);
    assertThatThrownBy(kernels::await).isInstanceOf(IllegalStateException.class);
  }

  @Test
  void theAcceleratorMayBeClosedFirst() {
    accelerator.close();
    kernels.close();
    kernels.close();
  }
}
