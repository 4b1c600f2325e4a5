package io.gpunvme.storage.layer;

/**
 * What a path has read.
 *
 * @param bytes since the loader was opened, by anybody who reads the same storages
 * @param mode how it works, for people; of several storages that of the first with this path
 */
public record PathUse(long bytes, String mode) {}
