package io.gpunvme.gpu.queue;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;

/** Paths whose hashes are the same, all of them or in part. */
final class Collisions {
  private Collisions() {}

  private static String path(SplittableRandom random) {
    return "c/" + Long.toString(random.nextLong(1L << 40), 36);
  }

  private static int hash(String path) {
    return PathSlots.hash(0, path.getBytes(StandardCharsets.UTF_8));
  }

  /** Two paths with the same hash. */
  static List<String> pair(SplittableRandom random) {
    Map<Integer, String> seen = new HashMap<>();
    while (true) {
      String path = path(random);
      String other = seen.put(hash(path), path);
      if (other != null && !other.equals(path)) {
        return List.of(other, path);
      }
    }
  }

  /** Paths that have the same slot in each table of up to 2^14 slots. */
  static List<String> crowd(SplittableRandom random, int count) {
    List<String> crowd = new ArrayList<>();
    while (crowd.size() < count) {
      String path = path(random);
      if ((hash(path) & (1 << 14) - 1) == 77 && !crowd.contains(path)) {
        crowd.add(path);
      }
    }
    return crowd;
  }
}
