package io.gpunvme.models.tensor;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.accel.TestGpu;
import io.gpunvme.models.tensor.TensorKernels.Piece;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.zip.CRC32C;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** {@link TensorKernels} on a CUDA GPU. */
@Tag("gpu")
@Timeout(120)
class TensorKernelsGpuTest extends TensorKernelsContract {
  private static final int MIB = 1 << 20;
  private static final long BEYOND = (4L << 30) + (64 << 20);

  @Override
  Accelerator open() {
    return TestGpu.open();
  }

  @Override
  int rounds() {
    return 1000;
  }

  @Test
  void checksumsOfUpTo64MebibytesAreThoseOfJava() {
    int size = 64 * MIB;
    try (DeviceBuffer buffer = filled(false, size)) {
      byte[] bytes = bytes(buffer);
      List<Piece> pieces = new ArrayList<>();
      for (int i = 0; i < 40; i++) {
        int length = random.nextInt(size + 1);
        pieces.add(new Piece(buffer, random.nextInt(size - length + 1), length));
      }
      pieces.add(new Piece(buffer, 0, size));
      int[] crcs = kernels.crc32c(pieces);
      for (int i = 0; i < crcs.length; i++) {
        assertThat(crcs[i]).as("%s", pieces.get(i)).isEqualTo(expected(bytes, pieces.get(i)));
      }
    }
  }

  /** More than one launch takes, and offsets that 32 bits do not hold. */
  @Test
  void offsetsBeyond4GibibytesAreRight() {
    requireMemory(BEYOND + (64 << 20));
    byte[] data = new byte[MIB + 3];
    random.nextBytes(data);
    long far = BEYOND - data.length - 5;
    try (DeviceBuffer big = accelerator.allocate(BEYOND);
        DeviceBuffer rows = accelerator.allocate(4 * MIB)) {
      big.copyFromHost(MemorySegment.ofArray(data), far);
      CRC32C crc = new CRC32C();
      crc.update(data);
      int ofData = (int) crc.getValue();
      assertThat(kernels.crc32c(big, far, data.length)).isEqualTo(ofData);
      int before = zeros(far);
      assertThat(kernels.crc32c(big, 0, far)).isEqualTo(before);
      assertThat(kernels.crc32c(big, 0, far + data.length))
          .isEqualTo(Crc32c.combine(before, ofData, data.length));

      // Two rows more than 4 GiB apart: the first of zeros, the second of data.
      rows.copyFromHost(MemorySegment.ofArray(new byte[] {1, 2, 3}), 0);
      kernels.stridedCopy(big, 0, far, rows, 0, 2 * MIB, MIB, 2);
      kernels.await();
      byte[] got = bytes(rows);
      assertThat(Arrays.copyOf(got, MIB)).containsOnly(0);
      assertThat(Arrays.copyOfRange(got, 2 * MIB, 3 * MIB)).isEqualTo(Arrays.copyOf(data, MIB));

      kernels.stridedCopy(rows, 2 * MIB, 16, big, 48, far - 96, 16, 2);
      kernels.await();
      byte[] back = new byte[16];
      big.copyToHost(far - 48, MemorySegment.ofArray(back));
      assertThat(back).isEqualTo(Arrays.copyOfRange(data, 16, 32));
    }
  }

  private static int zeros(long length) {
    CRC32C crc = new CRC32C();
    byte[] mebibyte = new byte[MIB];
    long rest = length;
    while (rest > 0) {
      int part = (int) Math.min(MIB, rest);
      crc.update(mebibyte, 0, part);
      rest -= part;
    }
    return (int) crc.getValue();
  }

  private void requireMemory(long bytes) {
    long free = ((GpuAccelerator) accelerator).context().memoryInfo().free();
    Assumptions.assumeTrue(free > bytes, "the GPU has only " + free + " bytes left");
  }

  @Test
  void memoryOfAnotherAcceleratorIsRefused() {
    try (GpuAccelerator other = TestGpu.open();
        DeviceBuffer foreign = other.allocate(4096);
        DeviceBuffer own = accelerator.allocate(4096)) {
      assertThatThrownBy(() -> kernels.crc32c(foreign, 0, 16))
          .isInstanceOf(InvalidRequestException.class);
      assertThatThrownBy(() -> kernels.stridedCopy(own, 0, 16, foreign, 0, 16, 8, 2))
          .isInstanceOf(InvalidRequestException.class);
    }
  }

  @Test
  void itIsTheGpuThatWorks() {
    assertThat(kernels).isInstanceOf(CudaTensorKernels.class);
    try (CpuAccelerator cpu = CpuAccelerator.open();
        TensorKernels standIn = TensorKernels.open(cpu)) {
      assertThat(standIn).isInstanceOf(HostTensorKernels.class);
    }
  }
}
