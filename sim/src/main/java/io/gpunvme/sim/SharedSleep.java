package io.gpunvme.sim;

/**
 * The sleep of the workers of a quiet controller, which a host in another process can see and end.
 * One thread sleeps at a time; {@link #wake} is for all threads.
 */
public interface SharedSleep {
  /**
   * Says that the workers sleep from now on; they look at the doorbells once more after this.
   *
   * @return false if the host does not promise to wake them: then they do not sleep
   */
  boolean lieDown();

  /**
   * Sleeps until the host or {@link #wake} ends it, which may have happened already.
   *
   * @return false if the time was over first
   */
  boolean await(long nanos);

  /** Ends the sleep that {@link #lieDown} has begun. */
  void wake();

  /** Says that they do not sleep; they look at the doorbells after this. */
  void getUp();
}
