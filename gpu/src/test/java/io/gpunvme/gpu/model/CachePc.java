package io.gpunvme.gpu.model;

/** What a caller of the cache does next: one operation on a shared word each. */
enum CachePc {
  // A look at the page where it is
  TOUCH_FIND,
  TOUCH_ADD,
  TOUCH_USED,
  TOUCH_BACK,
  // A frame for it
  FIND,
  ADD,
  BACK,
  LOCK,
  // Under the set's lock
  LOOK,
  REGAIN_LOAD,
  OVER,
  REGAIN,
  PARKED,
  CLAIM,
  UNUSE,
  UNLOCK,
  // The host tier
  TIER_MAY_KEEP,
  TIER_KEEP,
  TIER_CLAIM,
  TIER_COPY_OUT,
  TIER_PUBLISH,
  TIER_MAY_TAKE,
  TIER_FIND,
  TIER_ADD,
  TIER_BACK,
  TIER_COPY_IN,
  TIER_DROP,
  TIER_VALID,
  // A command
  COUNT,
  UNCOUNT,
  SUBMIT,
  AWAIT,
  PARK,
  PUBLISH,
  REDIRTY,
  /** Too late: see {@link CacheFlaw#DIRTY_CLEARED_AFTER}. */
  UNDIRTY,
  WRITE_OVER,
  // Waiting for somebody else's
  JOIN,
  TAKE,
  /** Too late: see {@link CacheFlaw#TAKE_NOT_ATOMIC}. */
  TAKE_STORE,
  DROP_FAILED,
  BUSY,
  // The data
  LOAD_DATA,
  STORE_DATA,
  MARK,
  DROP,
  OVERWRITE_DATA,
  WRITTEN,
  /** The host has made a page's array writable. */
  OPEN,
  // All that is dirty
  CLEAN_LOAD,
  CLEAN_CAS,
  CLEAN_LOCK,
  CLEAN_AGAIN,
  CLEAN_UNLOCK,
  END;

  private static final CachePc[] ALL = values();

  static CachePc of(int ordinal) {
    return ALL[ordinal];
  }

  /** Whether a caller relies on its frame's having its page. */
  boolean holds() {
    return switch (this) {
      case TOUCH_USED, LOAD_DATA, STORE_DATA, DROP, OVERWRITE_DATA, WRITTEN -> true;
      default -> false;
    };
  }

  boolean transfers() {
    return (compareTo(COUNT) >= 0 && compareTo(WRITE_OVER) <= 0)
        || this == TAKE
        || this == TAKE_STORE;
  }

  boolean tiers() {
    return compareTo(TIER_MAY_KEEP) >= 0 && compareTo(TIER_VALID) <= 0;
  }

  /** Whether a caller relies on the tier's frame having its page. */
  boolean copies() {
    return this == TIER_COPY_IN || this == TIER_DROP;
  }

  boolean cleans() {
    return compareTo(CLEAN_LOAD) >= 0 && compareTo(CLEAN_UNLOCK) <= 0;
  }

  boolean locks() {
    return (compareTo(LOOK) >= 0 && compareTo(UNLOCK) <= 0)
        || (compareTo(CLEAN_AGAIN) >= 0 && compareTo(CLEAN_UNLOCK) <= 0);
  }
}
