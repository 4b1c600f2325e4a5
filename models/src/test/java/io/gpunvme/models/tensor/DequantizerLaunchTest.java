package io.gpunvme.models.tensor;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.cuda.CudaStream;
import io.gpunvme.cuda.FakeDriver;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.queue.CpuCuda;
import io.gpunvme.models.format.ElementType;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/**
 * {@link CudaDequantizer} on the stand-in for the CUDA driver, whose kernels are the real ones.
 * Each of their threads is one of this process, so the tensors are small.
 */
class DequantizerLaunchTest extends DequantizerRig {
  @Override
  Accelerator open() {
    List<String> kernels = new ArrayList<>();
    for (ElementType type : Quantized.TYPES) {
      Quantized.TARGETS.forEach(target -> kernels.add(CudaDequantizer.name(type, target)));
    }
    return GpuAccelerator.open(
        FakeDriver.load(CpuCuda.library("dequantize", kernels, "-ffp-contract=off")).device(0));
  }

  @Override
  void dequantize(List<Quantized> tensors) {
    try (CudaStream stream = ((GpuAccelerator) accelerator).context().stream()) {
      dequantizer.dequantize(tensors, stream);
      stream.synchronize();
    }
  }

  @Test
  void kernelsAreToldWhatTheyHaveToKnow() {
    assertThat(dequantizer).isInstanceOf(CudaDequantizer.class);
    List<QuantizedMatrix> matrices = new ArrayList<>();
    for (ElementType type : Quantized.TYPES) {
      for (ElementType target : Quantized.TARGETS) {
        boolean blocks = type.blockElements() > 1;
        matrices.add(
            blocks
                ? QuantizedMatrix.random(random, type, target, 3, 256, 0, 0)
                : QuantizedMatrix.random(random, type, target, 10, 77, 4, 20));
      }
    }
    matrices.add(QuantizedMatrix.random(random, ElementType.I8, ElementType.F16, 5, 111, 0, 0));
    // More than one block of threads has.
    matrices.add(QuantizedMatrix.random(random, ElementType.Q4_0, ElementType.F32, 7, 640, 0, 0));
    check(matrices, false);
    check(matrices.subList(0, 1), true);
  }

  @Test
  void itNeedsAStreamAndMemoryOfItsOwn() {
    assertThatThrownBy(() -> dequantizer.dequantize(List.of(), null))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("stream");
    try (CpuAccelerator cpu = CpuAccelerator.open();
        DeviceBuffer own = accelerator.allocate(4096);
        DeviceBuffer closed = accelerator.allocate(4096)) {
      Quantized tensor =
          new Quantized(ElementType.I8, closed, 0, ElementType.F32, own, 0, 1, 64, null);
      closed.close();
      assertThatThrownBy(() -> dequantize(List.of(tensor)))
          .isInstanceOf(InvalidRequestException.class)
          .hasMessageContaining("not an open buffer");
      try (CudaStream stream = ((GpuAccelerator) accelerator).context().stream()) {
        assertThatThrownBy(() -> Dequantizer.open(cpu).dequantize(List.of(), stream))
            .isInstanceOf(InvalidRequestException.class)
            .hasMessageContaining("without a GPU");
      }
    }
  }
}
