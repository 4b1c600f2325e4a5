package io.gpunvme.storage.fs.ext4;

/**
 * The hashes of names by which indexed folders are ordered.
 *
 * @see <a href="https://docs.kernel.org/filesystems/ext4/directory.html#hash-tree-directories">Hash
 *     Tree Directories</a>
 */
final class NameHash {
  private static final int LEGACY = 0;
  private static final int HALF_MD4 = 1;
  private static final int TEA = 2;
  private static final int UNSIGNED = 3; // added to the three

  private static final int LAST = 0xFFFF_FFFE; // means the end of a folder, so no name has it
  private static final int K2 = 0x5A827999;
  private static final int K3 = 0x6ED9EBA1;

  private NameHash() {}

  /** Whether a version is known: not that of folders that are encrypted and fold case. */
  static boolean isKnown(int version) {
    return version >= LEGACY && version <= TEA + UNSIGNED;
  }

  /**
   * Hashes a name.
   *
   * @param version as in the folder's root
   * @param unsigned whether bytes are, where the version does not say
   * @param seed of the superblock; four zeros: the algorithm's own
   * @return a number without sign, whose lowest bit is 0
   */
  static int of(byte[] name, int version, boolean unsigned, int[] seed) {
    boolean bytesUnsigned = unsigned || version >= UNSIGNED;
    int[] state = {0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476};
    if ((seed[0] | seed[1] | seed[2] | seed[3]) != 0) {
      state = seed.clone();
    }
    int hash =
        switch (version % UNSIGNED) {
          case LEGACY -> legacy(name, bytesUnsigned);
          case HALF_MD4 -> {
            for (int at = 0; at < name.length; at += 32) {
              halfMd4(state, words(name, at, 8, bytesUnsigned));
            }
            yield state[1];
          }
          default -> {
            for (int at = 0; at < name.length; at += 16) {
              tea(state, words(name, at, 4, bytesUnsigned));
            }
            yield state[0];
          }
        };
    int even = hash & ~1;
    return even == LAST ? LAST - 2 : even;
  }

  private static int value(byte b, boolean unsigned) {
    return unsigned ? b & 0xFF : b;
  }

  private static int legacy(byte[] name, boolean unsigned) {
    int before = 0x37ABE8F9;
    int last = 0x12A3FE2D;
    for (byte b : name) {
      int hash = before + (last ^ value(b, unsigned) * 7152373);
      if (hash < 0) {
        hash -= 0x7FFFFFFF;
      }
      before = last;
      last = hash;
    }
    return last << 1;
  }

  /** The next bytes as big-endian words, filled up with the number of bytes that are left. */
  private static int[] words(byte[] name, int from, int count, boolean unsigned) {
    int left = name.length - from;
    int filling = (left & 0xFF) * 0x01010101;
    int[] words = new int[count];
    for (int w = 0; w < count; w++) {
      int word = filling;
      for (int i = 4 * w; i < 4 * w + 4 && i < left; i++) {
        word = value(name[from + i], unsigned) + (word << 8);
      }
      words[w] = word;
    }
    return words;
  }

  private static void tea(int[] state, int[] key) {
    int b0 = state[0];
    int b1 = state[1];
    int sum = 0;
    for (int round = 0; round < 16; round++) {
      sum += 0x9E3779B9;
      b0 += (b1 << 4) + key[0] ^ b1 + sum ^ (b1 >>> 5) + key[1];
      b1 += (b0 << 4) + key[2] ^ b0 + sum ^ (b0 >>> 5) + key[3];
    }
    state[0] += b0;
    state[1] += b1;
  }

  /** Three rounds of MD4 on eight words. */
  private static void halfMd4(int[] state, int[] in) {
    int[][] order = {{0, 1, 2, 3, 4, 5, 6, 7}, {1, 3, 5, 7, 0, 2, 4, 6}, {3, 7, 2, 6, 1, 5, 0, 4}};
    int[][] shifts = {{3, 7, 11, 19}, {3, 5, 9, 13}, {3, 9, 11, 15}};
    int[] constant = {0, K2, K3};
    int a = state[0];
    int b = state[1];
    int c = state[2];
    int d = state[3];
    for (int round = 0; round < 3; round++) {
      for (int step = 0; step < 8; step++) {
        int mixed =
            switch (round) {
              case 0 -> d ^ b & (c ^ d);
              case 1 -> (b & c) + ((b ^ c) & d);
              default -> b ^ c ^ d;
            };
        int sum = a + mixed + in[order[round][step]] + constant[round];
        a = d;
        d = c;
        c = b;
        b = Integer.rotateLeft(sum, shifts[round][step % 4]);
      }
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
  }
}
