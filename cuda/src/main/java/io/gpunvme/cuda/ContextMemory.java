package io.gpunvme.cuda;

/**
 * Memory that was allocated through a {@link CudaContext} and is still open, in bytes.
 *
 * @param device of the GPU
 * @param pinned of the host, allocated or registered
 */
public record ContextMemory(long device, long pinned) {}
