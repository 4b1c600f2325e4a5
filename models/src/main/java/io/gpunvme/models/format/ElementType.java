package io.gpunvme.models.format;

import io.gpunvme.base.InvalidRequestException;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;

/**
 * The types of a tensor's elements. Elements are stored in blocks of a fixed number of elements and
 * bytes: one element a block for the plain types, whole bytes for types of 4 and 6 bits, and a
 * quantised type's own blocks.
 *
 * <p>Those up to {@link #U64} are of safetensors, in its order of alignment. Sources: safetensors'
 * {@code tensor.rs}; {@code ggml.h} and {@code ggml-common.h} of ggml, and {@code GGML_QUANT_SIZES}
 * of its Python package, for GGUF.
 */
public enum ElementType {
  /** A truth value in a byte. */
  BOOL(1, 1),
  /** OCP MX float, e2m1. */
  F4(2, 1),
  /** OCP MX float, e2m3. */
  F6_E2M3(4, 3),
  /** OCP MX float, e3m2. */
  F6_E3M2(4, 3),
  /** Unsigned, 8 bits. */
  U8(1, 1),
  /** Signed, 8 bits. */
  I8(1, 1, 24),
  /** Float of 8 bits. */
  F8_E5M2(1, 1),
  /** Float of 8 bits. */
  F8_E4M3(1, 1),
  /** OCP MX scale: an exponent of 8 bits. */
  F8_E8M0(1, 1),
  /** Float of 8 bits, finite, without a negative zero. */
  F8_E4M3FNUZ(1, 1),
  /** Float of 8 bits, finite, without a negative zero. */
  F8_E5M2FNUZ(1, 1),
  /** Signed, 16 bits. */
  I16(1, 2, 25),
  /** Unsigned, 16 bits. */
  U16(1, 2),
  /** IEEE half precision. */
  F16(1, 2, 1),
  /** bfloat16. */
  BF16(1, 2, 30),
  /** Signed, 32 bits. */
  I32(1, 4, 26),
  /** Unsigned, 32 bits. */
  U32(1, 4),
  /** IEEE single precision. */
  F32(1, 4, 0),
  /** Complex of two singles. */
  C64(1, 8),
  /** IEEE double precision. */
  F64(1, 8, 28),
  /** Signed, 64 bits. */
  I64(1, 8, 27),
  /** Unsigned, 64 bits. */
  U64(1, 8),

  /** 4 bits and a scale. */
  Q4_0(32, 18, 2),
  /** 4 bits, a scale and a minimum. */
  Q4_1(32, 20, 3),
  /** 5 bits and a scale. */
  Q5_0(32, 22, 6),
  /** 5 bits, a scale and a minimum. */
  Q5_1(32, 24, 7),
  /** 8 bits and a scale. */
  Q8_0(32, 34, 8),
  /**
   * 8 bits, a scale and a sum; for activations. ggml's Python package has 40 bytes, ggml itself 36.
   */
  Q8_1(32, 36, 9),
  /** K-quant of 2 bits. */
  Q2_K(256, 84, 10),
  /** K-quant of 3 bits. */
  Q3_K(256, 110, 11),
  /** K-quant of 4 bits. */
  Q4_K(256, 144, 12),
  /** K-quant of 5 bits. */
  Q5_K(256, 176, 13),
  /** K-quant of 6 bits. */
  Q6_K(256, 210, 14),
  /** K-quant of 8 bits. */
  Q8_K(256, 292, 15),
  /** 2.06 bits by a codebook. */
  IQ2_XXS(256, 66, 16),
  /** 2.31 bits by a codebook. */
  IQ2_XS(256, 74, 17),
  /** 3.06 bits by a codebook. */
  IQ3_XXS(256, 98, 18),
  /** 1.56 bits by a codebook. */
  IQ1_S(256, 50, 19),
  /** 4 bits, not linear. */
  IQ4_NL(32, 18, 20),
  /** 3.44 bits by a codebook. */
  IQ3_S(256, 110, 21),
  /** 2.56 bits by a codebook. */
  IQ2_S(256, 82, 22),
  /** 4.25 bits, not linear. */
  IQ4_XS(256, 136, 23),
  /** 1.75 bits by a codebook. */
  IQ1_M(256, 56, 29),
  /** Ternary, 1.69 bits. */
  TQ1_0(256, 54, 34),
  /** Ternary, 2.06 bits. */
  TQ2_0(256, 66, 35),
  /** OCP MX: e2m1 with an e8m0 scale. */
  MXFP4(32, 17, 39),
  /** e2m1 with e4m3 scales for 16 elements each. */
  NVFP4(64, 36, 40),
  /** 1 bit and a scale. */
  Q1_0(128, 18, 41),
  /** 2 bits and a scale. */
  Q2_0(64, 18, 42);

  private static final int NO_ID = -1;
  private static final Map<String, ElementType> SAFETENSORS = new HashMap<>();
  private static final Map<Integer, ElementType> GGUF = new HashMap<>();

  static {
    for (ElementType type : values()) {
      if (type.isSafetensors()) {
        SAFETENSORS.put(type.name(), type);
      }
      if (type.ggufId != NO_ID) {
        GGUF.put(type.ggufId, type);
      }
    }
  }

  private final int blockElements;
  private final int blockBytes;
  private final int ggufId;

  ElementType(int blockElements, int blockBytes) {
    this(blockElements, blockBytes, NO_ID);
  }

  ElementType(int blockElements, int blockBytes, int ggufId) {
    this.blockElements = blockElements;
    this.blockBytes = blockBytes;
    this.ggufId = ggufId;
  }

  /** The type with this name in safetensors; names are upper case. */
  public static Optional<ElementType> ofSafetensors(String name) {
    return Optional.ofNullable(SAFETENSORS.get(name));
  }

  /** The type with this number in GGUF. */
  public static Optional<ElementType> ofGguf(int id) {
    return Optional.ofNullable(GGUF.get(id));
  }

  /** Whether safetensors has it, under {@link #name}. */
  public boolean isSafetensors() {
    return compareTo(U64) <= 0;
  }

  /** Whether GGUF has it. */
  public boolean isGguf() {
    return ggufId != NO_ID;
  }

  /**
   * Its number in GGUF.
   *
   * @throws InvalidRequestException if it has none
   */
  public int ggufId() {
    if (ggufId == NO_ID) {
      throw new InvalidRequestException("GGUF has no " + this);
    }
    return ggufId;
  }

  /** Whether a block also holds scales or minima. */
  public boolean isQuantised() {
    return !isSafetensors();
  }

  /** Elements in a block; a block cannot be divided. */
  public int blockElements() {
    return blockElements;
  }

  /** Bytes of a block. */
  public int blockBytes() {
    return blockBytes;
  }

  /** Bits that an element takes, on average for quantised types. */
  public double bitsPerElement() {
    return blockBytes * (double) Byte.SIZE / blockElements;
  }

  /**
   * Bytes that elements take.
   *
   * @throws InvalidRequestException if these are not whole blocks, or negative, or 2^63 bytes or
   *     more
   */
  public long bytes(long elements) {
    if (elements < 0 || elements % blockElements != 0) {
      throw new InvalidRequestException(
          "%d elements of %s are not whole blocks of %d".formatted(elements, this, blockElements));
    }
    long blocks = elements / blockElements;
    if (blocks > Long.MAX_VALUE / blockBytes) {
      throw new InvalidRequestException(
          "%d elements of %s are 2^63 bytes or more".formatted(elements, this));
    }
    return blocks * blockBytes;
  }
}
