package io.gpunvme.tools.rows;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.queue.Placement;

/**
 * What {@link RowBench} does.
 *
 * @param rowBytes of a row, above 0; as many rows as the storage has room for
 * @param batch rows that are gathered at a time
 * @param batches how often, after one more that is not counted
 * @param skew 1: each row as often as any other; k: row number {@code rows * u^k} for a u from 0 to
 *     1, so that few rows are asked for often; 1 to 100
 * @param update whether rows are written back, and flushed at the end: with the bytes that they
 *     have
 * @param cacheBytes of the GPU's page cache
 * @param pageBytes of a page
 * @param placement of queues and cache
 * @param queues pairs on each SSD; 0: chosen
 * @param depth commands in flight per queue pair; 0: chosen
 */
public record RowOptions(
    long rowBytes,
    int batch,
    int batches,
    double skew,
    boolean update,
    long cacheBytes,
    int pageBytes,
    Placement placement,
    int queues,
    int depth) {
  private static final double MOST_SKEW = 100;

  /** Checks. */
  public RowOptions {
    if (rowBytes < 1 || batch < 1 || batches < 1) {
      throw new InvalidRequestException(
          "%d batches of %d rows of %d bytes: at least one of each is wanted"
              .formatted(batches, batch, rowBytes));
    }
    if (!(skew >= 1 && skew <= MOST_SKEW)) {
      throw new InvalidRequestException("a skew of " + skew + " is not from 1 to 100");
    }
    if (rowBytes > Long.MAX_VALUE / batch) {
      throw new InvalidRequestException(
          "%d rows of %d bytes are more than a machine has".formatted(batch, rowBytes));
    }
  }
}
