package io.gpunvme.bench;

import io.gpunvme.tools.bench.Measurement;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Results of the sides from what they took: each beside Java's, so that without these there is
 * none.
 *
 * @param conditions of all of them
 */
record BindingsResults(Map<String, Object> conditions) {
  /** What a call of C may take longer than the same in Java, ns. */
  private static final double CALL_GOAL = 1000;

  /** What of Java's throughput the others have to have. */
  private static final double READ_GOAL = 0.98;

  /** Calls of Java, ns, and of what others there are. */
  List<Measurement> calls(double[] java, Map<BindingsSide, List<double[]>> others) {
    Measurement base =
        new Measurement(BindingsSide.JAVA.call(), "ns", java, conditions, null, null);
    List<Measurement> all = new ArrayList<>();
    all.add(base);
    others.forEach((side, answers) -> all.add(call(side, answers, base)));
    return all;
  }

  private Measurement call(BindingsSide side, List<double[]> answers, Measurement java) {
    double[] samples = first(answers);
    Map<String, Object> own = new LinkedHashMap<>(conditions);
    double over = median(samples) - java.median();
    own.put("over_java_ns", over);
    if (side == BindingsSide.C) {
      own.put("goal", "less than %.0f over Java: %s".formatted(CALL_GOAL, met(over < CALL_GOAL)));
    }
    if (answers.getFirst().length > 1) {
      // Python's own objects know that they are over; this is what reaches the library.
      double reaching = median(answers.stream().mapToDouble(a -> a[1]).toArray());
      own.put("by_ctypes_ns", reaching);
      own.put("by_ctypes_over_java_ns", reaching - java.median());
    }
    return new Measurement(side.call(), "ns", samples, own, null, null);
  }

  /**
   * Reads of Java, ns, and of what others there are, of which the same turn has the same place.
   *
   * @param bytes of each
   * @param limit what a plain copy does, GB/s
   */
  List<Measurement> reads(
      long bytes, double[] java, Map<BindingsSide, List<double[]>> others, Measurement limit) {
    List<Measurement> all = new ArrayList<>();
    all.add(read(BindingsSide.JAVA, bytes, java, conditions, limit));
    others.forEach(
        (side, answers) -> {
          double[] nanos = first(answers);
          double[] ratios = new double[nanos.length];
          Arrays.setAll(ratios, i -> java[i] / nanos[i]);
          Map<String, Object> own = new LinkedHashMap<>(conditions);
          double ratio = median(ratios);
          own.put("to_java", ratio);
          own.put("goal", "at least %s of Java: %s".formatted(READ_GOAL, met(ratio >= READ_GOAL)));
          all.add(read(side, bytes, nanos, own, limit));
        });
    return all;
  }

  private static Measurement read(
      BindingsSide side,
      long bytes,
      double[] nanos,
      Map<String, Object> conditions,
      Measurement limit) {
    // Bytes in a nanosecond are GB in a second.
    double[] rates = Arrays.stream(nanos).map(n -> bytes / n).toArray();
    Map<String, Object> all = new LinkedHashMap<>(conditions);
    all.put("memory", memory(side));
    return new Measurement(side.read(), "GB/s", rates, all, null, null).limitedBy(limit);
  }

  private static String memory(BindingsSide side) {
    return switch (side) {
      case JAVA -> "DeviceBuffer";
      case C -> "gpunvme_allocate";
      case PYTHON -> "torch.Tensor";
    };
  }

  private static double[] first(List<double[]> answers) {
    return answers.stream().mapToDouble(a -> a[0]).toArray();
  }

  private static String met(boolean good) {
    return good ? "met" : "missed";
  }

  private static double median(double[] samples) {
    return new Measurement("", "", samples, Map.of(), null, null).median();
  }
}
