package io.gpunvme.gpu.model;

/** What the actors do, for traces and to see that every one of these happened. */
enum Action {
  TAKE("takes slots"),
  WORD("stores IN_FLIGHT into its slot"),
  TICKET("takes a ticket"),
  SQE("writes an SQE"),
  MARK("marks a position"),
  ANNOUNCE("sets PENDING"),
  TELL("sets PENDING for the holder"),
  HOLD("becomes the holder"),
  TOO_LATE("finds that somebody else has become the holder"),
  SERVE("becomes the holder while it waits"),
  CLEAR("clears PENDING"),
  SCAN("reads the marks"),
  DOORBELL("rings the SQ doorbell"),
  LOOK("reads a CQE"),
  NO_CQE("finds no CQE"),
  DELIVER("completes a slot"),
  LATE("finds the slot of a late completion"),
  LATE_WORD("stores FREE for a late completion"),
  LATE_BIT("sets the free bit for a late completion"),
  STALE("counts a stale completion"),
  CQ_DOORBELL("rings the CQ doorbell"),
  LEAVE("leaves"),
  TOLD("cannot leave: PENDING is set"),
  AGAIN("clears PENDING and goes round again"),
  LEAVE_PENDING("leaves with PENDING set"),
  STATUS("takes its status"),
  FREE_BIT("sets its free bit"),
  QUARANTINE("quarantines its slot: TIMEOUT"),
  NO_SLOT("gives up getting a slot"),
  ADOPT("adopts a command"),
  LAST("serves a last time"),
  END("has served"),
  GONE("finds that its command did not survive the recovery"),
  EXIT("gives up after its ticket"),
  FETCH("fetches an SQE"),
  POST("posts a CQE"),
  DROP("forgets a command"),
  DUPLICATE("posts a CQE again"),
  RECOVER("recovers the queue"),
  ASK("asks for a pause"),
  ATTEND("is the one that does what the host asks for"),
  PAUSE("holds the word for the host"),
  REFUSED("finds no tickets and gives its slots back"),
  MAKE_ANEW("makes the queue pair anew"),
  KEEP("makes another queue pair of the SSD anew"),
  ABORT("ends a command in flight"),
  BACK("stores FREE into a quarantined slot"),
  RING("rings for what was marked before the pause"),
  RESUME("gives out tickets again");

  private final String text;

  Action(String text) {
    this.text = text;
  }

  @Override
  public String toString() {
    return text;
  }
}
