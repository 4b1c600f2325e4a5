package io.gpunvme.storage.layer;

import io.gpunvme.base.InvalidRequestException;
import java.time.Duration;

/**
 * The options of a {@link LayerLoader}.
 *
 * @param maxBytes of the accelerator's memory that the loader may take, &gt; 0
 * @param reads layers read at a time, 1..64; more of them help where one read does not keep the
 *     source busy
 * @param patience how long a stream may wait for a read that was started, &gt; 0. After that the
 *     layer counts as failed and the stream goes on: see {@link LoadedLayer#await}
 */
public record LayerOptions(long maxBytes, int reads, Duration patience) {
  private static final int READS = 2;
  private static final Duration PATIENCE = Duration.ofSeconds(30);

  /** Checks the numbers. */
  public LayerOptions {
    if (maxBytes <= 0) {
      throw new InvalidRequestException("a layer loader cannot work with " + maxBytes + " bytes");
    }
    if (reads < 1 || reads > 64) {
      throw new InvalidRequestException("reads " + reads + " is outside 1..64");
    }
    if (patience.isNegative() || patience.isZero() || patience.toDays() > 365) {
      throw new InvalidRequestException("patience " + patience + " is outside 1 ns..365 days");
    }
  }

  /** No limit of memory, two reads at a time, half a minute. */
  public static LayerOptions defaults() {
    return new LayerOptions(Long.MAX_VALUE, READS, PATIENCE);
  }

  /** The same with another limit. */
  public LayerOptions withMaxBytes(long bytes) {
    return new LayerOptions(bytes, reads, patience);
  }

  /** The same with another number of reads. */
  public LayerOptions withReads(int count) {
    return new LayerOptions(maxBytes, count, patience);
  }

  /** The same with another patience. */
  public LayerOptions withPatience(Duration longest) {
    return new LayerOptions(maxBytes, reads, longest);
  }
}
