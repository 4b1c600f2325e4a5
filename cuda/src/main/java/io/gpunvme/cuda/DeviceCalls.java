package io.gpunvme.cuda;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;

import io.gpunvme.cuda.library.Downcall;
import io.gpunvme.cuda.library.NativeFunction;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/** Initialization, version and device management of the driver API. */
final class DeviceCalls {
  private static final MethodHandle INIT = Downcall.status(JAVA_INT);
  private static final MethodHandle GET_INT = Downcall.status(ADDRESS);
  private static final MethodHandle GET = Downcall.status(ADDRESS, JAVA_INT);
  private static final MethodHandle GET_TEXT = Downcall.status(ADDRESS, JAVA_INT, JAVA_INT);
  private static final MethodHandle GET_ATTRIBUTE = Downcall.status(ADDRESS, JAVA_INT, JAVA_INT);
  private static final int MAX_TEXT = 256;

  private final Driver driver;
  private final NativeFunction init;
  private final NativeFunction getVersion;
  private final NativeFunction getCount;
  private final NativeFunction get;
  private final NativeFunction getName;
  private final NativeFunction getAttribute;
  private final NativeFunction totalMemory;
  private final NativeFunction getPciBusId;

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
