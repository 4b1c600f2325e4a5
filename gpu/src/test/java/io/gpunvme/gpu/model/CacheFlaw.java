package io.gpunvme.gpu.model;

/** The page cache's protocol with one of its rules left out. {@code NONE} is the protocol. */
enum CacheFlaw {
  NONE,

  // ---- looking
  /** The tag is not looked at again in what a hit's atomicAdd returned. */
  TOUCH_WITHOUT_SECOND_LOOK,
  /** Nor in that of a miss. */
  CHOOSE_WITHOUT_SECOND_LOOK,
  /** A hit takes a page that is still on its way. */
  TOUCH_TAKES_FILLING,

  // ---- choosing a frame
  /** Frames are chosen without the set's lock. */
  NO_LOCK,
  /** The page is not looked for again under the lock. */
  NO_LOOK_UNDER_LOCK,
  /** A frame is given away by a store: references that were taken since are gone. */
  CLAIM_BY_STORE,
  /** A frame is given away whoever holds it. */
  EVICT_WITH_REFERENCES,
  /** A frame is given away while it is dirty. */
  EVICT_DIRTY,
  /** Cleaning takes no reference, and a frame that is being written may be given away. */
  EVICT_CLEANING,
  /** A frame whose read was given up is free at once. */
  LOST_REUSED,
  /** A frame whose write was given up is VALID at once. */
  STUCK_REUSED,
  /** Whoever finds the late command of a frame not over does not serve for it. */
  LATE_NOT_SERVED,
  /** A frame that comes back from STUCK is clean. */
  REGAINED_CLEAN,

  // ---- data comes
  /** A frame is VALID as soon as the read is submitted. */
  PUBLISH_BEFORE_DATA,
  /** The end of a read is stored, not added: references that were taken since are gone. */
  PUBLISH_BY_STORE,
  /** A frame whose read failed keeps its tag. */
  FAILED_KEEPS_TAG,
  /** A frame whose read was given up keeps its tag. */
  LOST_KEEPS_TAG,
  /** Whoever waits for a page leaves a parked command to others. */
  WAITER_DOES_NOT_TAKE,
  /** Whoever wants a frame leaves pages that nobody waits for alone. */
  EVICTOR_DOES_NOT_TAKE,
  /** A parked command is taken by a load and a store. */
  TAKE_NOT_ATOMIC,
  /** A prefetch that finds no slot leaves the frame as it is. */
  PREFETCH_LEAVES_FRAME,
  /** Prefetches take as many slots as there are. */
  PREFETCH_TAKES_ALL_SLOTS,

  // ---- stores
  /** The dirty mark is cleared when the write is over, not before it begins. */
  DIRTY_CLEARED_AFTER,
  /** A write that failed does not set the mark again. */
  FAILED_WRITE_IS_CLEAN,
  /** The mark is set before the store. */
  MARK_BEFORE_STORE,
  /** The mark is set when the reference is gone. */
  MARK_AFTER_DROP,
  /** A page that is overwritten is VALID before it has its contents. */
  OVERWRITE_VALID_AT_ONCE,
  /** A page that was overwritten is clean. */
  WRITTEN_NOT_DIRTY,
  /** Who cleans leaves frames alone that others are writing. */
  CLEAN_SKIPS_CLEANING,
  /** Who cleans calls it a success although a frame is STUCK. */
  CLEAN_SKIPS_STUCK,
  /** Who cleans leaves a STUCK frame as it is although its late command is over. */
  CLEAN_LEAVES_STUCK,
  /** Who cleans takes a STUCK frame back without the set's lock. */
  CLEAN_REGAINS_UNLOCKED,

  // ---- the host tier
  /** The tag of a frame of the tier is not looked at again. */
  TIER_WITHOUT_SECOND_LOOK,
  /** A page is copied from the tier without a reference. */
  TIER_WITHOUT_REFERENCE,
  /** A page is copied from the tier that is still on its way to there. */
  TIER_TAKES_FILLING,
  /** A frame of the tier is given away whoever copies from it. */
  TIER_EVICTS_HELD,
  /** A frame of the tier is given away by a store. */
  TIER_CLAIM_BY_STORE,
  /** A frame of the tier is VALID before its data is there. */
  TIER_VALID_BEFORE_DATA,
  /** What was in a frame is copied to the tier when the next page's read has begun. */
  TIER_COPIES_LATE,
  /** Pages that may be stored to are in the tier. */
  TIER_KEEPS_WRITABLE,
  /** Whether a page may be in the tier is asked before there is a frame for it. */
  TIER_ASKED_BEFORE_CLAIM,
  /** A frame is VALID before its data was copied from the tier. */
  TAKEN_BEFORE_DATA,

  // ---- ends
  /** Whoever finds no frame waits for ever, with what it has pinned. */
  WAIT_WITHOUT_END,
  /** Whoever waits for a page that is being overwritten does so for ever. */
  JOIN_WITHOUT_END,
  /** Whoever learns that the read has failed keeps its reference. */
  FAILED_KEEPS_REFERENCE
}
