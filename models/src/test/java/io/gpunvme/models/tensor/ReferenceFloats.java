package io.gpunvme.models.tensor;

import io.gpunvme.models.format.ElementType;
import java.util.Arrays;
import java.util.SplittableRandom;

/** What becomes of quantised elements, one by one and as slowly as it is written down. */
final class ReferenceFloats {
  private final ElementType type;
  private final byte[] stored;

  ReferenceFloats(ElementType type, byte[] stored) {
    this.type = type;
    this.stored = stored;
  }

  /** Blocks with any bits; scales are of every kind, and often of an ordinary size. */
  static byte[] random(SplittableRandom random, ElementType type, long elements) {
    byte[] bytes = new byte[(int) type.bytes(elements)];
    random.nextBytes(bytes);
    int[] scales =
        switch (type) {
          case Q4_0, Q8_0 -> new int[] {0};
          case Q4_K, Q5_K -> new int[] {0, 2};
          case Q6_K -> new int[] {208};
          default -> new int[0];
        };
    for (int block = 0; block < bytes.length; block += type.blockBytes()) {
      for (int scale : scales) {
        if (random.nextBoolean()) {
          short half = Float.floatToFloat16((random.nextFloat() - 0.5f) / 8);
          bytes[block + scale] = (byte) half;
          bytes[block + scale + 1] = (byte) (half >> 8);
        }
      }
    }
    return bytes;
  }

  /** Of an element, before scales that are not in its block. */
  float element(long index) {
    int block = (int) (index / type.blockElements()) * type.blockBytes();
    int i = (int) (index % type.blockElements());
    return switch (type) {
      case Q4_0 -> half(block) * (bits(block + 2 + i % 16, i < 16 ? 0 : 4, 4) - 8);
      case Q8_0 -> stored[block + 2 + i] * half(block);
      case Q4_K -> {
        int quant = bits(block + 16 + i / 64 * 32 + i % 32, i / 32 % 2 * 4, 4);
        yield withMinimum(block, i / 32, quant);
      }
      case Q5_K -> {
        int low = bits(block + 48 + i / 64 * 32 + i % 32, i / 32 % 2 * 4, 4);
        yield withMinimum(block, i / 32, low + 16 * bits(block + 16 + i % 32, i / 32, 1));
      }
      case Q6_K -> {
        int low = bits(block + i / 128 * 64 + i % 64, i / 64 % 2 * 4, 4);
        int high = bits(block + 128 + i / 128 * 32 + i % 32, i / 32 % 4 * 2, 2);
        float scale = half(block + 208) * stored[block + 192 + i / 16];
        yield scale * (low + 16 * high - 32);
      }
      case I8 -> stored[i + block];
      case F8_E4M3 -> eight(stored[block], 4, 3);
      case F8_E5M2 -> eight(stored[block], 5, 2);
      default -> throw new IllegalArgumentException(type.toString());
    };
  }

  private float withMinimum(int block, int group, int quant) {
    int scale;
    int minimum;
    int at = block + 4 + group % 4;
    if (group < 4) {
      scale = bits(at, 0, 6);
      minimum = bits(at + 4, 0, 6);
    } else {
      scale = bits(at + 8, 0, 4) + 16 * bits(at, 6, 2);
      minimum = bits(at + 8, 4, 4) + 16 * bits(at + 4, 6, 2);
    }
    float d = half(block) * scale;
    float m = half(block + 2) * minimum;
    float product = d * quant;
    return product - m;
  }

  private int bits(int at, int shift, int count) {
    return (stored[at] & 0xFF) >> shift & (1 << count) - 1;
  }

  private float half(int at) {
    return Float.float16ToFloat((short) ((stored[at] & 0xFF) + 256 * (stored[at + 1] & 0xFF)));
  }

  /** By its definition: OCP's "8-bit Floating Point Specification", 5.1 and 5.2. */
  private static float eight(byte value, int exponentBits, int mantissaBits) {
    int exponent = (value & 0x7F) >> mantissaBits;
    int mantissa = value & (1 << mantissaBits) - 1;
    int bias = (1 << exponentBits - 1) - 1;
    double size;
    if (exponentBits == 4 && (value & 0x7F) == 0x7F) {
      size = Double.NaN;
    } else if (exponentBits == 5 && exponent == 31) {
      size = mantissa == 0 ? Double.POSITIVE_INFINITY : Double.NaN;
    } else {
      double fraction = mantissa / (double) (1 << mantissaBits);
      size =
          exponent == 0
              ? fraction * Math.pow(2, 1 - bias)
              : (1 + fraction) * Math.pow(2, exponent - bias);
    }
    return (float) (value < 0 ? -size : size);
  }

  /** The bits of a float in a type. */
  static int rounded(float value, ElementType type) {
    return switch (type) {
      case F32 -> Float.floatToRawIntBits(value);
      case F16 -> Float.floatToFloat16(value) & 0xFFFF;
      case BF16 -> bfloat(value) & 0xFFFF;
      default -> throw new IllegalArgumentException(type.toString());
    };
  }

  private static int bfloat(float value) {
    if (Float.isNaN(value)) {
      return 0x7FC0;
    }
    int down = Float.floatToRawIntBits(value) >>> 16;
    if (Float.isInfinite(value) || down << 16 == Float.floatToRawIntBits(value)) {
      return down;
    }
    // Half way lies a float: what is beyond it goes to the next, and itself to the even one.
    float half = Float.intBitsToFloat(down << 16 | 0x8000);
    int beyond = Float.compare(Math.abs(value), Math.abs(half));
    return beyond > 0 || beyond == 0 && down % 2 == 1 ? down + 1 : down;
  }

  /** The first float whose bits differ; any that are not numbers are the same. -1: none. */
  static int mismatch(byte[] expected, byte[] got, ElementType type) {
    int bytes = type.blockBytes();
    for (int i = Arrays.mismatch(expected, got); i >= 0 && i < expected.length; ) {
      int at = i / bytes * bytes;
      if (!isNan(expected, at, type) || !isNan(got, at, type)) {
        return at / bytes;
      }
      int next =
          Arrays.mismatch(expected, at + bytes, expected.length, got, at + bytes, got.length);
      i = next < 0 ? -1 : at + bytes + next;
    }
    return expected.length == got.length ? -1 : Math.min(expected.length, got.length) / bytes;
  }

  private static boolean isNan(byte[] floats, int at, ElementType type) {
    int low = floats[at] & 0xFF | (floats[at + 1] & 0xFF) << 8;
    return switch (type) {
      case F16 -> Float.isNaN(Float.float16ToFloat((short) low));
      case BF16 -> Float.isNaN(Float.intBitsToFloat(low << 16));
      default ->
          Float.isNaN(
              Float.intBitsToFloat(
                  low | (floats[at + 2] & 0xFF) << 16 | (floats[at + 3] & 0xFF) << 24));
    };
  }
}
