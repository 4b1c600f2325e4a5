/**
 * The Java side of the C API: functions in the shape of {@code capi/src/main/c/table.h}, handles
 * for objects, addresses for memory. Of CUDA it knows only what its callers pass: addresses,
 * streams, events, and the context of their threads. It uses the public API of the other modules;
 * nothing else in the project may use it.
 */
@NullMarked
package io.gpunvme.capi;

import org.jspecify.annotations.NullMarked;
