package io.gpunvme.cuda.cufile;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.gpunvme.cuda.cufile.CuFileStatistics.Batches;
import io.gpunvme.cuda.cufile.CuFileStatistics.Calls;
import io.gpunvme.cuda.cufile.CuFileStatistics.Gpu;
import io.gpunvme.cuda.cufile.CuFileStatistics.Lifetimes;
import io.gpunvme.cuda.cufile.CuFileStatistics.Routes;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.stream.LongStream;

/**
 * The structures of the statistics as cuFile 1.15 has them: {@code CUfileStatsLevel1} begins {@code
 * Level2}, which begins {@code Level3}. Nearly all of it is 64-bit counters; numbers here are
 * indices of those.
 */
final class StatisticsLayout {
  /** Offsets in bytes. */
  static final long LEVEL_1_BYTES = 512;

  static final long LEVEL_2_BYTES = 1024;
  static final long GPUS = 1032;
  static final long GPU_BYTES = 248;
  static final long LEVEL_3_BYTES = 5000;

  /** More than the structures have, for versions that add to their ends. */
  static final long ROOM = 64 << 10;

  private static final int MOST_GPUS = 16;
  private static final int UUID_BYTES = 16;
  private static final int CLASSES = 32;

  private StatisticsLayout() {}

  /** What a structure of this level holds. */
  static CuFileStatistics read(MemorySegment s, int level) {
    return new CuFileStatistics(
        new Calls(at(s, 0), at(s, 1), at(s, 12), at(s, 16)),
        new Calls(at(s, 2), at(s, 3), at(s, 13), at(s, 17)),
        new Lifetimes(at(s, 4), at(s, 5), at(s, 6), at(s, 7)),
        new Lifetimes(at(s, 8), at(s, 9), at(s, 10), at(s, 11)),
        new Batches(
            at(s, 22), at(s, 23), at(s, 32), at(s, 34), at(s, 40), at(s, 42), at(s, 44), at(s, 46)),
        level < 2 ? List.of() : sizes(s, 64),
        level < 2 ? List.of() : sizes(s, 96),
        level < 3 ? List.of() : gpus(s));
  }

  private static long at(MemorySegment s, long index) {
    return s.getAtIndex(JAVA_LONG, index);
  }

  private static List<Long> sizes(MemorySegment s, long first) {
    return LongStream.range(first, first + CLASSES).mapToObj(i -> at(s, i)).toList();
  }

  private static List<Gpu> gpus(MemorySegment s) {
    List<Gpu> found = new ArrayList<>();
    int count = Math.clamp(s.get(JAVA_INT, LEVEL_2_BYTES), 0, MOST_GPUS);
    for (int i = 0; i < count; i++) {
      found.add(gpu(s.asSlice(GPUS + i * GPU_BYTES, GPU_BYTES)));
    }
    return found;
  }

  private static Gpu gpu(MemorySegment s) {
    byte[] uuid = s.asSlice(0, UUID_BYTES).toArray(JAVA_BYTE);
    MemorySegment c = s.asSlice(UUID_BYTES);
    return new Gpu(
        HexFormat.of().formatHex(uuid),
        new Routes(at(c, 0), at(c, 4), at(c, 5), at(c, 6), at(c, 7), at(c, 8), at(c, 9), at(c, 12)),
        new Routes(
            at(c, 13), at(c, 17), at(c, 18), at(c, 19), at(c, 20), at(c, 21), at(c, 22), at(c, 23)),
        at(c, 25),
        at(c, 28));
  }
}
