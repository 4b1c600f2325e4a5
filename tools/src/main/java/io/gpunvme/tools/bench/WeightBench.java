package io.gpunvme.tools.bench;

import io.gpunvme.base.CloseAll;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.accel.HostMemoryKind;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.gpu.transfer.InitiatorKind;
import io.gpunvme.gpu.transfer.InitiatorOptions;
import io.gpunvme.models.Load;
import io.gpunvme.models.LoadListener;
import io.gpunvme.models.LoadPlan;
import io.gpunvme.models.LoadReport;
import io.gpunvme.models.LoadRequest;
import io.gpunvme.models.LoadedTensor;
import io.gpunvme.models.LoadedWeights;
import io.gpunvme.models.ShardRules;
import io.gpunvme.models.Weights;
import io.gpunvme.models.tensor.TensorKernels;
import io.gpunvme.storage.GpuStorage;
import io.gpunvme.storage.SetShape;
import io.gpunvme.storage.StorageOptions;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * A sharded model of more than 8 GiB from four embedded SSDs in pinned memory, read by kernels into
 * its tensors' own memory, beside a plain copy. Every tensor's checksum is compared. For one
 * thread.
 */
final class WeightBench implements AutoCloseable {
  static final String PREFIX = "weights.";

  /** All of it, 10^9 bytes a second. */
  static final String ALL = PREFIX + "striped4";

  /** One rank of four: bytes that were read, in times of those that it needs. */
  static final String RANK = PREFIX + "striped4.rank";

  private static final StripedModel.Size SIZE = new StripedModel.Size(4, 6, 4096, 11008);
  private static final int SSDS = 4;
  private static final int RANKS = 4;
  private static final int BLOCK_SIZE = 4096;
  private static final double NANOS_PER_SECOND = 1e9;

  /** Letters by which the controllers' threads begin. */
  private static final String CONTROLLER_THREADS = "sim:";

  private final GpuAccelerator accelerator;
  private final int workers;
  private final List<AutoCloseable> open = new ArrayList<>();
  private final List<BenchDevice> devices = new ArrayList<>();
  private final Map<String, Integer> checksums;
  private final TensorKernels kernels;
  private final GpuStorage storage;
  private final Weights weights;

