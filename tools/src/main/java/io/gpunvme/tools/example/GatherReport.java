package io.gpunvme.tools.example;

import io.gpunvme.gpu.queue.Placement;

/**
 * What {@link Gather} did.
 *
 * @param options what was asked for
 * @param accelerator whose memory the rows were read into
 * @param initiator who read them: {@code GPU} or {@code CPU}
 * @param placement where queues and rows lay
 * @param queuePairs that were used, of each SSD
 * @param depth commands in flight per queue pair, at most
 * @param ssds how many
 * @param reads rows that were read
 * @param bytes in all
 * @param nanos from the launch until the kernel was over, or of the CPU's walks
 * @param retries reads that were repeated, because the SSD said that they may be
 * @param verified the CPU came to the same results
 */
public record GatherReport(
    GatherOptions options,
    String accelerator,
    String initiator,
    Placement placement,
    int queuePairs,
    int depth,
    int ssds,
    long reads,
    long bytes,
    long nanos,
    long retries,
    boolean verified) {}
