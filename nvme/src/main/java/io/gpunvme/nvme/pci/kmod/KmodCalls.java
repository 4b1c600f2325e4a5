package io.gpunvme.nvme.pci.kmod;

import java.lang.foreign.MemorySegment;

/** Requests to the module's file; tests have a module of their own behind it. */
@FunctionalInterface
interface KmodCalls {
  /**
   * One request.
   *
   * @throws io.gpunvme.ffi.PosixException if the module refuses
   */
  int ioctl(long request, MemorySegment argument);
}
