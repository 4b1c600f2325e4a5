/**
 * The API that every program opens: {@link io.gpunvme.storage.GpuStorage}, one interface over every
 * path of {@code io.gpunvme.storage.path}. Addresses, the choice of a path and the reasons for it,
 * asynchronous and batched transfers are here; the movement of bytes is in the paths.
 */
@NullMarked
package io.gpunvme.storage;

import org.jspecify.annotations.NullMarked;
