/**
 * Accelerators, the consumers of the bytes: a CUDA GPU, or the CPU stand-in without one.
 *
 * <p>In: accelerators and the memory on them, ours and that of others, with its mapping for
 * controllers and the copies of embedded ones; when the driver can be called while kernels run.
 * Out: how bytes get there ({@code transfer}).
 */
@NullMarked
package io.gpunvme.gpu.accel;

import org.jspecify.annotations.NullMarked;
