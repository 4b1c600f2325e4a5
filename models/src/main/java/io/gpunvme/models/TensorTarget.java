package io.gpunvme.models;

import io.gpunvme.gpu.accel.DeviceBuffer;
import org.jspecify.annotations.Nullable;

/**
 * Where a tensor, or a part of one, is read to: memory that the caller has.
 *
 * @param tensor its name
 * @param slice null: all of it
 * @param buffer of the accelerator that the weights were opened with
 * @param offset of the first byte in the buffer; what is read follows without gaps
 */
public record TensorTarget(
    String tensor, @Nullable TensorSlice slice, DeviceBuffer buffer, long offset) {}
