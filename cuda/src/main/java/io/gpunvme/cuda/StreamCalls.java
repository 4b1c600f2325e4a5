package io.gpunvme.cuda;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_FLOAT;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.gpunvme.cuda.library.Downcall;
import io.gpunvme.cuda.library.NativeFunction;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/** Stream and event management of the driver API. */
final class StreamCalls {
  private static final MethodHandle CREATE = Downcall.status(ADDRESS, JAVA_INT, JAVA_INT);
  private static final MethodHandle CREATE_EVENT = Downcall.status(ADDRESS, JAVA_INT);
  private static final MethodHandle ON_HANDLE = Downcall.status(JAVA_LONG);
  private static final MethodHandle WAIT = Downcall.status(JAVA_LONG, JAVA_LONG, JAVA_INT);
  private static final MethodHandle WAIT_VALUE =
      Downcall.status(JAVA_LONG, JAVA_LONG, JAVA_INT, JAVA_INT);
  private static final MethodHandle IS_CAPTURING = Downcall.status(JAVA_LONG, ADDRESS);
  private static final MethodHandle RECORD = Downcall.status(JAVA_LONG, JAVA_LONG);
  private static final MethodHandle ELAPSED = Downcall.status(ADDRESS, JAVA_LONG, JAVA_LONG);

  /** CU_STREAM_NON_BLOCKING: no implicit ordering with the legacy default stream. */
  private static final int NON_BLOCKING = 1;

  /** CU_STREAM_WAIT_VALUE_GEQ: until the word is at least the value, as cyclic numbers. */
  private static final int AT_LEAST = 0;

  /** CU_STREAM_CAPTURE_STATUS_NONE. */
  private static final int NOT_CAPTURING = 0;

  private static final int EVENT_DEFAULT = 0;
  private static final int EVENT_DISABLE_TIMING = 2;

  private final Driver driver;
  private final NativeFunction create;
  private final NativeFunction destroy;
  private final NativeFunction query;
  private final NativeFunction synchronize;
  private final NativeFunction isCapturing;
  private final NativeFunction waitEvent;
  private final NativeFunction waitValue;
  private final NativeFunction createEvent;
  private final NativeFunction destroyEvent;
  private final NativeFunction record;
  private final NativeFunction queryEvent;
  private final NativeFunction synchronizeEvent;
  private final NativeFunction elapsed;

  StreamCalls(Driver driver) {
    this.driver = driver;
    create = driver.function("cuStreamCreateWithPriority");
    destroy = driver.function("cuStreamDestroy_v2");
    query = driver.function("cuStreamQuery");
    synchronize = driver.function("cuStreamSynchronize");
    isCapturing = driver.function("cuStreamIsCapturing");
    waitEvent = driver.function("cuStreamWaitEvent");
    waitValue = driver.function("cuStreamWaitValue32_v2", "cuStreamWaitValue32");
    createEvent = driver.function("cuEventCreate");
    destroyEvent = driver.function("cuEventDestroy_v2");
    record = driver.function("cuEventRecord");
    queryEvent = driver.function("cuEventQuery");
    synchronizeEvent = driver.function("cuEventSynchronize");
    elapsed = driver.function("cuEventElapsedTime_v2", "cuEventElapsedTime");
  }

  /**
   * A stream.
   *
   * @param priority as the driver counts: 0 is the lowest, below it are higher ones
   */
  long create(int priority) {
    return driver.getLong(
        create,
        () -> "of priority " + priority,
        (f, out) -> (int) CREATE.invokeExact(f, out, NON_BLOCKING, priority));
  }

  void destroy(long stream) {
    onHandle(destroy, stream);
  }

  boolean isIdle(long stream) {
    return isReady(query, stream);
  }

  void synchronize(long stream) {
    onHandle(synchronize, stream);
  }

  boolean isCapturing(long stream) {
    int status =
        driver.getInt(
            isCapturing,
            () -> Driver.hex(stream),
            (f, out) -> (int) IS_CAPTURING.invokeExact(f, stream, out));
    return status != NOT_CAPTURING;
  }

  void await(long stream, long event) {
    driver.run(
        waitEvent,
        () -> Driver.hex(stream) + " for " + Driver.hex(event),
        f -> (int) WAIT.invokeExact(f, stream, event, 0));
  }

  void awaitValue(long stream, long word, int value) {
    driver.run(
        waitValue,
        () -> "%s for %d at %s".formatted(Driver.hex(stream), value, Driver.hex(word)),
        f -> (int) WAIT_VALUE.invokeExact(f, stream, word, value, AT_LEAST));
  }

  long createEvent(boolean timing) {
    int flags = timing ? EVENT_DEFAULT : EVENT_DISABLE_TIMING;
    return driver.getLong(
        createEvent, () -> "", (f, out) -> (int) CREATE_EVENT.invokeExact(f, out, flags));
  }

  void destroyEvent(long event) {
    onHandle(destroyEvent, event);
  }

  void record(long event, long stream) {
    driver.run(
        record,
        () -> Driver.hex(event) + " in " + Driver.hex(stream),
        f -> (int) RECORD.invokeExact(f, event, stream));
  }

  boolean isDone(long event) {
    return isReady(queryEvent, event);
  }

  void synchronizeEvent(long event) {
    onHandle(synchronizeEvent, event);
  }

  float elapsed(long start, long end) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment milliseconds = arena.allocate(JAVA_FLOAT);
      driver.run(
          elapsed,
          () -> "from " + Driver.hex(start) + " to " + Driver.hex(end),
          f -> (int) ELAPSED.invokeExact(f, milliseconds, start, end));
      return milliseconds.get(JAVA_FLOAT, 0);
    }
  }

  private void onHandle(NativeFunction function, long handle) {
    driver.run(function, () -> Driver.hex(handle), f -> (int) ON_HANDLE.invokeExact(f, handle));
  }

  private boolean isReady(NativeFunction function, long handle) {
    int code = driver.status(function, f -> (int) ON_HANDLE.invokeExact(f, handle));
    if (code != 0 && code != CudaException.NOT_READY) {
      throw driver.failure(function, Driver.hex(handle), code);
    }
    return code == 0;
  }
}
