package io.gpunvme.models.format;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.base.InvalidRequestException;
import java.util.Arrays;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class ElementTypeTest {
  @ParameterizedTest
  @CsvSource({
    "BOOL,8",
    "F4,4",
    "F6_E2M3,6",
    "F6_E3M2,6",
    "U8,8",
    "I8,8",
    "F8_E5M2,8",
    "F8_E4M3,8",
    "F8_E8M0,8",
    "F8_E4M3FNUZ,8",
    "F8_E5M2FNUZ,8",
    "I16,16",
    "U16,16",
    "F16,16",
    "BF16,16",
    "I32,32",
    "U32,32",
    "F32,32",
    "C64,64",
    "F64,64",
    "I64,64",
    "U64,64"
  })
  void typesOfSafetensorsHaveTheirBits(String name, int bits) {
    ElementType type = ElementType.ofSafetensors(name).orElseThrow();
    assertThat(type.bitsPerElement()).isEqualTo(bits);
    assertThat(type.bytes(24)).isEqualTo(3L * bits);
    assertThat(type.isQuantised()).isFalse();
  }

  @Test
  void safetensorsHasTwentyTwoTypes() {
    assertThat(Arrays.stream(ElementType.values()).filter(ElementType::isSafetensors)).hasSize(22);
    assertThat(ElementType.ofSafetensors("Q4_0")).isEmpty();
    assertThat(ElementType.ofSafetensors("f32")).isEmpty();
  }

  /** Number, name, elements in a block, bytes of it; from ggml.h and ggml-common.h. */
  @ParameterizedTest
  @CsvSource({
    "0,F32,1,4",
    "1,F16,1,2",
    "2,Q4_0,32,18",
    "3,Q4_1,32,20",
    "6,Q5_0,32,22",
    "7,Q5_1,32,24",
    "8,Q8_0,32,34",
    "9,Q8_1,32,36",
    "10,Q2_K,256,84",
    "11,Q3_K,256,110",
    "12,Q4_K,256,144",
    "13,Q5_K,256,176",
    "14,Q6_K,256,210",
    "15,Q8_K,256,292",
    "16,IQ2_XXS,256,66",
    "17,IQ2_XS,256,74",
    "18,IQ3_XXS,256,98",
    "19,IQ1_S,256,50",
    "20,IQ4_NL,32,18",
    "21,IQ3_S,256,110",
    "22,IQ2_S,256,82",
    "23,IQ4_XS,256,136",
    "24,I8,1,1",
    "25,I16,1,2",
    "26,I32,1,4",
    "27,I64,1,8",
    "28,F64,1,8",
    "29,IQ1_M,256,56",
    "30,BF16,1,2",
    "34,TQ1_0,256,54",
    "35,TQ2_0,256,66",
    "39,MXFP4,32,17",
    "40,NVFP4,64,36",
    "41,Q1_0,128,18",
    "42,Q2_0,64,18"
  })
  void typesOfGgufHaveTheirBlocks(int id, String name, int elements, int bytes) {
    ElementType type = ElementType.ofGguf(id).orElseThrow();
    assertThat(type.name()).isEqualTo(name);
    assertThat(type.ggufId()).isEqualTo(id);
    assertThat(type.blockElements()).isEqualTo(elements);
    assertThat(type.blockBytes()).isEqualTo(bytes);
    assertThat(type.bytes(3L * elements)).isEqualTo(3L * bytes);
  }

  @Test
  void ggufHasThirtyFiveTypesAndHadMore() {
    assertThat(Arrays.stream(ElementType.values()).filter(ElementType::isGguf)).hasSize(35);
    for (int id : new int[] {-1, 4, 5, 31, 32, 33, 36, 37, 38, 43, Integer.MAX_VALUE}) {
      assertThat(ElementType.ofGguf(id)).isEmpty();
    }
    assertThatThrownBy(ElementType.BOOL::ggufId).isInstanceOf(InvalidRequestException.class);
    assertThat(Arrays.stream(ElementType.values()).filter(ElementType::isQuantised))
        .allSatisfy(type -> assertThat(type.isGguf()).isTrue());
  }

  @Test
  void onlyWholeBlocksHaveBytes() {
    assertThat(ElementType.F4.bytes(2)).isEqualTo(1);
    assertThat(ElementType.F6_E2M3.bytes(4)).isEqualTo(3);
    assertThat(ElementType.F64.bytes(Long.MAX_VALUE / 8)).isEqualTo(Long.MAX_VALUE / 8 * 8);
    assertThat(
            Arrays.stream(ElementType.values())
                .collect(Collectors.summingLong(type -> type.bytes(0))))
        .isZero();
    for (long elements : new long[] {-2, 1, 3, Long.MAX_VALUE}) {
      assertThatThrownBy(() -> ElementType.F4.bytes(elements))
          .isInstanceOf(InvalidRequestException.class);
    }
    assertThatThrownBy(() -> ElementType.F6_E3M2.bytes(6))
        .hasMessageContaining("not whole blocks of 4");
    assertThatThrownBy(() -> ElementType.F64.bytes(Long.MAX_VALUE / 8 + 1))
        .hasMessageContaining("2^63 bytes or more");
    assertThatThrownBy(() -> ElementType.Q8_K.bytes(Long.MAX_VALUE / 256 * 256))
        .hasMessageContaining("2^63 bytes or more");
  }

  @Test
  void tensorsThatCannotBeAreNotMade() {
    TensorInfo tensor = new TensorInfo("t", ElementType.F32, new long[] {2, 3}, 8, 24);
    tensor.shape()[0] = 9;
    assertThat(tensor.shape()).containsExactly(2, 3);
    assertThat(tensor.end()).isEqualTo(32);
    assertThat(tensor).isEqualTo(new TensorInfo("t", ElementType.F32, new long[] {2, 3}, 8, 24));
    assertThat(tensor.hashCode())
        .isEqualTo(new TensorInfo("t", ElementType.F32, new long[] {2, 3}, 8, 24).hashCode());
    assertThat(tensor).isNotEqualTo(new TensorInfo("t", ElementType.F32, new long[] {3, 2}, 8, 24));
    assertThatThrownBy(() -> new TensorInfo("t", ElementType.F32, new long[] {2, 3}, 8, 23))
        .isInstanceOf(InvalidRequestException.class);
    assertThatThrownBy(() -> new TensorInfo("t", ElementType.U8, new long[] {-1}, 0, 0))
        .isInstanceOf(InvalidRequestException.class);
    assertThatThrownBy(() -> new TensorInfo("t", ElementType.U8, new long[] {9}, -1, 9))
        .isInstanceOf(InvalidRequestException.class);
    assertThatThrownBy(() -> new TensorInfo("t", ElementType.U8, new long[] {9}, Long.MAX_VALUE, 9))
        .isInstanceOf(InvalidRequestException.class);
    long half = 1L << 32;
    assertThatThrownBy(() -> new TensorInfo("t", ElementType.U8, new long[] {half, half, 0}, 0, 0))
        .hasMessageContaining("2^63 elements or more");
    assertThat(new TensorInfo("t", ElementType.U8, new long[] {0, half, half}, 0, 0).elements())
        .isZero();
  }
}
