package io.gpunvme.nvme.driver;

import io.gpunvme.nvme.driver.RecoveryOutcome.Rung;
import org.jspecify.annotations.Nullable;

/** What {@link Recovery} can do about the commands outstanding on the queue pair it recovers. */
interface Outstanding {
  /** Of a pair that somebody else drives: its owner alone knows its commands. */
  Outstanding ELSEWHERE =
      new Outstanding() {
        @Override
        public @Nullable Rung settle() {
          return null;
        }

        @Override
        public void collect() {}

        @Override
        public int end(@Nullable String fatal) {
          return 0;
        }
      };

  /**
   * Tries what needs no new queue.
   *
   * @return the rung that helped, or null if the queue pair must be replaced
   */
  @Nullable Rung settle();

  /** Hands over completions that the controller posted while its submission queue was deleted. */
  void collect();

  /**
   * Ends what is left with status Command Aborted By Host; the controller must not be able to touch
   * the commands' data any more.
   *
   * @param fatal the controller's fatal error that made this necessary, in words; null if it was
   *     something else
   * @return how many commands that were
   */
  int end(@Nullable String fatal);
}
