package io.gpunvme.models.raw;

import io.gpunvme.models.format.TensorInfo;

/**
 * A tensor of a raw model.
 *
 * @param info its offset counts from the superblock's first byte
 * @param crc32c of its bytes, as {@link java.util.zip.CRC32C} has it
 */
public record RawTensor(TensorInfo info, int crc32c) {}
