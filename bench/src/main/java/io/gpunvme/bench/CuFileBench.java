package io.gpunvme.bench;

import io.gpunvme.base.CloseAll;
import io.gpunvme.bench.BindingsChild.MissingException;
import io.gpunvme.cuda.CudaException;
import io.gpunvme.cuda.CudaNotFoundException;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.tools.bench.BenchException;
import io.gpunvme.tools.bench.BenchMachine;
import io.gpunvme.tools.bench.Measurement;
import io.gpunvme.tools.bench.MeasurementFile;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * One program that reads a file into GPU memory by cuFile's interface, with gpunvme's libcufile and
 * with NVIDIA's: {@link CuFileBenchOptions#USAGE} has the options. Each library is in a process of
 * its own; they take turns, sample by sample, so that what else the machine does meets both.
 */
public final class CuFileBench {
  private static final String START = "start";

  /** Of which the second is what calls are compared with. */
  private static final String OURS = "gpunvme";

  private static final String NVIDIA = "nvidia";

  /** The same file through an embedded SSD, by an address file. */
  private static final String MAPPED = "mapped";

  private static final Duration PATIENCE = Duration.ofMinutes(2);
  private static final int MIB = 1 << 20;

  /**
   * One result.
   *
   * @param id for gpunvme's; another side's ends with its name
   * @param command for the program
   * @param unit as measurements have it
   * @param scale from the program's number to it
   * @param limited whether a copy bounds it
   */
  private record Row(String id, String command, String unit, double scale, boolean limited) {
    String of(String side) {
      return side.equals(OURS) ? id : id + "." + side;
    }
  }

  private static final Row COPY = new Row("cufile.copy.1m", "copy 8 " + MIB, "GB/s", 1e-9, false);

  private final CuFileBenchOptions options;
  private final Map<String, BindingsChild> sides = new LinkedHashMap<>();
  private final Map<String, List<Double>> samples = new LinkedHashMap<>();

  /** What ended the measurements early; those that were whole before it are kept. */
  private @Nullable BenchException failure;

  private CuFileBench(CuFileBenchOptions options) {
    this.options = options;
  }

  private static List<Row> rows(boolean device) {
    List<Row> rows = new ArrayList<>();
    for (String kind : List.of("once", "seq")) {
      for (int threads : new int[] {1, 4, 8}) {
        rows.add(
            bytes(
                "cufile.%s.1m.t%d".formatted(kind, threads),
                kind + " %d %d".formatted(threads, MIB)));
      }
    }
    rows.add(calls("cufile.rand.4k.t1", "rand 1 4096"));
    rows.add(calls("cufile.rand.4k.t8", "rand 8 4096"));
    rows.add(calls("cufile.batch.4k", "batch 64 4096"));
    if (device) {
      rows.add(bytes("cufile.stream.1m", "stream 16 " + MIB));
      rows.add(bytes("cufile.stream.16m", "stream 4 " + 16 * MIB));
    }
    rows.add(bytes("cufile.cold.1m.t8", "cold 8 " + MIB));
    return rows;
  }

  private static Row bytes(String id, String command) {
    return new Row(id, command, "GB/s", 1e-9, true);
  }

  private static Row calls(String id, String command) {
    return new Row(id, command, "commands/s", 1, false);
  }

  /** See the class. Exit codes: 0 done, 1 a library failed or is not there, 2 usage. */
  public static void main(String[] args) throws IOException {
    CuFileBenchOptions options;
    try {
      options = CuFileBenchOptions.parse(List.of(args));
    } catch (IllegalArgumentException e) {
      System.err.println(e.getMessage() + "\n" + CuFileBenchOptions.USAGE);
      System.exit(2);
      return;
    }
    try {
      BenchMachine machine = machine(options);
      CuFileBench bench = new CuFileBench(options);
      List<Measurement> results = bench.measure();
      MeasurementFile out = MeasurementFile.beside(options.out(), machine, GpuBench.commit());
      for (Measurement m : results) {
        System.out.println(GpuBench.line(m));
        out.add(m);
      }
      if (!results.isEmpty()) {
        System.out.println("wrote " + out.path());
      }
      if (bench.failure != null) {
        throw bench.failure;
      }
    } catch (BenchException | CudaNotFoundException | CudaException e) {
      System.err.println(e.getMessage());
      System.exit(1);
    }
  }

  private static BenchMachine machine(CuFileBenchOptions options) throws IOException {
    if (!options.device()) {
      return BenchMachine.withoutGpu();
    }
    try (GpuAccelerator gpu = GpuAccelerator.open()) {
      return BenchMachine.read(gpu);
    }
  }

