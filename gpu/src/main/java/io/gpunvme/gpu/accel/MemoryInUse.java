package io.gpunvme.gpu.accel;

/**
 * Memory that an accelerator has given and not got back, in bytes.
 *
 * @param device of the accelerator; on the stand-in, which does not tell them apart, all of it
 * @param pinned of the host, allocated or registered
 */
public record MemoryInUse(long device, long pinned) {}
