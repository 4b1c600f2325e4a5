package io.gpunvme.bench;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.gpunvme.tools.bench.BenchException;
import io.gpunvme.tools.bench.BlockPattern;
import io.gpunvme.tools.bench.Measurement;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.LinkedHashMap;
import java.util.Map;

/** One thread copying host memory from one place to another: the limit where there is no GPU. */
final class HostCopy {
  static final String ID = "ceiling.memcpy";

  private static final int PAGE = 4096;

  private HostCopy() {}

  /**
   * Measures, and looks at every byte.
   *
   * @param bytes of a copy, a multiple of 4096; twice as much memory is taken
   */
  static Measurement measure(long bytes, int repetitions) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment source = arena.allocate(bytes, PAGE);
      MemorySegment target = arena.allocate(bytes, PAGE);
      for (long i = 0; i < bytes; i += Long.BYTES) {
        source.set(JAVA_LONG, i, BlockPattern.hash(i));
      }
      double[] samples = new double[repetitions];
      for (int i = -1; i < repetitions; i++) {
        double rate = once(source, target);
        if (i >= 0) {
          samples[i] = rate;
        }
      }
      Map<String, Object> conditions = new LinkedHashMap<>();
      conditions.put("bytes", bytes);
      conditions.put("threads", 1);
      return new Measurement(ID, "GB/s", samples, conditions, null, null);
    }
  }

  private static double once(MemorySegment source, MemorySegment target) {
    target.fill((byte) 0);
    long begin = System.nanoTime();
    MemorySegment.copy(source, 0, target, 0, source.byteSize());
    long nanos = System.nanoTime() - begin;
    if (source.mismatch(target) >= 0) {
      throw new BenchException(ID + ": the copy is not what was copied");
    }
    return (double) source.byteSize() / nanos;
  }
}
