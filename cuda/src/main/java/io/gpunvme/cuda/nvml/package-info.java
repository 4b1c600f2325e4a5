/**
 * NVIDIA's management library (NVML), opened at run time: the NVLinks between GPUs, which neither
 * sysfs nor CUDA's driver API tells.
 *
 * <p>In: reading. Out: everything of NVML that changes a GPU's state.
 */
@NullMarked
package io.gpunvme.cuda.nvml;

import org.jspecify.annotations.NullMarked;
