package io.gpunvme.tools.top;

import org.jspecify.annotations.Nullable;

/**
 * What was done between two looks, and what is to be seen at the second. Null is "not known": the
 * process does not count it, or was not there at the first look.
 *
 * @param commandsPerSecond that were completed
 * @param readBytesPerSecond of commands that succeeded
 * @param writtenBytesPerSecond likewise
 * @param latencyMicros mean of the commands that were completed; null if there were none, too
 * @param outstanding commands that the controller has now; null if there is no queue pair, too
 * @param retries repeated commands since the controller was opened
 */
public record TopRates(
    @Nullable Double commandsPerSecond,
    @Nullable Double readBytesPerSecond,
    @Nullable Double writtenBytesPerSecond,
    @Nullable Double latencyMicros,
    @Nullable Long outstanding,
    @Nullable Long retries) {
  /** Read and written together; null if either is not known. */
  public @Nullable Double bytesPerSecond() {
    return readBytesPerSecond == null || writtenBytesPerSecond == null
        ? null
        : (Double) (readBytesPerSecond + writtenBytesPerSecond);
  }
}
