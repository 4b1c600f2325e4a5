package io.gpunvme.storage.path.direct;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.cuda.CudaException;
import io.gpunvme.cuda.FakeDriver;
import io.gpunvme.gpu.accel.BufferCopies;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.accel.GpuAccelerator;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import org.junit.jupiter.api.Test;

/** Copies that the driver refuses are not done later, in memory that is somebody else's by then. */
class FailedCopiesTest {
  private static final int BYTES = 4096;

  private final FakeDriver fake = FakeDriver.fresh();

  @Test
  void whatFailedIsForgotten() {
    try (GpuAccelerator gpu = GpuAccelerator.open(fake.load().device(0));
        DeviceBuffer source = gpu.allocate(BYTES);
        DeviceBuffer first = gpu.allocate(BYTES);
        DeviceBuffer second = gpu.allocate(BYTES);
        BufferCopies copies = gpu.copies()) {
      fill(source, 1);
      copies.add(source, 0, first, 0, BYTES);
      int calls = (int) fake.calls("cuMemcpyBatchAsync_v2");
      fake.fail("cuMemcpyBatchAsync_v2", calls + 1, CudaException.INVALID_VALUE);
      assertThatThrownBy(copies::await).isInstanceOf(CudaException.class);
      fill(source, 2);
      fill(first, 3);
      copies.add(source, 0, second, 0, BYTES);
      copies.await();
      assertThat(bytes(first)).as("the buffer of the one that failed").containsOnly(3);
      assertThat(bytes(second)).containsOnly(2);
    }
  }

  private static void fill(DeviceBuffer buffer, int value) {
    byte[] all = new byte[BYTES];
    Arrays.fill(all, (byte) value);
    buffer.copyFromHost(MemorySegment.ofArray(all), 0);
  }

  private static byte[] bytes(DeviceBuffer buffer) {
    byte[] all = new byte[BYTES];
    buffer.copyToHost(0, MemorySegment.ofArray(all));
    return all;
  }
}
