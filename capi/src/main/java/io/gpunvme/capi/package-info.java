/**
 * What stands behind the C API: functions in the shape of {@code capi/src/main/c/table.h}, handles
 * for objects, addresses for memory. Of CUDA it knows what its callers bring along: addresses,
 * streams, and the context of their threads. Nothing here knows NVMe beyond what {@code core}
 * shows; nothing else in the project may use it.
 */
@NullMarked
package io.gpunvme.capi;

import org.jspecify.annotations.NullMarked;
