/**
 * Small things that every module needs and that know nothing of NVMe or CUDA: the exception for
 * impossible requests, parsing of sizes, text that is safe in messages, rounding, closing, the
 * owner of a dma-buf, locks that cost those who share them nothing, the version.
 */
@NullMarked
package io.gpunvme.base;

import org.jspecify.annotations.NullMarked;
