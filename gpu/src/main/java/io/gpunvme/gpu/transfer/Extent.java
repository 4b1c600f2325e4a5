package io.gpunvme.gpu.transfer;

/**
 * A run of logical blocks and its place in a buffer.
 *
 * @param slba first logical block
 * @param blocks how many, &gt; 0
 * @param bufferOffset bytes, a multiple of 4
 */
public record Extent(long slba, long blocks, long bufferOffset) {}
