package io.gpunvme.bench;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.cuda.CudaException;
import io.gpunvme.cuda.CudaNotFoundException;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.nvme.NvmeException;
import io.gpunvme.storage.path.StorageException;
import io.gpunvme.tools.bench.BenchException;
import io.gpunvme.tools.bench.BenchMachine;
import io.gpunvme.tools.bench.GpuBenchmarks;
import io.gpunvme.tools.bench.Measurement;
import io.gpunvme.tools.bench.MeasurementFile;
import io.gpunvme.tools.bench.PathBench;
import io.gpunvme.tools.bench.PathBenchListener;
import io.gpunvme.tools.bench.PathBenchOptions;
import io.gpunvme.tools.bench.Repetitions;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/**
 * Runs the GPU's benchmarks and writes the result file; {@link GpuBenchOptions#USAGE} has the
 * options. Prints a line for each result as it is there. Exit codes: 0 done, 1 a result was wrong
 * or there is no GPU, 2 usage.
 */
public final class GpuBench {
  private static final double MILLION = 1e6;

  private GpuBench() {}

  /** See the class. */
  public static void main(String[] args) throws IOException {
    GpuBenchOptions options;
    try {
      options = GpuBenchOptions.parse(List.of(args));
    } catch (IllegalArgumentException e) {
      System.err.println(e.getMessage() + "\n" + GpuBenchOptions.USAGE);
      System.exit(2);
      return;
    }
    boolean good = false;
    try (GpuAccelerator accelerator = GpuAccelerator.open()) {
      good = run(options, accelerator);
    } catch (CudaNotFoundException | CudaException e) {
      System.err.println("no GPU: " + e.getMessage());
    }
    System.exit(good ? 0 : 1);
  }

  private static boolean run(GpuBenchOptions options, GpuAccelerator accelerator)
      throws IOException {
    if (options.ofPaths()) {
      return paths(options, accelerator);
    }
    List<String> ids = GpuBenchmarks.ids().stream().filter(options::wants).toList();
    if (ids.isEmpty()) {
      System.err.println("no result starts with " + options.prefixes());
      return false;
    }
    BenchMachine machine = BenchMachine.read(accelerator);
    System.out.println(machine.gpu() + ", " + machine.driver() + ", " + machine.cpu());
    MeasurementFile file =
        options.file() ? MeasurementFile.replacing(options.out(), machine, commit()) : null;
    boolean good = true;
    try (GpuBenchmarks benchmarks = GpuBenchmarks.open(accelerator)) {
      for (String id : ids) {
        try {
          Measurement result = benchmarks.run(id, Repetitions.of(options.repetitions()));
          System.out.println(line(result));
          if (file != null) {
            file.add(GpuBenchPeers.beside(result));
          }
        } catch (BenchException | CudaException | NvmeException | InvalidRequestException e) {
          System.out.println(id + " FAILED: " + e.getMessage());
          good = false;
        }
      }
    }
    if (file != null) {
      System.out.println("wrote " + file.path());
    }
    return good;
  }

  /** All of them: each is compared with the others. */
  private static boolean paths(GpuBenchOptions options, GpuAccelerator accelerator)
      throws IOException {
    BenchMachine machine = BenchMachine.read(accelerator);
    System.out.println(machine.gpu() + ", " + machine.driver() + ", " + machine.cpu());
    PathBenchOptions wanted =
        PathBenchOptions.in(options.folder()).with(Repetitions.of(options.repetitions()));
    List<Measurement> results;
    PathBenchListener printer =
        new PathBenchListener() {
          @Override
          public void measured(Measurement result) {
            System.out.println(line(result));
          }

          @Override
          public void skipped(String id, String why) {
            System.out.println("not measured: " + id + ": " + why);
          }
        };
    try (PathBench bench = new PathBench(accelerator, wanted, printer)) {
      results = bench.run();
    } catch (BenchException
        | StorageException
        | CudaException
        | NvmeException
        | InvalidRequestException e) {
      System.out.println("paths FAILED: " + e.getMessage());
      return false;
    }
    List<Measurement> all = new ArrayList<>(results);
    all.addAll(fromMemory(options, accelerator, results));
    if (options.file()) {
      MeasurementFile file = MeasurementFile.beside(options.out(), machine, commit());
      for (Measurement m : all) {
        file.add(m);
      }
      System.out.println("wrote " + file.path());
    }
    return true;
  }

