package io.gpunvme.gpu.model;

/**
 * One call of an array.
 *
 * @param page from 1 on, as tags are; of the end of a pin that of the pin; 0: all
 * @param store number of the store, for calls that store
 */
record CacheOp(Kind kind, int page, int store) {
  enum Kind {
    /** Gets the page, loads, gives it back. */
    GET,
    /** Gets the page, stores, marks it, gives it back. */
    STORE,
    /** Gets the page and keeps it. */
    PIN,
    /** As PIN, but a page that is not there is not read. */
    PIN_TO_OVERWRITE,
    /** Loads from a pinned page and gives it back. */
    UNPIN,
    /** Stores all of a pinned page and gives it back. */
    UNPIN_OVERWRITTEN,
    /** Has the page read and leaves. */
    PREFETCH,
    /** Writes what is dirty. */
    CLEAN,
    /** Has stores to a page allowed, as the host does: it is kept out of the tier. */
    OPEN
  }

  boolean pins() {
    return kind == Kind.PIN || kind == Kind.PIN_TO_OVERWRITE;
  }

  boolean stores() {
    return kind == Kind.STORE || kind == Kind.UNPIN_OVERWRITTEN;
  }
}
