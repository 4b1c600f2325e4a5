package io.gpunvme.storage.path;

import org.HdrHistogram.Histogram;

/**
 * The counts of one path.
 *
 * @param readBytes requested bytes that were read
 * @param writtenBytes bytes written
 * @param operations system calls, cuFile calls or NVMe commands
 * @param retries operations repeated
 * @param stagedBytes bytes that went through the path's own memory
 * @param overreadBytes bytes moved without being requested
 * @param latency of the operations, ns
 */
public record PathStats(
    long readBytes,
    long writtenBytes,
    long operations,
    long retries,
    long stagedBytes,
    long overreadBytes,
    Histogram latency) {}
