package io.gpunvme.models;

import org.jspecify.annotations.Nullable;

/**
 * The place of a tensor, or of a part of one, in a layer.
 *
 * @param tensor its name
 * @param slice null: all of it
 * @param place of the first byte in the layer, 0 or more; the bytes follow without gaps
 */
public record TensorPlace(String tensor, @Nullable TensorSlice slice, long place) {}
