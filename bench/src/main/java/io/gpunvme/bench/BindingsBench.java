package io.gpunvme.bench;

import io.gpunvme.base.CloseAll;
import io.gpunvme.bench.BindingsChild.MissingException;
import io.gpunvme.cuda.CudaException;
import io.gpunvme.cuda.CudaNotFoundException;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.Accelerators;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.tools.bench.BenchException;
import io.gpunvme.tools.bench.BenchMachine;
import io.gpunvme.tools.bench.GpuBenchmarks;
import io.gpunvme.tools.bench.Measurement;
import io.gpunvme.tools.bench.MeasurementFile;
import io.gpunvme.tools.bench.Repetitions;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.EnumMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * What C and Python add to the Java API: the time of a call that only asks, and the throughput of
 * one long read. {@link BindingsBenchOptions#USAGE} has the options. Exit codes: 0 done, 1 a result
 * was wrong or there is no such accelerator, 2 usage.
 *
 * <p>Each side is a process with an embedded SSD of its own, and they take turns: while one is
 * asked the others wait for their next line. Their idle controllers wake up once in a while to look
 * at doorbells, at most a thousand times a second after a second of quiet.
 */
public final class BindingsBench {
  /**
   * Turns that are not counted. Each process compiles what its controller does on its own, and at
   * another time: of reads of 1 GiB the first eight took up to three times as long as the others.
   */
  private static final int WARMUPS = 10;

  private final BindingsBenchOptions options;
  private final String accelerator;
  private final Map<BindingsSide, BindingsChild> children = new EnumMap<>(BindingsSide.class);
  private final Map<BindingsSide, String> missing = new EnumMap<>(BindingsSide.class);

  private BindingsBench(BindingsBenchOptions options, String accelerator) {
    this.options = options;
    this.accelerator = accelerator;
  }

  /** See the class. */
  public static void main(String[] args) throws IOException {
    if (List.of(args).contains("--help")) {
      System.out.println(BindingsBenchOptions.USAGE);
      return;
    }
    BindingsBenchOptions options;
    try {
      options = BindingsBenchOptions.parse(List.of(args), System.getenv());
    } catch (IllegalArgumentException e) {
      System.err.println(e.getMessage() + "\n" + BindingsBenchOptions.USAGE);
      System.exit(2);
      return;
    }
    System.exit(run(options) ? 0 : 1);
  }

  private static boolean run(BindingsBenchOptions options) throws IOException {
    List<Measurement> results = new ArrayList<>();
    BenchMachine machine;
    String name;
    try (Accelerator accelerator = Accelerators.open(options.accelerator()).accelerator()) {
      machine = BenchMachine.read(accelerator);
      name = accelerator.name();
      System.out.println(name + ", " + machine.driver() + ", " + machine.cpu());
      if (options.wantsAny(BindingsSide.READ)) {
        results.add(ceiling(options, accelerator));
        System.out.println(GpuBench.line(results.getLast()));
      }
    } catch (CudaNotFoundException | CudaException e) {
      System.err.println("no GPU: " + e.getMessage() + "; --accelerator cpu takes the stand-in");
      return false;
    } catch (BenchException e) {
      System.out.println("bindings FAILED: " + e.getMessage());
      return false;
    }
    try {
      // The GPU is let go of before others use it.
      results.addAll(new BindingsBench(options, name).measure(results));
    } catch (BenchException e) {
      System.out.println("bindings FAILED: " + e.getMessage());
      return false;
    }
    MeasurementFile file = MeasurementFile.beside(options.out(), machine, GpuBench.commit());
    for (Measurement m : results) {
      file.add(m);
    }
    System.out.println("wrote " + file.path());
    return true;
  }

  private static Measurement ceiling(BindingsBenchOptions options, Accelerator accelerator) {
    GpuAccelerator gpu = accelerator.cuda().orElse(null);
    if (gpu == null) {
      return HostCopy.measure(options.size(), options.repetitions());
    }
    try (GpuBenchmarks benchmarks = GpuBenchmarks.open(gpu)) {
      return benchmarks.ceiling(Repetitions.of(options.repetitions()));
    }
  }

  private List<Measurement> measure(List<Measurement> ceiling) {
    List<Measurement> results = new ArrayList<>();
    try {
      start();
      BindingsResults rows = new BindingsResults(conditions());
      if (options.wantsAny(BindingsSide.CALL)) {
        Map<BindingsSide, List<double[]>> calls = turns(BindingsSide.CALL, "call");
        results.addAll(rows.calls(java(calls), calls));
      }
      if (!ceiling.isEmpty()) {
        Map<BindingsSide, List<double[]>> reads = turns(BindingsSide.READ, "read");
        results.addAll(rows.reads(options.size(), java(reads), reads, ceiling.getFirst()));
      }
    } catch (RuntimeException e) {
      close(e);
      throw e;
    }
    close(null);
    results.forEach(m -> System.out.println(line(m)));
    return results;
  }

  private static String line(Measurement m) {
    String line = GpuBench.line(m);
    if (m.conditions().get("over_java_ns") instanceof Double over) {
      line += String.format(Locale.ROOT, ", %.0f over Java", over);
    }
    if (m.conditions().get("by_ctypes_ns") instanceof Double reaching) {
      line += String.format(Locale.ROOT, ", by ctypes %.0f", reaching);
    }
    return m.conditions().get("to_java") instanceof Double ratio
        ? line + String.format(Locale.ROOT, ", %.3f of Java", ratio)
        : line;
  }

  /** One after the other, so that each has the machine while it makes its pattern. */
  private void start() {
    BindingsCommands commands = new BindingsCommands(options);
    for (BindingsSide side : BindingsSide.values()) {
      if (!options.wants(side)) {
        continue;
      }
      try {
        children.put(side, commands.start(side));
      } catch (MissingException e) {
        if (side == BindingsSide.JAVA) {
          throw new BenchException("java: " + e.getMessage());
        }
        missing.put(side, String.valueOf(e.getMessage()));
        for (String kind : List.of(BindingsSide.CALL, BindingsSide.READ)) {
          if (options.wants(side, kind)) {
            System.out.println("not measured: " + kind + side + ": " + e.getMessage());
          }
        }
      }
    }
  }

  private Map<String, Object> conditions() {
    Map<String, Object> all = new LinkedHashMap<>();
    all.put("accelerator", accelerator);
    all.put("device", BindingsCommands.uri(options));
    all.put("processors", Runtime.getRuntime().availableProcessors());
    all.put("turns", String.join(", ", children.keySet().stream().map(s -> s.toString()).toList()));
    all.put("turns_not_counted", WARMUPS);
    if (!missing.isEmpty()) {
      all.put(
          "not_measured",
          String.join(", ", missing.keySet().stream().map(s -> s.toString()).toList()));
    }
    return all;
  }

  /** Asks all in turn, again and again. */
  private Map<BindingsSide, List<double[]>> turns(String kind, String command) {
    Map<BindingsSide, List<double[]>> answers = new EnumMap<>(BindingsSide.class);
    List<BindingsSide> order = new ArrayList<>(children.keySet());
    for (int i = -WARMUPS; i < options.repetitions(); i++) {
      for (BindingsSide side : order) {
        BindingsChild child = children.get(side);
        if (child != null && options.wants(side, kind)) {
          double[] answer = child.ask(command);
          if (i >= 0) {
            answers.computeIfAbsent(side, _ -> new ArrayList<>()).add(answer);
          }
        }
      }
      // What the side before has left behind is everybody's in turn.
      Collections.rotate(order, 1);
    }
    return answers;
  }

  /** Takes Java's answers out. */
  private static double[] java(Map<BindingsSide, List<double[]>> answers) {
    List<double[]> java = answers.remove(BindingsSide.JAVA);
    if (java == null) {
      throw new BenchException("java was not asked");
    }
    return java.stream().mapToDouble(a -> a[0]).toArray();
  }

  private void close(@Nullable RuntimeException first) {
    if (first == null) {
      CloseAll.each(children.values(), BindingsChild::close);
    } else {
      CloseAll.after(first, children.values(), BindingsChild::close);
    }
  }
}
