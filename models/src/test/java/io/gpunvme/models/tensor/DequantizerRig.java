package io.gpunvme.models.tensor;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.models.tensor.Quantized.Scales;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;

/** An accelerator for tests of {@link Dequantizer}, and the comparison with the reference. */
abstract class DequantizerRig {
  final long seed = Long.getLong("gpunvme.seed", System.nanoTime());
  final SplittableRandom random = new SplittableRandom(seed);
  Accelerator accelerator;
  Dequantizer dequantizer;

  abstract Accelerator open();

  /** Makes the floats, and waits until they are there. */
  abstract void dequantize(List<Quantized> tensors);

  @BeforeEach
  void openDequantizer() {
    accelerator = open();
    dequantizer = Dequantizer.open(accelerator);
  }

  @AfterEach
  void closeAccelerator() {
    if (accelerator != null) {
      accelerator.close();
    }
  }

  DeviceBuffer allocate(boolean pinned, long bytes) {
    return pinned ? accelerator.allocatePinned(bytes) : accelerator.allocate(bytes);
  }

  static byte[] bytes(DeviceBuffer buffer, long offset, int length) {
    byte[] bytes = new byte[length];
    buffer.copyToHost(offset, MemorySegment.ofArray(bytes));
    return bytes;
  }

  /** Where the parts of many tensors are in one buffer. */
  private static final class Places {
    private long end;

    long next(long bytes, int alignment, int after) {
      long start = Math.ceilDiv(end, alignment) * alignment + (long) after * alignment;
      end = start + bytes;
      return start;
    }
  }

  /** All of them at once; what is between the floats stays. */
  void check(List<QuantizedMatrix> matrices, boolean pinned) {
    Places sources = new Places();
    Places targets = new Places();
    List<long[]> at = new ArrayList<>();
    for (QuantizedMatrix m : matrices) {
      int alignment = Quantized.alignment(m.type());
      at.add(
          new long[] {
            sources.next(m.stored().length, alignment, random.nextInt(5)),
            sources.next(m.scales().length, 4, random.nextInt(5)),
            targets.next(m.targetType().bytes(m.elements()), 16, 1 + random.nextInt(5))
          });
    }
    try (DeviceBuffer source = allocate(pinned, sources.end);
        DeviceBuffer target = allocate(pinned, targets.end + 16)) {
      byte[] expected = new byte[(int) target.size()];
      Arrays.fill(expected, (byte) 0x5A);
      target.copyFromHost(MemorySegment.ofArray(expected), 0);
      List<Quantized> tensors = new ArrayList<>();
      for (int i = 0; i < at.size(); i++) {
        QuantizedMatrix m = matrices.get(i);
        source.copyFromHost(MemorySegment.ofArray(m.stored()), at.get(i)[0]);
        source.copyFromHost(MemorySegment.ofArray(m.scales()), at.get(i)[1]);
        Scales scales =
            m.blockRows() == 0
                ? null
                : new Scales(source, at.get(i)[1], m.blockRows(), m.blockColumns());
        tensors.add(
            new Quantized(
                m.type(),
                source,
                at.get(i)[0],
                m.targetType(),
                target,
                at.get(i)[2],
                m.rows(),
                m.columns(),
                scales));
      }
      dequantize(tensors);
      for (int i = 0; i < at.size(); i++) {
        QuantizedMatrix m = matrices.get(i);
        byte[] floats = m.expected();
        byte[] got = bytes(target, at.get(i)[2], floats.length);
        assertThat(ReferenceFloats.mismatch(floats, got, m.targetType()))
            .as("first wrong element; seed %d, %s", seed, m)
            .isEqualTo(-1);
        System.arraycopy(got, 0, expected, (int) at.get(i)[2], got.length);
      }
      assertThat(Arrays.mismatch(bytes(target, 0, expected.length), expected))
          .as("first byte that nobody should have written; seed %d", seed)
          .isEqualTo(-1);
    }
  }
}
