/**
 * CUDA over {@code java.lang.foreign}: the driver API (devices, the primary context, memory,
 * streams, events, modules, launches) and NVRTC.
 *
 * <p>In here: bindings with the names of the CUDA driver API reference, owners of the allocated
 * objects, and errors. Both libraries are opened at run time, their functions are looked up at
 * first use; neither is needed to build or to start. Start at {@link io.gpunvme.cuda.Cuda}. Not in
 * here: anything that knows NVMe or files, kernels, and any policy.
 *
 * <p>The classes named {@code ...Calls} are the raw calls, grouped as in the reference; the public
 * classes add ownership. Everything belongs to one {@link io.gpunvme.cuda.CudaContext}, which frees
 * everything that is still open when it is closed.
 */
@NullMarked
package io.gpunvme.cuda;

import org.jspecify.annotations.NullMarked;
