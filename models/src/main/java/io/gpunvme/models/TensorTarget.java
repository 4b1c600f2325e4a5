package io.gpunvme.models;

import io.gpunvme.gpu.accel.DeviceBuffer;
import org.jspecify.annotations.Nullable;

/**
 * The target for reading a tensor or a part of one: memory of the caller.
 *
 * @param tensor its name
 * @param slice null: all of it
 * @param buffer of the accelerator that the weights are for
 * @param offset of the first byte in the buffer; the bytes follow without gaps
 */
public record TensorTarget(
    String tensor, @Nullable TensorSlice slice, DeviceBuffer buffer, long offset) {}
