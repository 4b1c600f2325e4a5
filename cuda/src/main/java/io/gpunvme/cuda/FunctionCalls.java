package io.gpunvme.cuda;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.gpunvme.cuda.library.Downcall;
import io.gpunvme.cuda.library.NativeFunction;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/** Execution control and occupancy of the driver API. */
final class FunctionCalls {
  private static final MethodHandle GET_ATTRIBUTE = Downcall.status(ADDRESS, JAVA_INT, JAVA_LONG);
  private static final MethodHandle SET_ATTRIBUTE = Downcall.status(JAVA_LONG, JAVA_INT, JAVA_INT);
  private static final MethodHandle LOAD = Downcall.status(JAVA_LONG);
  private static final MethodHandle GET_PARAMETER =
      Downcall.status(JAVA_LONG, JAVA_LONG, ADDRESS, ADDRESS);
  private static final MethodHandle OCCUPANCY =
      Downcall.status(ADDRESS, JAVA_LONG, JAVA_INT, JAVA_LONG);
  private static final MethodHandle LAUNCH =
      Downcall.status(
          JAVA_LONG, JAVA_INT, JAVA_INT, JAVA_INT, JAVA_INT, JAVA_INT, JAVA_INT, JAVA_INT,
          JAVA_LONG, ADDRESS, ADDRESS);
  private static final MethodHandle LAUNCH_COOPERATIVE =
      Downcall.status(
          JAVA_LONG, JAVA_INT, JAVA_INT, JAVA_INT, JAVA_INT, JAVA_INT, JAVA_INT, JAVA_INT,
          JAVA_LONG, ADDRESS);

  /** CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES. */
  private static final int MAX_DYNAMIC_SHARED = 8;

  private final Driver driver;
  private final NativeFunction getAttribute;
  private final NativeFunction setAttribute;
  private final NativeFunction load;
  private final NativeFunction getParameter;
  private final NativeFunction occupancy;
  private final NativeFunction launch;
  private final NativeFunction launchCooperative;

  FunctionCalls(Driver driver) {
    this.driver = driver;
    getAttribute = driver.function("cuFuncGetAttribute");
    setAttribute = driver.function("cuFuncSetAttribute");
    load = driver.function("cuFuncLoad");
    getParameter = driver.function("cuFuncGetParamInfo");
    occupancy = driver.function("cuOccupancyMaxActiveBlocksPerMultiprocessor");
    launch = driver.function("cuLaunchKernel");
    launchCooperative = driver.function("cuLaunchCooperativeKernel");
  }

  int attribute(long function, FunctionAttribute attribute) {
    return driver.getInt(
        getAttribute,
        attribute::toString,
        (f, out) -> (int) GET_ATTRIBUTE.invokeExact(f, out, attribute.number(), function));
  }

  void allowDynamicShared(long function, int bytes) {
    driver.run(
        setAttribute,
        () -> "dynamic shared memory " + bytes + " bytes",
        f -> (int) SET_ATTRIBUTE.invokeExact(f, function, MAX_DYNAMIC_SHARED, bytes));
  }

  /**
   * Puts the code onto the device. Where modules load lazily, the first launch does it otherwise,
   * and then waits for kernels that are running, for ever if those wait for this one.
   */
  void load(long function) {
    if (load.isPresent()) {
      driver.run(load, () -> Driver.hex(function), f -> (int) LOAD.invokeExact(f, function));
    } else {
      attribute(function, FunctionAttribute.NUM_REGS); // Older drivers load at the first question.
    }
  }

  /** Sizes of the parameters in bytes; empty if the driver (before 12.4) cannot say. */
  Optional<List<Long>> parameterSizes(long function) {
    if (!getParameter.isPresent()) {
      return Optional.empty();
    }
    List<Long> sizes = new ArrayList<>();
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment offset = arena.allocate(JAVA_LONG);
      MemorySegment size = arena.allocate(JAVA_LONG);
      while (true) {
        long index = sizes.size();
        int code =
            driver.status(
                getParameter,
                f -> (int) GET_PARAMETER.invokeExact(f, function, index, offset, size));
        if (code == CudaException.INVALID_VALUE) { // One past the last.
          return Optional.of(List.copyOf(sizes));
        }
        if (code != 0) {
          throw driver.failure(getParameter, "parameter " + index, code);
        }
        sizes.add(size.get(JAVA_LONG, 0));
      }
    }
  }

  int maxActiveBlocks(long function, int blockSize, long sharedBytes) {
    return driver.getInt(
        occupancy,
        () -> "blocks of " + blockSize + " threads with " + sharedBytes + " shared bytes",
        (f, out) -> (int) OCCUPANCY.invokeExact(f, out, function, blockSize, sharedBytes));
  }

  /** {@code arguments} is an array of pointers to the values, copied before this returns. */
  void launch(long function, String name, LaunchShape s, long stream, MemorySegment arguments) {
    driver.run(
        launch,
        () -> name + " " + s,
        f ->
            (int)
                LAUNCH.invokeExact(
                    f,
                    function,
                    s.gridX(),
                    s.gridY(),
                    s.gridZ(),
                    s.blockX(),
                    s.blockY(),
                    s.blockZ(),
                    s.sharedBytes(),
                    stream,
                    arguments,
                    MemorySegment.NULL));
  }

  /** Like {@link #launch}, but all blocks run at the same time or the launch fails. */
  void launchCooperative(
      long function, String name, LaunchShape s, long stream, MemorySegment arguments) {
    driver.run(
        launchCooperative,
        () -> name + " " + s,
        f ->
            (int)
                LAUNCH_COOPERATIVE.invokeExact(
                    f,
                    function,
                    s.gridX(),
                    s.gridY(),
                    s.gridZ(),
                    s.blockX(),
                    s.blockY(),
                    s.blockZ(),
                    s.sharedBytes(),
                    stream,
                    arguments));
  }
}
