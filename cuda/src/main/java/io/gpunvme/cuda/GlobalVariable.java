package io.gpunvme.cuda;

/**
 * The place of a {@code __device__} or {@code __constant__} variable of a module.
 *
 * @param address on the device, valid until the module is closed
 * @param size in bytes
 */
public record GlobalVariable(long address, long size) {}
