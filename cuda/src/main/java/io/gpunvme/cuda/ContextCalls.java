package io.gpunvme.cuda;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.gpunvme.cuda.library.Downcall;
import io.gpunvme.cuda.library.NativeFunction;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/** Primary context management and what concerns a context as a whole. */
final class ContextCalls {
  private static final MethodHandle RETAIN = Downcall.status(ADDRESS, JAVA_INT);
  private static final MethodHandle RELEASE = Downcall.status(JAVA_INT);
  private static final MethodHandle GET_CURRENT = Downcall.status(ADDRESS);
  private static final MethodHandle SET_CURRENT = Downcall.status(JAVA_LONG);
  private static final MethodHandle SYNCHRONIZE = Downcall.status();
  private static final MethodHandle MEMORY_INFO = Downcall.status(ADDRESS, ADDRESS);
  private static final MethodHandle PRIORITIES = Downcall.status(ADDRESS, ADDRESS);
  private static final MethodHandle FLUSH = Downcall.status(JAVA_INT, JAVA_INT);

  /** CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX. */
  private static final int CURRENT_CONTEXT = 0;

  private final Driver driver;
  private final NativeFunction retain;
  private final NativeFunction release;
  private final NativeFunction getCurrent;
  private final NativeFunction setCurrent;
  private final NativeFunction synchronize;
  private final NativeFunction memoryInfo;
  private final NativeFunction flush;
  private final NativeFunction priorities;

  ContextCalls(Driver driver) {
    this.driver = driver;
    retain = driver.function("cuDevicePrimaryCtxRetain");
    release = driver.function("cuDevicePrimaryCtxRelease_v2");
    getCurrent = driver.function("cuCtxGetCurrent");
    setCurrent = driver.function("cuCtxSetCurrent");
    synchronize = driver.function("cuCtxSynchronize");
    memoryInfo = driver.function("cuMemGetInfo_v2");
    flush = driver.function("cuFlushGPUDirectRDMAWrites");
    priorities = driver.function("cuCtxGetStreamPriorityRange");
  }

  long retainPrimary(int device) {
    return driver.getLong(
        retain, () -> "of device " + device, (f, out) -> (int) RETAIN.invokeExact(f, out, device));
  }

  void releasePrimary(int device) {
    driver.run(release, () -> "of device " + device, f -> (int) RELEASE.invokeExact(f, device));
  }

  /** The context of this thread; 0 if it has none. */
  long current() {
    return driver.getLong(getCurrent, () -> "", (f, out) -> (int) GET_CURRENT.invokeExact(f, out));
  }

  void setCurrent(long context) {
    driver.run(
        setCurrent, () -> Driver.hex(context), f -> (int) SET_CURRENT.invokeExact(f, context));
  }

  void synchronize() {
    driver.run(synchronize, () -> "", f -> (int) SYNCHRONIZE.invokeExact(f));
  }

  MemoryInfo memoryInfo() {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment free = arena.allocate(JAVA_LONG);
      MemorySegment total = arena.allocate(JAVA_LONG);
      driver.run(memoryInfo, () -> "", f -> (int) MEMORY_INFO.invokeExact(f, free, total));
      return new MemoryInfo(free.get(JAVA_LONG, 0), total.get(JAVA_LONG, 0));
    }
  }

  /** The highest priority of streams: 0 or below. */
  int highestPriority() {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment least = arena.allocate(JAVA_INT);
      MemorySegment greatest = arena.allocate(JAVA_INT);
      driver.run(priorities, () -> "", f -> (int) PRIORITIES.invokeExact(f, least, greatest));
      return greatest.get(JAVA_INT, 0);
    }
  }

  void flushGpuDirectWrites(int scope) {
    driver.run(
        flush, () -> "scope " + scope, f -> (int) FLUSH.invokeExact(f, CURRENT_CONTEXT, scope));
  }
}
