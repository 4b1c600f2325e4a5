package io.gpunvme.storage;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.storage.path.Range;
import io.gpunvme.storage.path.StorageException;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Transfers that ask their caller now and then whether to end. */
@Timeout(120)
class CancellableReadsTest {
  private static final String SLOW = "sim:size=1MiB,latency=100ms";

  private final Accelerator accelerator = CpuAccelerator.open();

  @AfterEach
  void close() {
    accelerator.close();
  }

  private GpuStorage open(String address) {
    return GpuStorage.open(
        StorageAddress.parse(address), accelerator, StorageOptions.defaults().withWrite(true));
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        SLOW,
        "stripe:" + SLOW + "," + SLOW + ";unit=4096",
        "replica:" + SLOW + "," + SLOW
      })
  void whoWaitsIsAskedAndEndsIt(String address) {
    try (GpuStorage storage = open(address);
        DeviceBuffer buffer = accelerator.allocate(64 << 10)) {
      List<Range> ranges = List.of(new Range(0, buffer, 0, 64 << 10));
      AtomicInteger asked = new AtomicInteger();
      assertThatThrownBy(() -> storage.read(ranges, () -> asked.incrementAndGet() == 2))
          .isInstanceOfSatisfying(
              StorageException.class,
              e -> assertThat(e.kind()).isEqualTo(StorageException.Kind.CANCELLED));
      assertThat(asked).hasValue(2);
      assertThat(storage.read(ranges).bytes()).isEqualTo(64 << 10);
    }
  }

  @Test
  void onlyTheCallersThreadAsks() {
    try (GpuStorage storage = open("stripe:" + SLOW + "," + SLOW + ";unit=4096");
        DeviceBuffer buffer = accelerator.allocate(1 << 20)) {
      Set<Thread> asking = ConcurrentHashMap.newKeySet();
      List<Range> ranges = List.of(new Range(0, buffer, 0, 1 << 20));
      storage.write(ranges, () -> !asking.add(Thread.currentThread()) && asking.size() > 1);
      storage.read(ranges, () -> !asking.add(Thread.currentThread()) && asking.size() > 1);
      assertThat(asking).containsExactly(Thread.currentThread());
    }
  }

  @Test
  void whatTheQuestionThrowsEndsItToo() {
    try (GpuStorage storage = open(SLOW);
        DeviceBuffer buffer = accelerator.allocate(4096)) {
      List<Range> ranges = List.of(new Range(0, buffer, 0, 4096));
      assertThatThrownBy(
              () ->
                  storage.read(
                      ranges,
                      () -> {
                        throw new IllegalStateException("asked");
                      }))
          .hasStackTraceContaining("asked");
      assertThat(storage.read(ranges).bytes()).isEqualTo(4096);
    }
  }
}
