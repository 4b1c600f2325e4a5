package io.gpunvme.capi;

import io.gpunvme.core.accel.DeviceBuffer;

/**
 * Memory that C named by an address, as transfers take it.
 *
 * @param buffer where it is
 * @param offset of its first byte
 * @param release to be run once when nothing is transferred there any more
 */
record Place(DeviceBuffer buffer, long offset, Runnable release) {}
