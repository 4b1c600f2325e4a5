package io.gpunvme.storage.path;

import io.gpunvme.gpu.accel.DeviceBuffer;

/**
 * A run of bytes of a source and its place in a buffer. Nothing needs to be aligned.
 *
 * @param offset first byte in the source
 * @param buffer where the bytes go to, or come from
 * @param bufferOffset first byte in the buffer
 * @param length bytes, 0 or more
 */
public record Range(long offset, DeviceBuffer buffer, long bufferOffset, long length) {}
