package io.gpunvme.tools.report;

import java.util.Locale;

/**
 * One result in the line that NVIDIA's {@code gdsio} prints, for scripts that already read it.
 *
 * @param pattern what was done
 * @param transfer how the bytes travelled
 * @param threads that submitted, at least one
 * @param bytesMoved in all
 * @param bytesOfFiles the size of the file, or of all files together
 * @param bytesPerOperation of one operation
 * @param operations in all
 * @param meanLatencyNanos of one operation
 * @param seconds from the first operation's start to the last one's end, more than 0
 */
public record GdsioLine(
    Pattern pattern,
    Transfer transfer,
    int threads,
    long bytesMoved,
    long bytesOfFiles,
    long bytesPerOperation,
    long operations,
    double meanLatencyNanos,
    double seconds) {
  private static final double GIBIBYTE = 1L << 30;
  private static final long KIBIBYTE = 1 << 10;
  private static final double NANOS_PER_MICRO = 1e3;

  /** gdsio's {@code -I}. */
  public enum Pattern {
    /** 0: sequential reads. */
    READ,
    /** 1: sequential writes. */
    WRITE,
    /** 2: random reads. */
    RANDREAD,
    /** 3: random writes. */
    RANDWRITE
  }

  /** gdsio's {@code -x}, and a word of our own for what gdsio does not have. */
  public enum Transfer {
    /** 0: cuFile into GPU memory. */
    GPUD,
    /** 1: into host memory, no copy. */
    CPUONLY,
    /** 2: into host memory, then copied. */
    CPU_GPU,
    /** 3: into host memory, copied asynchronously: the path {@code pinned}. */
    CPU_ASYNC_GPU,
    /** 4: through the page cache, then copied: the path {@code mmap}. */
    CPU_CACHED_GPU,
    /** 5: cuFile's calls on a stream. */
    GPUD_ASYNC,
    /** 6: cuFile's batches. */
    GPU_BATCH,
    /** NVMe commands of our own; gdsio has no such type. */
    DIRECT
  }

  /** Refuses what would print as no number. */
  public GdsioLine {
    boolean counts = threads >= 1 && bytesMoved >= 0 && bytesOfFiles >= 0 && bytesPerOperation >= 0;
    boolean times = Double.isFinite(meanLatencyNanos) && meanLatencyNanos >= 0;
    if (!counts || operations < 0 || !times || !Double.isFinite(seconds) || seconds <= 0) {
      throw new IllegalArgumentException(
          "counts and times of a gdsio line are 0 or more, threads and seconds more than 0");
    }
  }

  /** The line, without a line break. Sizes in KiB are rounded down. */
  @Override
  public String toString() {
    return String.format(
        Locale.ROOT,
        "IoType: %s XferType: %s Threads: %d DataSetSize: %d/%d(KiB) IOSize: %d(KiB)"
            + " Throughput: %.6f GiB/sec, Avg_Latency: %.6f usecs ops: %d total_time %.6f secs",
        pattern,
        transfer,
        threads,
        bytesMoved / KIBIBYTE,
        bytesOfFiles / KIBIBYTE,
        bytesPerOperation / KIBIBYTE,
        bytesMoved / GIBIBYTE / seconds,
        meanLatencyNanos / NANOS_PER_MICRO,
        operations,
        seconds);
  }
}
