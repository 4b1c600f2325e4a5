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

  private static final MethodHandle POINTER_ATTRIBUTE =
      Downcall.status(ADDRESS, JAVA_INT, JAVA_LONG);

  /** CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD. */
  private static final int DMA_BUF_FD = 1;

  private static final long NO_FLAGS = 0;

  /** CU_POINTER_ATTRIBUTE_CONTEXT, and others. */
  static final int CONTEXT = 1;

  static final int MEMORY_TYPE = 2;

  static final int BUFFER_ID = 7;
  static final int IS_MANAGED = 8;
  static final int DEVICE_ORDINAL = 9;
  static final int IS_LEGACY_CUDA_IPC_CAPABLE = 10;
  static final int RANGE_START_ADDR = 11;
  static final int RANGE_SIZE = 12;
  static final int MEMPOOL_HANDLE = 17;
  static final int MAPPING_SIZE = 18;
  static final int MAPPING_BASE_ADDR = 19;

  /** CU_MEMORYTYPE_DEVICE. */
  static final int TYPE_DEVICE = 2;

  private final Driver driver;
  private final NativeFunction allocate;
  private final NativeFunction free;
  private final NativeFunction allocateHost;
  private final NativeFunction freeHost;
  private final NativeFunction devicePointer;
  private final NativeFunction register;
  private final NativeFunction unregister;
  private final NativeFunction getHandle;
  private final NativeFunction pointerAttribute;

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
    pointerAttribute = driver.function("cuPointerGetAttribute");
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
  int dmaBuf(long address, long bytes) {
    return driver.getInt(
        getHandle,
        () -> "dma-buf of " + bytes + " bytes at " + Driver.hex(address),
        (f, out) -> (int) GET_HANDLE.invokeExact(f, out, address, bytes, DMA_BUF_FD, NO_FLAGS));
  }

  /** What CUDA knows of an address; fails if that is nothing. */
  PointerInfo pointer(long address) {
    boolean managed = (int) attribute(IS_MANAGED, address) != 0;
    boolean device = (int) attribute(MEMORY_TYPE, address) == TYPE_DEVICE;
    boolean mapped = device && !managed && mapped(address);
    PointerInfo.Kind kind = device ? PointerInfo.Kind.DEVICE : PointerInfo.Kind.HOST;
    return new PointerInfo(
        managed ? PointerInfo.Kind.MANAGED : kind,
        (int) attribute(DEVICE_ORDINAL, address),
        // The range of mapped memory may be what was reserved, with holes in it.
        attribute(mapped ? MAPPING_BASE_ADDR : RANGE_START_ADDR, address),
        attribute(mapped ? MAPPING_SIZE : RANGE_SIZE, address),
        attribute(BUFFER_ID, address),
        attributeOr0(CONTEXT, address),
        mapped);
  }

  /**
   * The same of a range: memory that is mapped in pieces, one behind the other, is one piece as far
   * as the range goes.
   */
  PointerInfo pointer(long address, long bytes) {
    PointerInfo info = pointer(address);
    while (info.mapped() && !info.contains(address, bytes)) {
      long end = info.start() + info.size();
      if (!mapped(end)) {
        break;
      }
      PointerInfo next = pointer(end);
      if (next.start() != end || next.device() != info.device()) {
        break;
      }
      info = info.and(next);
    }
    return info;
  }

  /** Whether this was mapped by its user: neither allocated as a whole nor part of a pool. */
  private boolean mapped(long address) {
    return attributeOr0(MAPPING_SIZE, address) != 0
        && attributeOr0(IS_LEGACY_CUDA_IPC_CAPABLE, address) == 0
        && attributeOr0(MEMPOOL_HANDLE, address) == 0;
  }

  /** 0 also for what the memory does not have, and for addresses that CUDA does not know. */
  private long attributeOr0(int attribute, long address) {
    try {
      return attribute(attribute, address);
    } catch (CudaException e) {
      if (e.code() == CudaException.INVALID_VALUE || e.code() == CudaException.NOT_SUPPORTED) {
        return 0;
      }
      throw e;
    }
  }

  private long attribute(int attribute, long address) {
    return driver.getLong(
        pointerAttribute,
        () -> "attribute " + attribute + " of " + Driver.hex(address),
        (f, out) -> (int) POINTER_ATTRIBUTE.invokeExact(f, out, attribute, address));
  }
}
