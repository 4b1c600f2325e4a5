package io.gpunvme.models.tensor;

import io.gpunvme.models.format.ElementType;

/**
 * Blocks of one type in plain Java. The layouts are those of {@code ggml-common.h}, the order of
 * the operations that of ggml's Python package ({@code gguf.quants}).
 */
interface Blocks {
  /**
   * Makes the floats of some blocks.
   *
   * @param in the blocks, from the start
   * @param out gets the floats of all their elements, from the start
   */
  void read(byte[] in, int blocks, float[] out);

  static Blocks of(ElementType type) {
    return switch (type) {
      case Q4_0 -> Blocks::q4of0;
      case Q8_0 -> Blocks::q8of0;
      case Q4_K -> Blocks::q4ofK;
      case Q5_K -> Blocks::q5ofK;
      case Q6_K -> Blocks::q6ofK;
      case I8 -> Blocks::i8;
      case F8_E4M3 -> (in, blocks, out) -> byTable(Tables.E4M3, in, blocks, out);
      case F8_E5M2 -> (in, blocks, out) -> byTable(Tables.E5M2, in, blocks, out);
      default -> throw new UnsupportedTypeException("no floats are made of " + type);
    };
  }

  private static float half(byte[] in, int at) {
    return Float.float16ToFloat((short) (in[at] & 0xFF | in[at + 1] << 8));
  }

  /** Half scale; 16 bytes of 4 bits: of elements 0 to 15 the lower ones. */
  private static void q4of0(byte[] in, int blocks, float[] out) {
    for (int b = 0; b < blocks; b++) {
      int at = b * 18;
      int to = b * 32;
      float d = half(in, at);
      for (int i = 0; i < 16; i++) {
        int quants = in[at + 2 + i];
        out[to + i] = d * ((quants & 0xF) - 8);
        out[to + 16 + i] = d * ((quants >> 4 & 0xF) - 8);
      }
    }
  }

  /** Half scale; 32 bytes with signs. */
  private static void q8of0(byte[] in, int blocks, float[] out) {
    for (int b = 0; b < blocks; b++) {
      int at = b * 34;
      float d = half(in, at);
      for (int i = 0; i < 32; i++) {
        out[b * 32 + i] = in[at + 2 + i] * d;
      }
    }
  }

  /**
   * Scale and minimum of a group of 32 elements, 6 bits each, of 12 bytes: of the first four groups
   * they are in the bytes 0 to 3 and 4 to 7; of the others the lower 4 bits are in 8 to 11, and the
   * upper two above those of the first four.
   */
  private static int scale(byte[] in, int at, int group) {
    return group < 4
        ? in[at + group] & 0x3F
        : in[at + 4 + group] & 0xF | in[at + group - 4] >> 2 & 0x30;
  }

  private static int minimum(byte[] in, int at, int group) {
    return group < 4
        ? in[at + 4 + group] & 0x3F
        : in[at + 4 + group] >> 4 & 0xF | in[at + group] >> 2 & 0x30;
  }

  /** Half scale, half minimum, scales; 128 bytes of 4 bits: 32 of a group and the next. */
  private static void q4ofK(byte[] in, int blocks, float[] out) {
    for (int b = 0; b < blocks; b++) {
      int at = b * 144;
      for (int group = 0; group < 8; group++) {
        float d = half(in, at) * scale(in, at + 4, group);
        float m = half(in, at + 2) * minimum(in, at + 4, group);
        int quants = at + 16 + group / 2 * 32;
        int shift = group % 2 * 4;
        int to = b * 256 + group * 32;
        for (int i = 0; i < 32; i++) {
          out[to + i] = d * (in[quants + i] >> shift & 0xF) - m;
        }
      }
    }
  }

  /** The same with 32 bytes before the last 128, which have a fifth bit for each group. */
  private static void q5ofK(byte[] in, int blocks, float[] out) {
    for (int b = 0; b < blocks; b++) {
      int at = b * 176;
      for (int group = 0; group < 8; group++) {
        float d = half(in, at) * scale(in, at + 4, group);
        float m = half(in, at + 2) * minimum(in, at + 4, group);
        int fifths = at + 16;
        int quants = at + 48 + group / 2 * 32;
        int shift = group % 2 * 4;
        int to = b * 256 + group * 32;
        for (int i = 0; i < 32; i++) {
          int quant = in[quants + i] >> shift & 0xF | (in[fifths + i] >> group & 1) << 4;
          out[to + i] = d * quant - m;
        }
      }
    }
  }

  /**
   * 128 bytes of the lower 4 bits, 64 of the upper 2, 16 scales with signs, half scale. Of each
   * half of the elements the first have 64 bytes, twice 64 behind each other, and the second 32,
   * four times 32.
   */
  private static void q6ofK(byte[] in, int blocks, float[] out) {
    for (int b = 0; b < blocks; b++) {
      int at = b * 210;
      float d = half(in, at + 208);
      for (int group = 0; group < 16; group++) {
        float scale = d * in[at + 192 + group];
        int first = group * 16;
        int low = at + first / 128 * 64 + first % 64;
        int lowShift = first / 64 % 2 * 4;
        int high = at + 128 + first / 128 * 32 + first % 32;
        int highShift = first / 32 % 4 * 2;
        int to = b * 256 + first;
        for (int i = 0; i < 16; i++) {
          int quant = in[low + i] >> lowShift & 0xF | (in[high + i] >> highShift & 3) << 4;
          out[to + i] = scale * (quant - 32);
        }
      }
    }
  }

  private static void i8(byte[] in, int count, float[] out) {
    for (int i = 0; i < count; i++) {
      out[i] = in[i];
    }
  }

  private static void byTable(float[] table, byte[] in, int count, float[] out) {
    for (int i = 0; i < count; i++) {
      out[i] = table[in[i] & 0xFF];
    }
  }

  /** All values of floats of 8 bits. */
  final class Tables {
    static final float[] E4M3 = new float[256];
    static final float[] E5M2 = new float[256];

    static {
      for (int bits = 0; bits < 256; bits++) {
        E4M3[bits] = e4m3(bits);
        // The upper half of a half.
        E5M2[bits] = Float.float16ToFloat((short) (bits << 8));
      }
    }

    private Tables() {}

    /** 4 bits of exponent, no infinity. */
    private static float e4m3(int bits) {
      int rest = bits & 0x7F;
      // The exponents differ by 120, of subnormals too.
      float value = rest == 0x7F ? Float.NaN : Float.intBitsToFloat(rest << 20) * 0x1p120f;
      return rest == bits ? value : -value;
    }
  }
}
