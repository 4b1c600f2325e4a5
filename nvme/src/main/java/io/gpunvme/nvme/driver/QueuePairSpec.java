package io.gpunvme.nvme.driver;

import io.gpunvme.base.InvalidRequestException;

/**
 * What a queue pair is made of, fixed at its creation.
 *
 * @param qid queue identifier of both queues; 0 is the admin pair
 * @param sqSize submission queue entries, 2..65536
 * @param cqSize completion queue entries, 2..65536
 * @param depth commands in flight at most, 1..min(sqSize, cqSize) - 1, so that neither ring
 *     overflows
 * @param dstrd CAP.DSTRD: doorbells are 4 &lt;&lt; dstrd bytes apart
 * @param pageSize the controller's memory page size (CC.MPS), bytes
 * @param maxTransferBytes longest transfer of one command
 * @param dataPointers how commands name their data
 * @param timeoutNanos a command older than this has expired
 */
record QueuePairSpec(
    int qid,
    int sqSize,
    int cqSize,
    int depth,
    int dstrd,
    int pageSize,
    long maxTransferBytes,
    DataPointerMode dataPointers,
    long timeoutNanos) {
  QueuePairSpec {
    if (sqSize < 2 || sqSize > 65536 || cqSize < 2 || cqSize > 65536) {
      throw new InvalidRequestException(
          "queue sizes " + sqSize + "/" + cqSize + " are outside 2..65536 entries");
    }
    if (depth < 1 || depth > Math.min(sqSize, cqSize) - 1) {
      throw new InvalidRequestException(
          "depth " + depth + " is outside 1.." + (Math.min(sqSize, cqSize) - 1));
    }
    if (maxTransferBytes < pageSize) {
      throw new InvalidRequestException(
          "a maximum transfer of " + maxTransferBytes + " bytes is less than a page");
    }
  }

  /** The same but for the queue identifier. */
  QueuePairSpec withQid(int other) {
    return new QueuePairSpec(
        other,
        sqSize,
        cqSize,
        depth,
        dstrd,
        pageSize,
        maxTransferBytes,
        dataPointers,
        timeoutNanos);
  }
}
