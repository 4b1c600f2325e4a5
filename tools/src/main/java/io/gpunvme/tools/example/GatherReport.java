package io.gpunvme.tools.example;

/**
 * What {@link Gather} did.
 *
 * @param options what was asked for
 * @param accelerator the GPU
 * @param reads rows read by the GPU
 * @param bytes in all
 * @param nanos from the launch until the kernel was over
 * @param verified the CPU came to the same results
 */
public record GatherReport(
    GatherOptions options,
    String accelerator,
    long reads,
    long bytes,
    long nanos,
    boolean verified) {}
