package io.gpunvme.gpu.accel;

/**
 * Memory that is allocated on an accelerator, in bytes.
 *
 * @param device of the accelerator; on the stand-in, which has only one kind, all of it
 * @param pinned of the host, allocated or registered
 */
public record MemoryInUse(long device, long pinned) {}
