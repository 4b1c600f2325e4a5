package io.gpunvme.cli;

import io.gpunvme.tools.bench.Measurement;
import io.gpunvme.tools.report.GdsioLine;

/** Results of {@code bench paths} as lines of gdsio. */
final class GdsioLines {
  private static final double NANOS_PER_SECOND = 1e9;

  private GdsioLines() {}

  /** One repetition of the median rate. */
  static GdsioLine of(Measurement m) {
    boolean random = m.unit().equals("commands/s");
    long block = number(m, "block_bytes");
    long reads = number(m, "ranges");
    long size = number(m, "file_bytes");
    double seconds = random ? reads / m.median() : size / (m.median() * NANOS_PER_SECOND);
    return new GdsioLine(
        random ? GdsioLine.Pattern.RANDREAD : GdsioLine.Pattern.READ,
        transfer(m),
        (int) number(m, "threads"),
        random ? reads * block : size,
        size,
        block,
        reads,
        condition(m, "latency_mean_ns").doubleValue(),
        seconds);
  }

  private static GdsioLine.Transfer transfer(Measurement m) {
    boolean gpu = Boolean.TRUE.equals(m.conditions().get("gpu"));
    return switch (String.valueOf(m.conditions().get("path"))) {
      case "direct" -> GdsioLine.Transfer.DIRECT;
      case "cufile" -> GdsioLine.Transfer.GPUD;
      case "pinned" -> gpu ? GdsioLine.Transfer.CPU_ASYNC_GPU : GdsioLine.Transfer.CPUONLY;
      default -> gpu ? GdsioLine.Transfer.CPU_CACHED_GPU : GdsioLine.Transfer.CPUONLY;
    };
  }

  private static long number(Measurement m, String name) {
    return condition(m, name).longValue();
  }

  private static Number condition(Measurement m, String name) {
    if (m.conditions().get(name) instanceof Number number) {
      return number;
    }
    throw new IllegalStateException(m.id() + " does not say its " + name);
  }
}
