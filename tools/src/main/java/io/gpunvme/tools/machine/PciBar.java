package io.gpunvme.tools.machine;

/**
 * A base address register that has an address.
 *
 * @param index 0..5
 * @param bytes how large
 * @param memory memory space, not I/O ports
 * @param prefetchable memory that may be read ahead
 */
public record PciBar(int index, long bytes, boolean memory, boolean prefetchable) {}