  /** The path direct where no disk and no page cache bounds it: the SSD is memory. */
  private static List<Measurement> fromMemory(
      GpuBenchOptions options, GpuAccelerator accelerator, List<Measurement> others) {
    Repetitions times = Repetitions.of(options.repetitions());
    List<Measurement> all = new ArrayList<>();
    try (GpuBenchmarks benchmarks = GpuBenchmarks.open(accelerator)) {
      all.add(benchmarks.run("ceiling.h2d", times));
      Measurement stream = benchmarks.run("stream.1m.vram-data", times);
      all.add(compared(stream.named("paths.direct.seq.ram"), "paths.cufile.seq.warm", others));
      all.add(benchmarks.run("ceiling.copy.4k", times));
      Measurement random = benchmarks.run("random.4k.host", times);
      all.add(
          compared(random.named("paths.direct.rand4k.ram"), "paths.cufile.rand4k.warm", others));
    }
    all.forEach(m -> System.out.println(line(m)));
    return all;
  }

  private static Measurement compared(Measurement m, String peer, List<Measurement> others) {
    return others.stream().filter(o -> o.id().equals(peer)).findFirst().map(m::besides).orElse(m);
  }

  /** What the system property says, or else git in this folder. */
  static String commit() throws IOException {
    String given = System.getProperty("gpunvme.commit");
    if (given != null) {
      return given.strip();
    }
    Process git;
    try {
      git = new ProcessBuilder("git", "describe", "--always", "--dirty").start();
    } catch (IOException e) {
      return "unknown";
    }
    String text = new String(git.getInputStream().readAllBytes(), StandardCharsets.UTF_8).strip();
    return text.isEmpty() ? "unknown" : text;
  }

  /** One result on one line. */
  static String line(Measurement m) {
    StringBuilder text = new StringBuilder();
    text.append(
        String.format(
            Locale.ROOT,
            "%-40s %10s  min %10s  max %10s %s",
            m.id(),
            number(m, m.median()),
            number(m, m.min()),
            number(m, m.max()),
            unit(m)));
    if (m.conditions().get("doorbells_per_command") instanceof Double d && d > 0) {
      text.append(String.format(Locale.ROOT, ", 1/%.1f doorbells", 1 / d));
    }
    for (String name : List.of("p99_ns", "p99.9_ns")) {
      if (m.conditions().get(name) instanceof Long nanos) {
        text.append(", ").append(name.replace("_ns", "")).append(' ').append(nanos);
      }
    }
    for (String name : List.of("mode", "median_by_threads", "goal")) {
      if (m.conditions().containsKey(name)) {
        text.append(", ").append(m.conditions().get(name));
      }
    }
    Measurement.Peer peer = m.peer();
    if (peer != null) {
      text.append(
          String.format(Locale.ROOT, ", %.2f of %s", m.median() / peer.value(), peer.name()));
    }
    Measurement.Limit limit = m.limit();
    if (limit != null) {
      text.append(
          String.format(Locale.ROOT, ", %.2f of %s", m.median() / limit.value(), limit.id()));
    }
    return text.toString();
  }

  private static boolean inMillions(Measurement m) {
    return m.unit().endsWith("s/s");
  }

  private static String number(Measurement m, double value) {
    return inMillions(m)
        ? String.format(Locale.ROOT, "%.2f", value / MILLION)
        : String.format(Locale.ROOT, m.unit().equals("ns") ? "%.0f" : "%.2f", value);
  }

  private static String unit(Measurement m) {
    return inMillions(m) ? "M " + m.unit() : m.unit();
  }
}
