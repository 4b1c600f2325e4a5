/**
 * What the bytes are for: a CUDA GPU, or the CPU stand-in where there is none.
 *
 * <p>In: accelerators and the memory on them, ours and that of others, with its mapping for
 * controllers and the copies of embedded ones; when the driver can be asked for something beside
 * kernels. Out: how bytes get there ({@code transfer}).
 */
@NullMarked
package io.gpunvme.gpu.accel;

import org.jspecify.annotations.NullMarked;
