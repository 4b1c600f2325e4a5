package io.gpunvme.cuda;

import static java.lang.foreign.MemoryLayout.PathElement.groupElement;
import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.gpunvme.cuda.library.Downcall;
import io.gpunvme.cuda.library.NativeFunction;
import java.lang.foreign.Arena;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import java.lang.invoke.MethodHandle;

/** Copies and fills, all of them in a stream. */
final class CopyCalls {
  private static final StructLayout LOCATION =
      MemoryLayout.structLayout(JAVA_INT.withName("type"), JAVA_INT.withName("id"));

  /** CUmemcpyAttributes. */
  static final StructLayout ATTRIBUTES =
      MemoryLayout.structLayout(
          JAVA_INT.withName("srcAccessOrder"),
          LOCATION.withName("srcLocHint"),
          LOCATION.withName("dstLocHint"),
          JAVA_INT.withName("flags"));

  private static final long ACCESS_ORDER = ATTRIBUTES.byteOffset(groupElement("srcAccessOrder"));
  private static final long FLAGS = ATTRIBUTES.byteOffset(groupElement("flags"));

  /** CU_MEMCPY_SRC_ACCESS_ORDER_STREAM. */
  private static final int STREAM_ORDER = 1;

  /**
   * CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE: copies by the copy engines. A copy that ran as a
   * kernel would wait for a free multiprocessor, for ever beside a kernel that polls for its data.
   */
  private static final int PREFER_OVERLAP = 1;

  private static final MethodHandle TO_DEVICE =
      Downcall.status(JAVA_LONG, ADDRESS, JAVA_LONG, JAVA_LONG);
  private static final MethodHandle TO_HOST =
      Downcall.status(ADDRESS, JAVA_LONG, JAVA_LONG, JAVA_LONG);
  private static final MethodHandle ON_DEVICE =
      Downcall.status(JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG);
  private static final MethodHandle FILL =
      Downcall.status(JAVA_LONG, JAVA_BYTE, JAVA_LONG, JAVA_LONG);
  private static final MethodHandle BATCH =
      Downcall.status(ADDRESS, ADDRESS, ADDRESS, JAVA_LONG, ADDRESS, ADDRESS, JAVA_LONG, JAVA_LONG);
  private static final MethodHandle BATCH_12 =
      Downcall.status(
          ADDRESS, ADDRESS, ADDRESS, JAVA_LONG, ADDRESS, ADDRESS, JAVA_LONG, ADDRESS, JAVA_LONG);

  private final Driver driver;
  private final NativeFunction toDevice;
  private final NativeFunction toHost;
  private final NativeFunction onDevice;
  private final NativeFunction fill;
  private final NativeFunction batch;
  private final NativeFunction batch12;

  CopyCalls(Driver driver) {
    this.driver = driver;
    toDevice = driver.function("cuMemcpyHtoDAsync_v2");
    toHost = driver.function("cuMemcpyDtoHAsync_v2");
    onDevice = driver.function("cuMemcpyDtoDAsync_v2");
    fill = driver.function("cuMemsetD8Async");
    batch = driver.function("cuMemcpyBatchAsync_v2");
    batch12 = driver.function("cuMemcpyBatchAsync");
  }

  void toDevice(long target, MemorySegment source, long stream) {
    driver.run(
        toDevice,
        () -> range(source) + " to " + Driver.hex(target),
        f -> (int) TO_DEVICE.invokeExact(f, target, source, source.byteSize(), stream));
  }

  void toHost(MemorySegment target, long source, long stream) {
    driver.run(
        toHost,
        () -> Driver.hex(source) + " to " + range(target),
        f -> (int) TO_HOST.invokeExact(f, target, source, target.byteSize(), stream));
  }

  private static String range(MemorySegment memory) {
    return memory.byteSize() + " bytes at " + Driver.hex(memory.address());
  }

  void onDevice(long target, long source, long bytes, long stream) {
    driver.run(
        onDevice,
        () -> bytes + " bytes at " + Driver.hex(source) + " to " + Driver.hex(target),
        f -> (int) ON_DEVICE.invokeExact(f, target, source, bytes, stream));
  }

  void fill(long target, byte value, long bytes, long stream) {
    driver.run(
        fill,
        () -> bytes + " bytes at " + Driver.hex(target),
        f -> (int) FILL.invokeExact(f, target, value, bytes, stream));
  }

  boolean hasBatch() {
    return batch.isPresent() || batch12.isPresent();
  }

  /** CUDA 13.0 took the index of the failing copy out of the arguments; 12.8 still wants it. */
  void batch(CopyBatch copies, long stream) {
    MemorySegment targets = copies.targets();
    MemorySegment sources = copies.sources();
    MemorySegment sizes = copies.sizes();
    long count = copies.size();
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment attributes = arena.allocate(ATTRIBUTES);
      attributes.set(JAVA_INT, ACCESS_ORDER, STREAM_ORDER);
      attributes.set(JAVA_INT, FLAGS, PREFER_OVERLAP);
      MemorySegment firstOfAttributes = arena.allocate(JAVA_LONG);
      if (batch.isPresent() || !batch12.isPresent()) {
        driver.run(
            batch,
            () -> count + " copies",
            f ->
                (int)
                    BATCH.invokeExact(
                        f,
                        targets,
                        sources,
                        sizes,
                        count,
                        attributes,
                        firstOfAttributes,
                        1L,
                        stream));
      } else {
        MemorySegment failed = arena.allocate(JAVA_LONG);
        driver.run(
            batch12,
            () -> count + " copies, failing at number " + failed.get(JAVA_LONG, 0),
            f ->
                (int)
                    BATCH_12.invokeExact(
                        f,
                        targets,
                        sources,
                        sizes,
                        count,
                        attributes,
                        firstOfAttributes,
                        1L,
                        failed,
                        stream));
      }
    }
  }
}
