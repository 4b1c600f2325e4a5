package io.gpunvme.storage.path.cufile;

import io.gpunvme.base.InvalidRequestException;

/**
 * How {@link CuFilePath} works.
 *
 * @param threads calls at a time in one transfer, 1 to 256
 * @param chunk longest call in bytes, a multiple of 4096
 * @param batch requests per batch, 1 to 256; 0: one call after the other, no batches. For programs
 *     that open a {@link CuFilePath} themselves; addresses have no such option, because in
 *     compatibility mode libcufile 1.15.1 was seen to take half a minute for some batches
 * @param direct opens the file with {@code O_DIRECT}; otherwise cuFile decides for each call. Older
 *     ones than 1.7 cannot: they are always given it
 * @param statistics level of cuFile's statistics, 0 to 3, where it has them; 3 tells compatibility
 *     mode from direct transfers, 0 leaves them as they are
 */
public record CuFileOptions(int threads, long chunk, int batch, boolean direct, int statistics) {
  /** What cuFile was seen to be fastest with. */
  public static final CuFileOptions DEFAULTS = new CuFileOptions(8, 4 << 20, 0, false, 3);

  private static final int MOST = 256;
  private static final int PAGE = 4096;
  private static final int MOST_LEVEL = 3;

  /** Checks the limits. */
  public CuFileOptions {
    require(threads >= 1 && threads <= MOST, threads + " threads: must be 1 to 256");
    require(
        chunk >= PAGE && chunk % PAGE == 0, chunk + " bytes a call: must be a multiple of 4096");
    require(batch >= 0 && batch <= MOST, batch + " requests in a batch: must be 0 to 256");
    require(
        statistics >= 0 && statistics <= MOST_LEVEL,
        "statistics of level " + statistics + ": must be 0 to 3");
  }

  private static void require(boolean good, String otherwise) {
    if (!good) {
      throw new InvalidRequestException("cuFile: " + otherwise);
    }
  }

  /** The same with so many calls at a time. */
  public CuFileOptions withThreads(int count) {
    return new CuFileOptions(count, chunk, batch, direct, statistics);
  }

  /** The same with calls of at most so many bytes. */
  public CuFileOptions withChunk(long bytes) {
    return new CuFileOptions(threads, bytes, batch, direct, statistics);
  }

  /** The same with batches of so many requests; 0 for none. */
  public CuFileOptions withBatch(int requests) {
    return new CuFileOptions(threads, chunk, requests, direct, statistics);
  }

  /** The same with or without {@code O_DIRECT}. */
  public CuFileOptions withDirect(boolean value) {
    return new CuFileOptions(threads, chunk, batch, value, statistics);
  }

  /** The same with statistics of this level. */
  public CuFileOptions withStatistics(int level) {
    return new CuFileOptions(threads, chunk, batch, direct, level);
  }
}
