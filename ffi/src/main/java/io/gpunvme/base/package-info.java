/**
 * Small things that every module needs and that know nothing of NVMe or CUDA: the exception for
 * requests that cannot be right, how sizes are read, rounding, closing, the owner of a dma-buf, the
 * version.
 */
@NullMarked
package io.gpunvme.base;

import org.jspecify.annotations.NullMarked;
