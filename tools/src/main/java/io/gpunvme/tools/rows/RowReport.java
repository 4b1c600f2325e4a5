package io.gpunvme.tools.rows;

import io.gpunvme.gpu.queue.PageCacheCounters;
import org.jspecify.annotations.Nullable;

/**
 * What {@link RowBench} has measured, and compared with what the SSD has.
 *
 * @param accelerator its name
 * @param initiator who submitted the commands: {@code GPU} or {@code CPU}
 * @param rows of the matrix
 * @param medianNanos of a batch
 * @param minNanos of the fastest
 * @param maxNanos of the slowest
 * @param flushNanos of the flush at the end; 0: nothing was updated
 * @param checkedRows of the last batch, that were compared
 * @param counters of the GPU's cache, since the first batch that counts; null if the CPU read
 */
public record RowReport(
    String accelerator,
    String initiator,
    long rows,
    long medianNanos,
    long minNanos,
    long maxNanos,
    long flushNanos,
    int checkedRows,
    @Nullable PageCacheCounters counters) {}
