package io.gpunvme.gpu.model;

import java.util.ArrayList;
import java.util.List;

/** A small cache, who uses it, and what may go wrong. */
final class CacheConfig {
  /** Frames, which are one set. */
  static final int WAYS = 2;

  static final int PAGES = 3;

  final List<List<CacheOp>> programs = new ArrayList<>();

  /** Slots of the queue: commands that may be under way or not taken yet. */
  int slots = 3;

  int mostParked = 1;

  int stores;
  int drops;
  int late;
  int failures;
  boolean usedBit;
  boolean tier;
  CacheFlaw flaw = CacheFlaw.NONE;

  /**
   * Adds a caller.
   *
   * @param program calls: {@code get}, {@code store}, {@code pin}, {@code over} (a pin to
   *     overwrite, and its end at once), {@code hold} (a pin to overwrite) and {@code pre}
   *     (prefetch), with the number of a page behind; {@code unpin} (the last pin) {@code clean};
   *     and {@code open} (stores to a page are allowed from now on; it was in the tier before). A
   *     caller has one pin at a time.
   */
  CacheConfig caller(String program) {
    List<CacheOp> ops = new ArrayList<>();
    for (String word : program.split(" ")) {
      int page = Character.isDigit(word.charAt(word.length() - 1)) ? page(word) : 0;
      switch (word.replaceAll("\\d", "")) {
        case "get" -> ops.add(new CacheOp(CacheOp.Kind.GET, page, 0));
        case "store" -> ops.add(new CacheOp(CacheOp.Kind.STORE, page, stores++));
        case "pin" -> ops.add(new CacheOp(CacheOp.Kind.PIN, page, 0));
        case "hold" -> ops.add(new CacheOp(CacheOp.Kind.PIN_TO_OVERWRITE, page, 0));
        case "over" -> {
          ops.add(new CacheOp(CacheOp.Kind.PIN_TO_OVERWRITE, page, 0));
          ops.add(unpin(ops));
        }
        case "unpin" -> ops.add(unpin(ops));
        case "pre" -> ops.add(new CacheOp(CacheOp.Kind.PREFETCH, page, 0));
        case "open" -> ops.add(new CacheOp(CacheOp.Kind.OPEN, page, 0));
        case "clean" -> ops.add(new CacheOp(CacheOp.Kind.CLEAN, 0, 0));
        default -> throw new IllegalArgumentException(word);
      }
    }
    programs.add(ops);
    return this;
  }

  CacheConfig slots(int count) {
    slots = count;
    mostParked = count / 2;
    return this;
  }

  /** So many commands are never completed, whether or not they have moved their data. */
  CacheConfig drops(int most) {
    drops = most;
    return this;
  }

  /** So many commands are given up at their deadline and move their data or complete later. */
  CacheConfig late(int most) {
    late = most;
    return this;
  }

  /** So many commands fail, whether or not they have moved their data. */
  CacheConfig failures(int most) {
    failures = most;
    return this;
  }

  /** With the bit that says that a frame was used; else every frame may be had at once. */
  CacheConfig usedBit() {
    usedBit = true;
    return this;
  }

  /** With a host tier, of one frame. */
  CacheConfig tier() {
    tier = true;
    return this;
  }

  /** Whether a page may be in the tier at first: nobody may store to it. */
  boolean isTiered(int page) {
    boolean opened =
        programs.stream()
            .flatMap(List::stream)
            .anyMatch(op -> op.kind() == CacheOp.Kind.OPEN && op.page() == page);
    return storesTo(page) == 0 || opened || has(CacheFlaw.TIER_KEEPS_WRITABLE);
  }

  CacheConfig flaw(CacheFlaw rule) {
    flaw = rule;
    return this;
  }

  /** How many commands prefetches may leave parked: fewer than slots, so that others find one. */
  CacheConfig mostParked(int count) {
    mostParked = count;
    return this;
  }

  boolean has(CacheFlaw rule) {
    return flaw == rule;
  }

  /** The stores to one page, as bits. */
  int storesTo(int page) {
    int mask = 0;
    for (List<CacheOp> program : programs) {
      for (CacheOp op : program) {
        mask |= op.stores() && op.page() == page ? 1 << op.store() : 0;
      }
    }
    return mask;
  }

  private CacheOp unpin(List<CacheOp> ops) {
    for (CacheOp op : ops.reversed()) {
      if (op.kind() == CacheOp.Kind.PIN) {
        return new CacheOp(CacheOp.Kind.UNPIN, op.page(), 0);
      }
      if (op.kind() == CacheOp.Kind.PIN_TO_OVERWRITE) {
        return new CacheOp(CacheOp.Kind.UNPIN_OVERWRITTEN, op.page(), stores++);
      }
    }
    throw new IllegalArgumentException("unpin without a pin");
  }

  private static int page(String word) {
    return word.charAt(word.length() - 1) - '0';
  }
}
