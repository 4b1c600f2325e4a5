package io.gpunvme.cuda;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.gpunvme.cuda.library.Downcall;
import io.gpunvme.cuda.library.NativeFunction;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/** Memory management of the driver API: device memory, pinned and registered host memory. */
final class MemoryCalls {
  private static final MethodHandle ALLOCATE = Downcall.status(ADDRESS, JAVA_LONG);
  private static final MethodHandle FREE = Downcall.status(JAVA_LONG);
  private static final MethodHandle ALLOCATE_HOST = Downcall.status(ADDRESS, JAVA_LONG, JAVA_INT);
  private static final MethodHandle DEVICE_POINTER = Downcall.status(ADDRESS, ADDRESS, JAVA_INT);
  private static final MethodHandle REGISTER = Downcall.status(ADDRESS, JAVA_LONG, JAVA_INT);
  private static final MethodHandle GET_HANDLE =
      Downcall.status(ADDRESS, JAVA_LONG, JAVA_LONG, JAVA_INT, JAVA_LONG);

  /** CU_MEMHOSTALLOC_PORTABLE: pinned for every context; _DEVICEMAP: mapped into the device. */
  private static final int PORTABLE_AND_MAPPED = 0x01 | 0x02;

  /** CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD. */
  private static final int DMA_BUF_FD = 1;

  private final Driver driver;
  private final NativeFunction allocate;
  private final NativeFunction free;
  private final NativeFunction allocateHost;
  private final NativeFunction freeHost;
  private final NativeFunction devicePointer;
  private final NativeFunction register;
  private final NativeFunction unregister;
  private final NativeFunction getHandle;

  MemoryCalls(Driver driver) {
    this.driver = driver;
    allocate = driver.function("cuMemAlloc_v2");
    free = driver.function("cuMemFree_v2");
    allocateHost = driver.function("cuMemHostAlloc");
    freeHost = driver.function("cuMemFreeHost");
    devicePointer = driver.function("cuMemHostGetDevicePointer_v2");
    register = driver.function("cuMemHostRegister_v2");
    unregister = driver.function("cuMemHostUnregister");
    getHandle = driver.function("cuMemGetHandleForAddressRange");
  }

  long allocate(long bytes) {
    return driver.getLong(
        allocate, () -> bytes + " bytes", (f, out) -> (int) ALLOCATE.invokeExact(f, out, bytes));
  }

  void free(long address) {
    driver.run(free, () -> Driver.hex(address), f -> (int) FREE.invokeExact(f, address));
  }

  long allocateHost(long bytes) {
    return driver.getLong(
        allocateHost,
        () -> bytes + " bytes",
        (f, out) -> (int) ALLOCATE_HOST.invokeExact(f, out, bytes, PORTABLE_AND_MAPPED));
  }

  void freeHost(long address) {
    driver.run(freeHost, () -> Driver.hex(address), f -> (int) FREE.invokeExact(f, address));
  }

  /** The address by which the device reaches pinned or registered host memory. */
  long devicePointer(MemorySegment host) {
    return driver.getLong(
        devicePointer,
        () -> "of host memory at " + Driver.hex(host.address()),
        (f, out) -> (int) DEVICE_POINTER.invokeExact(f, out, host, 0));
  }

  void register(MemorySegment host, int flags) {
    driver.run(
        register,
        () ->
            host.byteSize()
                + " bytes at "
                + Driver.hex(host.address())
                + " with flags "
                + Driver.hex(flags),
        f -> (int) REGISTER.invokeExact(f, host, host.byteSize(), flags));
  }

  void unregister(long address) {
    driver.run(unregister, () -> Driver.hex(address), f -> (int) FREE.invokeExact(f, address));
  }

  /** A file descriptor of a new dma-buf for the range. */
  int dmaBuf(long address, long bytes, long flags) {
    return driver.getInt(
        getHandle,
        () -> "dma-buf of " + bytes + " bytes at " + Driver.hex(address),
        (f, out) -> (int) GET_HANDLE.invokeExact(f, out, address, bytes, DMA_BUF_FD, flags));
  }
}
