package io.gpunvme.models.tensor;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.cuda.CudaStream;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.accel.TestGpu;
import io.gpunvme.models.format.ElementType;
import java.lang.foreign.MemorySegment;
import java.util.List;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** {@link Dequantizer} on a CUDA GPU. */
@Tag("gpu")
@Timeout(120)
class DequantizerGpuTest extends DequantizerContract {
  private static final long BEYOND = (1L << 32) + (1 << 20);

  @Override
  Accelerator open() {
    return TestGpu.open();
  }

  private GpuAccelerator gpu() {
    return (GpuAccelerator) accelerator;
  }

  @Override
  void dequantize(List<Quantized> tensors) {
    try (CudaStream stream = gpu().context().stream()) {
      dequantizer.dequantize(tensors, stream);
      stream.synchronize();
    }
  }

  @Test
  void manyRandomOnesAreThoseOfTheReference() {
    for (int round = 0; round < 20; round++) {
      check(QuantizedMatrix.all(random), false);
    }
  }

  /** Numbers of elements that 32 bits do not hold. */
  @Test
  void elementsBeyond4GibiAreRight() {
    long stored = ElementType.Q4_K.bytes(BEYOND);
    long floats = ElementType.BF16.bytes(BEYOND);
    long free = gpu().context().memoryInfo().free();
    Assumptions.assumeTrue(
        free > stored + floats + (64 << 20), "the GPU has only " + free + " bytes left");
    QuantizedMatrix last =
        QuantizedMatrix.random(random, ElementType.Q4_K, ElementType.BF16, 1, 1 << 16, 0, 0);
    byte[] expected = last.expected();
    try (DeviceBuffer source = accelerator.allocate(stored);
        DeviceBuffer target = accelerator.allocate(floats)) {
      source.copyFromHost(MemorySegment.ofArray(last.stored()), stored - last.stored().length);
      dequantize(
          List.of(
              new Quantized(
                  ElementType.Q4_K,
                  source,
                  0,
                  ElementType.BF16,
                  target,
                  0,
                  BEYOND / 256,
                  256,
                  null)));
      byte[] got = bytes(target, floats - expected.length, expected.length);
      assertThat(ReferenceFloats.mismatch(expected, got, ElementType.BF16))
          .as("seed %d", seed)
          .isEqualTo(-1);
    }
  }

  /** Also of scales beyond that, which are found by longer divisions. */
  @Test
  void scalesBeyond4GibiElementsAreFound() {
    long bytes = BEYOND + ElementType.F16.bytes(BEYOND);
    long free = gpu().context().memoryInfo().free();
    Assumptions.assumeTrue(free > bytes + (128 << 20), "the GPU has only " + free + " bytes left");
    int columns = 1 << 14;
    int blocks = columns / 128;
    long rows = BEYOND / columns;
    QuantizedMatrix last =
        QuantizedMatrix.random(random, ElementType.I8, ElementType.F16, 64, columns, 1, 128);
    byte[] expected = last.expected();
    try (DeviceBuffer source = accelerator.allocate(BEYOND);
        DeviceBuffer scales = accelerator.allocate(4 * rows * blocks);
        DeviceBuffer target = accelerator.allocate(ElementType.F16.bytes(BEYOND))) {
      source.copyFromHost(MemorySegment.ofArray(last.stored()), BEYOND - last.elements());
      scales.copyFromHost(
          MemorySegment.ofArray(last.scales()), 4 * rows * blocks - last.scales().length);
      dequantize(
          List.of(
              new Quantized(
                  ElementType.I8,
                  source,
                  0,
                  ElementType.F16,
                  target,
                  0,
                  rows,
                  columns,
                  new Quantized.Scales(scales, 0, 1, 128))));
      byte[] got = bytes(target, 2 * (BEYOND - last.elements()), expected.length);
      assertThat(ReferenceFloats.mismatch(expected, got, ElementType.F16))
          .as("seed %d", seed)
          .isEqualTo(-1);
    }
  }

  @Test
  void memoryOfAnotherAcceleratorIsRefused() {
    try (GpuAccelerator other = TestGpu.open();
        DeviceBuffer foreign = other.allocate(4096);
        DeviceBuffer own = accelerator.allocate(4096)) {
      Quantized tensor =
          new Quantized(ElementType.I8, foreign, 0, ElementType.F32, own, 0, 1, 256, null);
      assertThatThrownBy(() -> dequantize(List.of(tensor)))
          .isInstanceOf(InvalidRequestException.class);
    }
  }

  @Test
  void itIsTheGpuThatWorksAndItNeedsAStream() {
    assertThat(dequantizer).isInstanceOf(CudaDequantizer.class);
    assertThatThrownBy(() -> dequantizer.dequantize(List.of(), null))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("stream");
  }
}
