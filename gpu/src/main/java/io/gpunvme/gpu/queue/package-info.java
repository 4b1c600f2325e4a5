/**
 * The host's side of the device library ({@code gpu/src/main/cuda/gpunvme}): everything that a
 * kernel needs to drive an SSD itself.
 *
 * <p>In: the layouts that both sides share, queue pairs in the memory of an accelerator and their
 * recovery, buffers, files, directories, stripe sets, and arrays with the page cache behind them,
 * described for kernels, storage handles, loading device code, and where queues and data can lie.
 * Out: carrying out a plan ({@code transfer}), NVMe itself ({@code nvme.driver}), CUDA itself
 * ({@code io.gpunvme.cuda}).
 */
@NullMarked
package io.gpunvme.gpu.queue;

import org.jspecify.annotations.NullMarked;
