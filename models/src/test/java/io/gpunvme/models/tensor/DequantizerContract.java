package io.gpunvme.models.tensor;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.models.format.ElementType;
import io.gpunvme.models.tensor.Quantized.Scales;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** What holds on every accelerator, beside plain Java. */
abstract class DequantizerContract extends DequantizerRig {
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void floatsAreThoseOfTheReference(boolean pinned) {
    check(QuantizedMatrix.all(random), pinned);
  }

  @ParameterizedTest
  @EnumSource(
      value = ElementType.class,
      names = {"Q4_0", "Q8_0", "Q4_K", "Q5_K", "Q6_K", "F8_E4M3"})
  void largeTensorsAreTheSame(ElementType type) {
    int columns = 2048;
    int rows = 700;
    boolean scaled = type.blockElements() == 1;
    check(
        List.of(
            QuantizedMatrix.random(
                random, type, ElementType.BF16, rows, columns, scaled ? 128 : 0, scaled ? 128 : 0)),
        false);
  }

  /** Every float of 8 bits, alone and times a scale that makes it too small or too large. */
  @Test
  void elementsOf8BitsAreAllThere() {
    byte[] all = new byte[256];
    for (int i = 0; i < all.length; i++) {
      all[i] = (byte) i;
    }
    List<QuantizedMatrix> matrices = new ArrayList<>();
    for (ElementType type :
        new ElementType[] {ElementType.I8, ElementType.F8_E4M3, ElementType.F8_E5M2}) {
      for (ElementType target : Quantized.TARGETS) {
        matrices.add(new QuantizedMatrix(type, target, 1, 256, 0, 0, all, new byte[0]));
        for (int exponent = 0; exponent < 256; exponent += 15) {
          byte[] scale = {1, 2, (byte) (exponent << 7 | 0x35), (byte) (exponent >> 1)};
          matrices.add(new QuantizedMatrix(type, target, 1, 256, 1, 256, all, scale));
        }
      }
    }
    check(matrices, false);
  }

  @Test
  void nothingIsFine() {
    dequantize(List.of());
    try (DeviceBuffer buffer = accelerator.allocate(8192)) {
      dequantize(
          List.of(
              new Quantized(
                  ElementType.Q4_K, buffer, 0, ElementType.F32, buffer, 4096, 0, 256, null),
              new Quantized(ElementType.I8, buffer, 0, ElementType.F32, buffer, 4096, 7, 0, null)));
      assertThat(bytes(buffer, 0, 8192)).containsOnly(0);
    }
  }

  // ---- what is refused

  private Quantized q4k(
      DeviceBuffer source, long from, DeviceBuffer target, long to, long rows, long columns) {
    return new Quantized(
        ElementType.Q4_K, source, from, ElementType.F16, target, to, rows, columns, null);
  }

  @Test
  void whatLeavesItsBufferIsRefused() {
    try (DeviceBuffer source = accelerator.allocate(4096);
        DeviceBuffer target = accelerator.allocate(8192)) {
      assertThatCode(() -> q4k(source, 4096 - 144 * 2, target, 8192 - 1024, 2, 256))
          .doesNotThrowAnyException();
      for (long[] bad :
          new long[][] {
            {-144, 0, 1, 256},
            {0, -16, 1, 256},
            {4096 - 144 * 2, 0, 3, 256},
            {4096 - 144 * 2, 0, 1, 768},
            {0, 8192 - 1024, 3, 256},
            {0, 0, Long.MAX_VALUE, 256},
            {0, 0, 1L << 40, 1L << 40},
            {0, 0, 1, Long.MAX_VALUE - 255},
            {0, 0, -1, 256},
            {0, 0, 1, -256},
            {Long.MAX_VALUE - 15, 0, 1, 256},
            {0, Long.MAX_VALUE - 15, 1, 256},
          }) {
        assertThatThrownBy(() -> q4k(source, bad[0], target, bad[1], bad[2], bad[3]))
            .as(Arrays.toString(bad))
            .isInstanceOf(InvalidRequestException.class);
      }
    }
  }

