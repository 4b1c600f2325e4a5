package io.gpunvme.storage;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.cuda.DeviceMemory;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.accel.ForeignMemory;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.accel.TestGpu;
import io.gpunvme.nvme.DmaMappingException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.SplittableRandom;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Tag("gpu")
@Timeout(60)
class ForeignMemoryGpuTest {
  private final GpuAccelerator gpu = TestGpu.open();

  @AfterEach
  void close() {
    gpu.close();
  }

  /** As PyTorch's tensors come: any address inside an allocation of another library. */
  @Test
  void memoryOfOthersIsReadTo() {
    byte[] content = new byte[1 << 20];
    new SplittableRandom(5).nextBytes(content);
    StorageOptions writable = StorageOptions.defaults().withWrite(true);
    try (GpuStorage storage =
            GpuStorage.open(StorageAddress.parse("sim:size=1MiB"), gpu, writable);
        DeviceBuffer source = gpu.allocate(content.length);
        DeviceMemory theirs = gpu.context().allocate(100_000);
        Arena arena = Arena.ofConfined()) {
      source.copyFromHost(MemorySegment.ofArray(content), 0);
      storage.write(0, source, 0, content.length);
      MemorySegment back = arena.allocate(100_000);
      for (int[] range : new int[][] {{0, 4096, 8192}, {777, 12_345, 33_333}, {5, 1, 1}}) {
        theirs.fill((byte) 0x5A);
        int at = range[0];
        int from = range[1];
        int n = range[2];
        try (ForeignMemory memory = gpu.foreign(theirs.address() + at, n)) {
          storage.read(from, memory.buffer(), memory.offset(), n);
        }
        byte[] expected = new byte[100_000];
        Arrays.fill(expected, (byte) 0x5A);
        System.arraycopy(content, from, expected, at, n);
        theirs.copyTo(0, back);
        assertThat(back.mismatch(MemorySegment.ofArray(expected))).isEqualTo(-1);
      }
      assertThatThrownBy(() -> gpu.foreign(theirs.address(), 4L << 20))
          .isInstanceOf(DmaMappingException.class)
          .hasMessageContaining("not inside their allocation");
      assertThatThrownBy(() -> gpu.foreign(back.address(), 1))
          .isInstanceOf(DmaMappingException.class)
          .hasMessageContaining("is not memory that CUDA knows");
      DeviceBuffer pinned = gpu.allocatePinned(1);
      assertThatThrownBy(() -> gpu.foreign(pinned.segment().address(), 1))
          .isInstanceOf(DmaMappingException.class)
          .hasMessageContaining("host memory");
    }
  }
}
