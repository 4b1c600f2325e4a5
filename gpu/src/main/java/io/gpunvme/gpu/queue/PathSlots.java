package io.gpunvme.gpu.queue;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.queue.DeviceLayout.PathSlot;
import java.util.Arrays;
import java.util.List;

/**
 * The hash table of a {@link DeviceDirectory}: each path is in the slot that its hash says, or in
 * one of the next.
 */
final class PathSlots {
  /** Most slots that a kernel looks at for one path. */
  static final int MOST_PROBES = 128;

  /** Tries, each with another hash. Names of a foreign image may be chosen to collide. */
  private static final int SEEDS = 8;

  private static final int OFFSET_BASIS = 0x811C9DC5;
  private static final int PRIME = 0x01000193;

  private final int seed;
  private final int[] hashes;
  private final int[] files;
  private int probes = 1;

  private PathSlots(int seed, List<byte[]> paths) {
    this.seed = seed;
    hashes = paths.stream().mapToInt(path -> hash(seed, path)).toArray();
    // Half of them or more stay empty, so few slots are looked at.
    files = new int[paths.isEmpty() ? 1 : Integer.highestOneBit(2 * paths.size() - 1) << 1];
    Arrays.fill(files, PathSlot.NONE);
  }

  /**
   * Puts each path into a slot.
   *
   * @param most slots for one path
   * @throws InvalidRequestException if some path needs more with each hash that is tried
   */
  static PathSlots of(List<byte[]> paths, int most) {
    for (int seed = 0; seed < SEEDS; seed++) {
      PathSlots slots = new PathSlots(seed, paths);
      if (slots.fill(most)) {
        return slots;
      }
    }
    throw new InvalidRequestException(
        "the hashes of some of %d paths are the same, by chance or on purpose: none of %d hash"
                .formatted(paths.size(), SEEDS)
            + " functions finds each within %d slots; rename some files".formatted(most));
  }

  private boolean fill(int most) {
    for (int file = 0; file < hashes.length; file++) {
      int at = hashes[file] & mask();
      int looked = 1;
      while (files[at] != PathSlot.NONE) {
        at = at + 1 & mask();
        if (++looked > most) {
          return false;
        }
      }
      files[at] = file;
      probes = Math.max(probes, looked);
    }
    return true;
  }

  /** FNV-1a with 32 bits, its halves folded: {@code DeviceDirectory::hash_of}. */
  static int hash(int seed, byte[] path) {
    int hash = OFFSET_BASIS ^ seed;
    for (byte b : path) {
      hash = (hash ^ Byte.toUnsignedInt(b)) * PRIME;
    }
    return hash ^ hash >>> Short.SIZE;
  }

  int seed() {
    return seed;
  }

  int size() {
    return files.length;
  }

  int mask() {
    return files.length - 1;
  }

  /** How many slots from the hash's own on may have a path. */
  int probes() {
    return probes;
  }

  /** The number of the path in a slot; {@link PathSlot#NONE} if there is none. */
  int file(int slot) {
    return files[slot];
  }

  /** The hash of a path by its number. */
  int hash(int file) {
    return hashes[file];
  }
}