  @Test
  void whatIsNotAlignedOrNotWholeIsRefused() {
    try (DeviceBuffer source = accelerator.allocate(4096);
        DeviceBuffer target = accelerator.allocate(8192)) {
      assertThatThrownBy(() -> q4k(source, 8, target, 0, 1, 256))
          .isInstanceOf(InvalidRequestException.class)
          .hasMessageContaining("multiple of 16");
      assertThatThrownBy(() -> q4k(source, 0, target, 8, 1, 256))
          .isInstanceOf(InvalidRequestException.class)
          .hasMessageContaining("target");
      assertThatThrownBy(() -> q4k(source, 0, target, 0, 2, 128))
          .isInstanceOf(InvalidRequestException.class)
          .hasMessageContaining("whole blocks of 256");
      assertThatThrownBy(
              () ->
                  new Quantized(
                      ElementType.Q6_K, source, 1, ElementType.F32, target, 0, 1, 256, null))
          .isInstanceOf(InvalidRequestException.class)
          .hasMessageContaining("multiple of 2");
      assertThatCode(
              () ->
                  new Quantized(
                      ElementType.I8, source, 1, ElementType.F32, target, 0, 1, 256, null))
          .doesNotThrowAnyException();
    }
  }

  @Test
  void whatOverlapsIsRefused() {
    try (DeviceBuffer buffer = accelerator.allocate(8192)) {
      q4k(buffer, 0, buffer, 144, 1, 256);
      assertThatThrownBy(() -> q4k(buffer, 16, buffer, 144, 1, 256))
          .isInstanceOf(InvalidRequestException.class)
          .hasMessageContaining("overlaps with the source");
      assertThatThrownBy(() -> q4k(buffer, 640, buffer, 144, 1, 256))
          .isInstanceOf(InvalidRequestException.class);
      assertThatThrownBy(() -> f8(buffer, buffer, new Scales(buffer, 4096, 1, 1)))
          .isInstanceOf(InvalidRequestException.class)
          .hasMessageContaining("overlaps with the scales");
    }
  }

  private static Quantized f8(DeviceBuffer source, DeviceBuffer target, Scales scales) {
    return new Quantized(
        ElementType.F8_E5M2, source, 0, ElementType.F32, target, 4096, 8, 16, scales);
  }

  @Test
  void scalesAreChecked() {
    try (DeviceBuffer source = accelerator.allocate(4096);
        DeviceBuffer target = accelerator.allocate(8192)) {
      assertThatCode(() -> f8(source, target, new Scales(source, 4096 - 8, 8, 8)))
          .doesNotThrowAnyException();
      assertThatCode(() -> f8(source, target, new Scales(source, 4096 - 16, 7, 9)))
          .doesNotThrowAnyException();
      assertThatCode(
              () -> f8(source, target, new Scales(source, 0, Long.MAX_VALUE, Long.MAX_VALUE)))
          .doesNotThrowAnyException();
      assertThatThrownBy(() -> f8(source, target, new Scales(source, 4096 - 12, 7, 9)))
          .isInstanceOf(InvalidRequestException.class)
          .hasMessageContaining("16 bytes from offset 4084 are not inside the scales");
      assertThatThrownBy(() -> f8(source, target, new Scales(source, 2, 8, 8)))
          .isInstanceOf(InvalidRequestException.class)
          .hasMessageContaining("multiple of 4");
      assertThatThrownBy(() -> new Scales(source, 0, 0, 1))
          .isInstanceOf(InvalidRequestException.class);
      assertThatThrownBy(() -> new Scales(source, 0, 1, -1))
          .isInstanceOf(InvalidRequestException.class);
      assertThatThrownBy(
              () ->
                  new Quantized(
                      ElementType.Q8_0,
                      source,
                      0,
                      ElementType.F32,
                      target,
                      0,
                      1,
                      32,
                      new Scales(source, 0, 1, 32)))
          .isInstanceOf(InvalidRequestException.class)
          .hasMessageContaining("in their blocks");
    }
  }

  @Test
  void otherTypesAreNamed() {
    try (DeviceBuffer source = accelerator.allocate(4096);
        DeviceBuffer target = accelerator.allocate(4096)) {
      assertThatThrownBy(
              () ->
                  new Quantized(
                      ElementType.IQ2_XS, source, 0, ElementType.F32, target, 0, 1, 256, null))
          .isInstanceOf(UnsupportedTypeException.class)
          .hasMessageContaining("IQ2_XS");
      assertThatThrownBy(
              () ->
                  new Quantized(
                      ElementType.Q4_K, source, 0, ElementType.F64, target, 0, 1, 256, null))
          .isInstanceOf(UnsupportedTypeException.class)
          .hasMessageContaining("F64");
    }
  }
}
