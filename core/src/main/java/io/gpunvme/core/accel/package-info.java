/**
 * What the bytes are for: a CUDA GPU, or the CPU stand-in where there is none.
 *
 * <p>In: accelerators and the memory allocated on them, with its mapping for controllers. Out: how
 * bytes get there ({@code transfer}).
 */
@NullMarked
package io.gpunvme.core.accel;

import org.jspecify.annotations.NullMarked;
