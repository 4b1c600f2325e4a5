/**
 * What a loader of weights has an accelerator do with bytes that are in its memory: copies of rows,
 * checksums, and floats of quantised elements.
 *
 * <p>In: buffers of {@code accel}. Out: how bytes get there ({@code storage}), what they mean.
 */
@NullMarked
package io.gpunvme.models.tensor;

import org.jspecify.annotations.NullMarked;
