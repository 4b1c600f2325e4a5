package io.gpunvme.gpu.model;

/** What the actors of a page cache do, for traces and to see that every one of these happened. */
enum CacheAction {
  FIND("finds its page"),
  ABSENT("does not find its page"),
  HIT("takes a reference to its page"),
  USED("sets the used bit"),
  MISTAKEN("takes a reference to what is not its page, or not there yet"),
  GIVE_BACK("gives the reference back"),
  JOIN("takes a reference to a page on its way"),
  LOCK("takes the set's lock"),
  LOCKED("finds the set locked"),
  LOAD("loads the word of a frame"),
  PARKED("sees a command that nobody waits for"),
  NOT_PARKED("sees that somebody waits for the command"),
  OVER("sees that the frame's late command is over"),
  NOT_OVER("sees that the frame's late command is not over"),
  REGAIN("takes the frame back"),
  UNUSE("clears the used bit"),
  CLAIM("gives the frame to its page"),
  CLAIM_CLEANING("begins to write a frame that it wants"),
  CHANGED("finds the word changed"),
  UNLOCK("leaves the set's lock"),
  OPEN("has stores to a page allowed"),
  TIERED("sees that a page may be in the tier"),
  NOT_TIERED("sees that a page may not be in the tier"),
  TIER_CHOOSE("chooses the tier's frame for what was in its own"),
  TIER_REFUSE("does not keep what was in its frame"),
  TIER_CLAIM("gives the tier's frame to what was in its own"),
  TIER_COPY_OUT("copies to the tier"),
  TIER_PUBLISH("makes the tier's frame VALID"),
  TIER_HIT("takes a reference to its page in the tier"),
  TIER_COPY_IN("copies from the tier"),
  COUNT("counts the command that it is about to park"),
  TOO_MANY("sees that enough commands are parked"),
  UNCOUNT("counts a parked command less"),
  SERVE("serves, and takes late completions"),
  SUBMIT("submits a command"),
  NO_SLOT("finds no slot"),
  PARK("parks its command"),
  SUCCESS("takes the success of a command"),
  FAILURE("takes the failure of a command"),
  DEADLINE("gives a command up at its deadline"),
  PUBLISH("makes the frame VALID"),
  PUBLISH_FAILED("makes the frame FAILED"),
  PUBLISH_LOST("makes the frame LOST"),
  REDIRTY("marks the frame dirty again"),
  UNDIRTY("clears the dirty mark"),
  WRITE_OVER("ends the write"),
  STUCK("makes the frame STUCK"),
  JOINED("sees its page there"),
  JOINED_FAILED("sees that the read has failed"),
  TAKE("takes the parked command"),
  TAKEN("finds the parked command taken"),
  AGAIN("tries again"),
  GIVE_UP("ends in BUSY"),
  LOAD_DATA("loads from the page"),
  STORE_DATA("stores to the page"),
  MARK("marks the frame dirty"),
  DROP("drops its reference"),
  OVERWRITE("stores all of a page that was not read"),
  WRITTEN("makes the frame VALID and dirty, and drops its reference"),
  CLEAN("begins to write a dirty frame"),
  CLEAN_NEXT("finds nothing to write in a frame"),
  CLEAN_STUCK("finds a frame STUCK"),
  CLEAN_UNSTUCK("finds a frame STUCK no more"),
  CLEANED("has cleaned"),
  READ("carries out a read"),
  WRITE("carries out a write"),
  COMPLETE("completes a command"),
  FAIL("fails a command"),
  FORGET("forgets a command"),
  LATE("completes a command that was given up"),
  LATE_FAIL("fails a command that was given up");

  private final String text;

  CacheAction(String text) {
    this.text = text;
  }

  @Override
  public String toString() {
    return text;
  }
}
