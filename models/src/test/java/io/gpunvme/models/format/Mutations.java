package io.gpunvme.models.format;

import java.util.Arrays;
import java.util.SplittableRandom;

/** Changes files so that they are wrong, mostly. */
public final class Mutations {
  private Mutations() {}

  /** One to four changes: bits, bytes, numbers that hurt, pieces removed, doubled or exchanged. */
  public static byte[] mutated(SplittableRandom random, byte[] good) {
    byte[] file = good.clone();
    for (int changes = random.nextInt(1, 5); changes > 0 && file.length > 0; changes--) {
      int at = random.nextInt(Math.min(file.length, 4096));
      int length = Math.min(file.length - at, 1 + random.nextInt(24));
      switch (random.nextInt(8)) {
        case 0 -> file[at] ^= (byte) (1 << random.nextInt(8));
        case 1 -> file[at] = (byte) random.nextInt(256);
        case 2 -> file[at] = (byte) "{}[]\",:\\ 0129-eE".charAt(random.nextInt(16));
        case 3 -> number(random, file, at);
        case 4 -> file = Arrays.copyOf(file, at);
        case 5 -> file = spliced(file, at, at + length, new byte[0]);
        case 6 -> file = spliced(file, at, at, Arrays.copyOfRange(file, at, at + length));
        default -> {
          int to = random.nextInt(file.length - length + 1);
          System.arraycopy(file, at, file, to, length);
        }
      }
    }
    return file;
  }

  private static void number(SplittableRandom random, byte[] file, int at) {
    long[] numbers = {
      0,
      1,
      -1,
      Long.MIN_VALUE,
      Long.MAX_VALUE,
      1L << 32,
      Integer.MAX_VALUE,
      file.length,
      64,
      100_000
    };
    long value = numbers[random.nextInt(numbers.length)];
    int bytes = random.nextBoolean() ? 8 : 4;
    for (int i = 0; i < bytes && at + i < file.length; i++) {
      file[at + i] = (byte) (value >>> 8 * i);
    }
  }

  private static byte[] spliced(byte[] file, int from, int to, byte[] instead) {
    byte[] all = new byte[file.length - (to - from) + instead.length];
    System.arraycopy(file, 0, all, 0, from);
    System.arraycopy(instead, 0, all, from, instead.length);
    System.arraycopy(file, to, all, from + instead.length, file.length - to);
    return all;
  }
}
