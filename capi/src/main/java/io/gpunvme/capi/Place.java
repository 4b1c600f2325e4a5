package io.gpunvme.capi;

import io.gpunvme.gpu.accel.DeviceBuffer;

/**
 * Memory that C named by an address, as transfers take it.
 *
 * @param memory of the accelerator that has it
 * @param buffer where it is
 * @param origin the address of the buffer's first byte
 * @param start of the memory that may be used there
 * @param end of it, exclusive
 * @param release to be run once when nothing is transferred there any more
 */
record Place(
    Memory memory, DeviceBuffer buffer, long origin, long start, long end, Runnable release) {
  /** Where an address is in the buffer. */
  long offset(long address) {
    return address - origin;
  }

  /** Whether a range lies in it. */
  boolean contains(long address, long bytes) {
    return address >= start && address < end && bytes <= end - address;
  }
}
