package io.gpunvme.cli;

import io.gpunvme.base.ByteRange;
import io.gpunvme.nvme.driver.ShutdownGuard;
import io.gpunvme.tools.ssd.BorrowedBlocks;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * Work of a command that overwrites blocks of somebody's SSDs for a while. What was there is in a
 * temporary folder meanwhile, and is put back by the command's own thread, before the SSDs are shut
 * down, also if the process is told to end.
 */
final class Borrowing {
  private Borrowing() {}

  /** What is done with the blocks; throws after they are put back, or were not. */
  interface Work<T> {
    /**
     * Does it.
     *
     * @param folder takes what was there
     */
    T run(Path folder) throws IOException;
  }

  /**
   * Does it.
   *
   * @param command names the folder
   * @param device of the blocks, for messages
   * @param cancel run by another thread if the process is told to end
   */
  static <T> T run(String command, String device, ByteRange range, Runnable cancel, Work<T> work)
      throws IOException {
    try (CancelledAtExit exit = new CancelledAtExit();
        ShutdownGuard.Delay _ = ShutdownGuard.delay()) {
      exit.now(cancel);
      Path folder = Leftovers.add(Files.createTempDirectory("gpunvme-" + command + "-"));
      String what = "what was in " + range + " of " + device;
      Ending.leaves(() -> what + state(folder));
      try {
        return work.run(folder);
      } finally {
        // Not while a block is missing.
        Leftovers.deleteUnlessKept(folder);
      }
    }
  }

  private static String state(Path folder) {
    return BorrowedBlocks.missing(folder)
        .map(script -> " is not back: sh " + script + " puts it back")
        .orElse(" is there again");
  }
}