  /**
   * @param workers threads of each controller
   * @param queuePairs of each SSD
   * @param depth commands in flight per queue pair
   */
  WeightBench(GpuAccelerator accelerator, int workers, int queuePairs, int depth) {
    this.accelerator = accelerator;
    this.workers = workers;
    try {
      long bytes = StripedModel.bytesPerDevice(SIZE, SSDS);
      for (int i = 0; i < SSDS; i++) {
        BenchDevice device =
            kept(new BenchDevice("SSD" + i, bytes, BLOCK_SIZE, workers, StripedModel.UNIT));
        devices.add(device);
        open.add(accelerator.mapHost(device.medium(), HostMemoryKind.MEMORY));
      }
      StripedModel model = StripedModel.write(SIZE, devices);
      checksums = model.checksums();
      kernels = kept(TensorKernels.open(accelerator));
      InitiatorOptions gpu =
          InitiatorOptions.defaults()
              .with(InitiatorKind.GPU, Placement.VRAM_DATA)
              .with(queuePairs, depth, 0);
      storage =
          kept(
              GpuStorage.over(
                  devices.stream().map(BenchDevice::controller).toList(),
                  SetShape.striped(StripedModel.UNIT),
                  accelerator,
                  StorageOptions.defaults().with(gpu)));
      weights = kept(Weights.over(storage, "model", model.files()));
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, this::close);
      throw e;
    }
  }

  private <T extends AutoCloseable> T kept(T part) {
    open.add(part);
    return part;
  }

  /** The names of all results. */
  static List<String> ids() {
    return List.of(ALL, RANK);
  }

  /**
   * Takes one result.
   *
   * @throws BenchException if a tensor was not what the SSDs have, the CPU asked for something, or
   *     more memory was taken than the plan and the storage say
   */
  Measurement measure(String id, Repetitions repetitions) {
    boolean rank = id.equals(RANK);
    LoadRequest request =
        rank ? LoadRequest.all().rank(1, RANKS, ShardRules.rows()) : LoadRequest.all();
    List<Run> runs = new ArrayList<>();
    double[] samples =
        repetitions.samples(
            () -> {
              Run run = once(id, request, runs.isEmpty());
              runs.add(run);
              LoadReport r = run.report;
              return rank ? (double) run.moved / r.bytes() : r.gigabytesPerSecond();
            });
    Map<String, Object> conditions = conditions(weights.plan(request), runs);
    return Measurement.of(id, rank ? "ratio" : "GB/s", samples, conditions);
  }

  /**
   * One load.
   *
   * @param moved bytes that the controllers read from their media
   * @param extra memory of the GPU at its peak, beside the tensors'
   * @param loaderSeconds of processors, without the controllers'
   */
  private record Run(
      LoadReport report, long moved, long extra, double loaderSeconds, double controllerSeconds) {}

  /**
   * @param watched whether to watch the memory, which costs time
   */
  private Run once(String id, LoadRequest request, boolean watched) {
    long[] byCpu = devices.stream().mapToLong(BenchDevice::commandsByCpu).toArray();
    long moved = moved();
    double all = ProcessorTime.all();
    double controllers = ProcessorTime.threads(CONTROLLER_THREADS);
    try (Load load = weights.prepare(weights.plan(request), null);
        MemoryPeak peak = MemoryPeak.watch(accelerator, watched);
        LoadedWeights loaded = load.run(LoadListener.NONE)) {
      double controllersUsed = ProcessorTime.threads(CONTROLLER_THREADS) - controllers;
      double used = ProcessorTime.all() - all - controllersUsed - peak.processorSeconds();
      long extra = peak.bytes() - load.plan().tensorBytes();
      moved = moved() - moved;
      for (int i = 0; i < devices.size(); i++) {
        devices.get(i).requireNoneByCpu(id, byCpu[i]);
      }
      if (request.ranks() == 1) {
        check(id, loaded);
      }
      return new Run(loaded.report(), moved, extra, used, controllersUsed);
    }
  }

  private long moved() {
    return devices.stream().mapToLong(BenchDevice::readBytes).sum();
  }

  private void check(String id, LoadedWeights loaded) {
    for (Map.Entry<String, Integer> wanted : checksums.entrySet()) {
      LoadedTensor t = loaded.tensor(wanted.getKey());
      if (kernels.crc32c(t.buffer(), t.offset(), t.bytes()) != wanted.getValue()) {
        throw new BenchException(id + ": tensor " + t.name() + " differs from the one on the SSDs");
      }
    }
  }

  private Map<String, Object> conditions(LoadPlan plan, List<Run> runs) {
    // The first one is not counted, but took memory that the others found.
    List<Run> counted = runs.subList(1, runs.size());
    Run middle =
        counted.stream()
            .sorted((a, b) -> Long.compare(a.report.nanos(), b.report.nanos()))
            .toList()
            .get(counted.size() / 2);
    long peak = runs.stream().mapToLong(Run::extra).max().orElse(0);
    long stated = plan.ringBytes() + storage.gpuBytes();
    if (peak > stated) {
      throw new BenchException(
          "at the peak, %d bytes of GPU memory besides the tensors'; the plan stated %d"
              .formatted(peak, stated));
    }
    Map<String, Object> conditions = new LinkedHashMap<>();
    conditions.put("tensors", plan.tensors());
    conditions.put("bytes", plan.bytes());
    conditions.put("files", weights.files().size());
    conditions.put("ssds", SSDS);
    conditions.put("stripe_bytes", StripedModel.UNIT);
    conditions.put("load_ns", middle.report.nanos());
    conditions.put("allocate_ns", middle.report.allocateNanos());
    conditions.put("read_bytes", middle.moved);
    conditions.put("stated_gpu_bytes", stated);
    conditions.put("peak_extra_gpu_bytes", peak);
    conditions.put("loader_cpu_seconds", middle.loaderSeconds);
    conditions.put("controller_cpu_seconds", middle.controllerSeconds);
    conditions.put(
        "loader_processors", middle.loaderSeconds * NANOS_PER_SECOND / middle.report.nanos());
    conditions.put("mode", middle.report.mode());
    conditions.put("controller_threads", SSDS * workers);
    conditions.put("command_bytes", devices.getFirst().controller().maxTransferBytes());
    conditions.put("accelerator", accelerator.name());
    return conditions;
  }

  @Override
  public void close() {
    CloseAll.newestFirst(open);
  }
}
