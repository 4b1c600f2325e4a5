package io.gpunvme.cuda;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;

import io.gpunvme.cuda.library.Downcall;
import io.gpunvme.cuda.library.NativeFunction;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.nio.ByteOrder;
import java.util.UUID;

/** Initialization, version and device management of the driver API. */
final class DeviceCalls {
  private static final MethodHandle INIT = Downcall.status(JAVA_INT);
  private static final MethodHandle GET_INT = Downcall.status(ADDRESS);
  private static final MethodHandle GET = Downcall.status(ADDRESS, JAVA_INT);
  private static final MethodHandle GET_TEXT = Downcall.status(ADDRESS, JAVA_INT, JAVA_INT);
  private static final MethodHandle GET_ATTRIBUTE = Downcall.status(ADDRESS, JAVA_INT, JAVA_INT);
  private static final ValueLayout.OfLong BIG_ENDIAN_LONG =
      ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.BIG_ENDIAN);
  private static final int MAX_TEXT = 256;
  private static final int UUID_BYTES = 16;

  private final Driver driver;
  private final NativeFunction init;
  private final NativeFunction getVersion;
  private final NativeFunction getCount;
  private final NativeFunction get;
  private final NativeFunction getName;
  private final NativeFunction getAttribute;
  private final NativeFunction totalMemory;
  private final NativeFunction getPciBusId;
  private final NativeFunction getUuid;
  private final NativeFunction getGpuUuid;

  DeviceCalls(Driver driver) {
    this.driver = driver;
    init = driver.function("cuInit");
    getVersion = driver.function("cuDriverGetVersion");
    getCount = driver.function("cuDeviceGetCount");
    get = driver.function("cuDeviceGet");
    getName = driver.function("cuDeviceGetName");
    getAttribute = driver.function("cuDeviceGetAttribute");
    totalMemory = driver.function("cuDeviceTotalMem_v2");
    getPciBusId = driver.function("cuDeviceGetPCIBusId");
    // The first is of CUDA 11.4 and newer: of a MIG instance it tells that, the other one the
    // GPU's.
    getUuid = driver.function("cuDeviceGetUuid_v2", "cuDeviceGetUuid");
    getGpuUuid = driver.function("cuDeviceGetUuid");
  }

  void init() {
    driver.run(init, () -> "", f -> (int) INIT.invokeExact(f, 0));
  }

  CudaVersion version() {
    return CudaVersion.ofNumber(
        driver.getInt(getVersion, () -> "", (f, out) -> (int) GET_INT.invokeExact(f, out)));
  }

  int count() {
    return driver.getInt(getCount, () -> "", (f, out) -> (int) GET_INT.invokeExact(f, out));
  }

  int get(int ordinal) {
    return driver.getInt(
        get, () -> "device " + ordinal, (f, out) -> (int) GET.invokeExact(f, out, ordinal));
  }

  String name(int device) {
    return text(getName, device);
  }

  String pciBusId(int device) {
    return text(getPciBusId, device);
  }

  /** Of the device: a GPU, or a MIG instance. */
  UUID uuid(int device) {
    return uuid(getUuid, device);
  }

  /** Of the GPU that the device is, or is a part of. */
  UUID gpuUuid(int device) {
    return uuid(getGpuUuid, device);
  }

  private UUID uuid(NativeFunction function, int device) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment bytes = arena.allocate(UUID_BYTES);
      driver.run(function, () -> "device " + device, f -> (int) GET.invokeExact(f, bytes, device));
      return new UUID(bytes.get(BIG_ENDIAN_LONG, 0), bytes.get(BIG_ENDIAN_LONG, Long.BYTES));
    }
  }

  private String text(NativeFunction function, int device) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment text = arena.allocate(MAX_TEXT);
      driver.run(
          function,
          () -> "device " + device,
          f -> (int) GET_TEXT.invokeExact(f, text, MAX_TEXT, device));
      return text.getString(0);
    }
  }

  int attribute(int device, CudaAttribute attribute) {
    return driver.getInt(
        getAttribute,
        () -> attribute + " of device " + device,
        (f, out) -> (int) GET_ATTRIBUTE.invokeExact(f, out, attribute.number(), device));
  }

  long totalMemory(int device) {
    return driver.getLong(
        totalMemory, () -> "device " + device, (f, out) -> (int) GET.invokeExact(f, out, device));
  }
}