  private List<Measurement> measure() throws IOException {
    Path file = options.folder().resolve("gpunvme-cufile.bin").toAbsolutePath();
    Path address = options.folder().resolve("gpunvme-cufile.address").toAbsolutePath();
    try {
      PatternFile.at(file, options.bytes());
      Files.writeString(address, "gpunvme:sim:latency=0,readonly=on,file=" + file + "\n");
      starts(file);
      start(OURS, options.ours(), file, file);
      options.nvidia().ifPresent(library -> start(NVIDIA, library, file, file));
      if (options.device()) {
        start(MAPPED, options.ours(), address, file);
      }
      run();
    } catch (BenchException e) {
      failure = e;
    } finally {
      CloseAll.newestFirst(new ArrayList<>(sides.values()));
      Files.deleteIfExists(file);
      Files.deleteIfExists(address);
    }
    return results();
  }

  /** What the first call costs, each time in a process of its own. */
  private void starts(Path file) {
    for (int i = 0; i < options.repetitions(); i++) {
      startOnce(OURS, options.ours(), file);
      options.nvidia().ifPresent(library -> startOnce(NVIDIA, library, file));
    }
  }

  private void startOnce(String side, Path library, Path file) {
    try (BindingsChild child = child(side, library, file, file)) {
      add(startRow().of(side), child.ask(START)[0] * startRow().scale);
    }
  }

  private static Row startRow() {
    return new Row("cufile.start", START, "ms", 1e-6, false);
  }

  private void start(String side, Path library, Path file, Path content) {
    sides.put(side, child(side, library, file, content));
  }

  private BindingsChild child(String side, Path library, Path file, Path content) {
    List<String> command =
        List.of(
            options.program().toString(),
            library.toAbsolutePath().toString(),
            file.toString(),
            content.toString(),
            options.device() ? "device" : "host");
    try {
      // Another library does not know it.
      return BindingsChild.start(side, command, Map.of("GPUNVME_CUFILE_PIN", "auto"), PATIENCE);
    } catch (MissingException e) {
      throw new BenchException(side + ": " + e.getMessage());
    }
  }

  private void run() {
    for (int i = 0; options.device() && i < options.repetitions(); i++) {
      add(COPY.id, Objects.requireNonNull(sides.get(OURS)).ask(COPY.command)[0] * COPY.scale);
    }
    for (Row row : rows(options.device())) {
      // One more, which makes ready what is made once.
      for (int i = -1; i < options.repetitions(); i++) {
        for (Map.Entry<String, BindingsChild> side : sides.entrySet()) {
          if (side.getKey().equals(MAPPED) && !isForStorage(row.command)) {
            continue;
          }
          double sample = side.getValue().ask(row.command)[0] * row.scale;
          if (i >= 0) {
            add(row.of(side.getKey()), sample);
          }
        }
      }
    }
  }

  /** Storage of ours has no page cache, and takes no transfers in streams. */
  static boolean isForStorage(String command) {
    return !command.startsWith("cold")
        && !command.startsWith("once")
        && !command.startsWith("stream");
  }

  private void add(String id, double sample) {
    samples.computeIfAbsent(id, any -> new ArrayList<>()).add(sample);
  }

  // ---- results

  private List<Measurement> results() {
    List<Measurement> results = new ArrayList<>();
    if (options.device() && samples.containsKey(COPY.id)) {
      results.add(measurement(COPY, OURS));
    }
    List<Row> all = new ArrayList<>(List.of(startRow()));
    all.addAll(rows(options.device()));
    for (Row row : all) {
      if (!isWhole(row)) {
        continue;
      }
      Measurement ours = measurement(row, OURS);
      if (row.limited && !results.isEmpty() && results.getFirst().id().equals(COPY.id)) {
        ours = ours.limitedBy(results.getFirst());
      }
      if (samples.containsKey(row.of(NVIDIA))) {
        Measurement nvidia = measurement(row, NVIDIA);
        ours = ours.besides(nvidia);
        results.add(nvidia);
      }
      results.add(ours);
      if (samples.containsKey(row.of(MAPPED))) {
        results.add(measurement(row, MAPPED));
      }
    }
    return results;
  }

  private boolean isWhole(Row row) {
    int wanted = options.repetitions();
    return samples.getOrDefault(row.of(OURS), List.of()).size() == wanted
        && (options.nvidia().isEmpty()
            || samples.getOrDefault(row.of(NVIDIA), List.of()).size() == wanted);
  }

  private Measurement measurement(Row row, String side) {
    Map<String, Object> conditions = new LinkedHashMap<>();
    conditions.put("library", side.equals(NVIDIA) ? "NVIDIA" : "gpunvme");
    conditions.put("asked", row.command);
    conditions.put("file_bytes", options.bytes());
    conditions.put("memory", options.device() ? "GPU" : "host");
    if (!side.equals(NVIDIA)) {
      conditions.put("GPUNVME_CUFILE_PIN", "auto");
    }
    if (side.equals(MAPPED)) {
      conditions.put("file", "an address file: an embedded SSD on the same file");
    }
    double[] values =
        samples.getOrDefault(row.of(side), List.of()).stream()
            .mapToDouble(Double::doubleValue)
            .toArray();
    return new Measurement(row.of(side), row.unit, values, conditions, null, null);
  }
}
