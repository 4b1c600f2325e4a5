package io.gpunvme.tools.bench;

import io.gpunvme.base.Uninterrupted;
import io.gpunvme.cuda.KernelArguments;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/**
 * The floor of every latency with queues in host memory: the GPU stores a number to a word, a
 * thread of the CPU sees it and stores it to another, which the GPU polls. No queue.
 */
final class RoundTrip {
  static final String ID = "queue.qd1.round-trip";

  private static final ValueLayout.OfInt INT =
      ValueLayout.JAVA_INT.withOrder(ByteOrder.LITTLE_ENDIAN);
  private static final VarHandle WORD = INT.varHandle().withInvokeExactBehavior();

  /** In {@code bench.cu}. */
  static final String KERNEL = "gpunvme_bench_round_trip";

  private static final int TRIPS = 20_000;
  private static final long ANSWER = 256;
  private static final long TIMEOUT_NANOS = TimeUnit.SECONDS.toNanos(1);

  private RoundTrip() {}

  /**
   * Measures it.
   *
   * @throws BenchException if a number did not come back
   */
  static Measurement measure(
      Accelerator accelerator, BenchKernels kernels, Repetitions repetitions) {
    Latencies all = new Latencies();
    try (DeviceBuffer words = accelerator.allocatePinned(2 * ANSWER);
        DeviceBuffer table = accelerator.allocate((long) TRIPS * Integer.BYTES)) {
      double[] samples = repetitions.samples(() -> all.add(once(kernels, words, table)));
      Map<String, Object> conditions = new LinkedHashMap<>();
      conditions.put("trips", TRIPS);
      all.describe(conditions);
      return Measurement.of(ID, "ns", samples, conditions);
    }
  }

  private static int[] once(BenchKernels kernels, DeviceBuffer words, DeviceBuffer table) {
    words.segment().fill((byte) 0);
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment values = arena.allocate((long) TRIPS * Integer.BYTES, Integer.BYTES);
      table.copyFromHost(values, 0);
      Thread echo = Thread.ofPlatform().daemon().start(() -> echo(words.segment()));
      try {
        KernelArguments args =
            new KernelArguments()
                .addLong(words.deviceAddress())
                .addLong(words.deviceAddress() + ANSWER)
                .addLong(table.deviceAddress())
                .addInt(TRIPS)
                .addLong(TIMEOUT_NANOS);
        KernelDeadline.await(kernels.start(KERNEL, 1, 1, args), ID, () -> {});
      } finally {
        echo.interrupt();
        Uninterrupted.join(echo);
      }
      table.copyToHost(0, values);
      int[] nanos = values.toArray(INT);
      for (int one : nanos) {
        if (one == 0) {
          throw new BenchException(ID + ": a number did not come back within 1 s");
        }
      }
      return nanos;
    }
  }

  private static void echo(MemorySegment words) {
    int last = 0;
    while (!Thread.currentThread().isInterrupted()) {
      // Acquire and release as a responder's; the GPU is the other side of both words.
      int seen = (int) WORD.getAcquire(words, 0L);
      if (seen != last) {
        last = seen;
        WORD.setRelease(words, ANSWER, seen);
      }
    }
  }
}
