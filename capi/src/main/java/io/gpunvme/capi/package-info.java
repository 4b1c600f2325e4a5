/**
 * What stands behind the C API: functions in the shape of {@code capi/src/main/c/table.h}, handles
 * for objects, addresses for memory. Nothing here knows NVMe or CUDA beyond what {@code core}
 * shows; nothing else in the project may use it.
 */
@NullMarked
package io.gpunvme.capi;

import org.jspecify.annotations.NullMarked;
