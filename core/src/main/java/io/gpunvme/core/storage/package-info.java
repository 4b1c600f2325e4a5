/**
 * What everybody opens: {@link io.gpunvme.core.storage.GpuStorage}, one interface over every path
 * of {@code io.gpunvme.core.path}. Addresses, the choice of a path and the reasons for it,
 * asynchronous and batched transfers are here; how bytes move is not.
 */
@NullMarked
package io.gpunvme.core.storage;

import org.jspecify.annotations.NullMarked;
