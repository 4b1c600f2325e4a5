package io.gpunvme.tools.bench;

import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.gpu.transfer.InitiatorKind;
import io.gpunvme.gpu.transfer.InitiatorOptions;
import io.gpunvme.storage.BlockRun;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;

/**
 * The reads of {@link GpuBenchmarks} with the CPU as initiator, for machines without a GPU and for
 * comparison. Every block that arrives is checked. For one thread.
 */
public final class CpuBenchmarks {
  private static final long BYTES = 256L << 20;
  private static final int STREAM_BLOCK = 4096;

  private CpuBenchmarks() {}

  /**
   * Random reads of one block each.
   *
   * @param block 512 or 4096 bytes
   * @param queuePairs 0: as {@link InitiatorOptions} says
   * @param depth likewise
   * @throws BenchException if something else arrived than was asked for
   */
  public static Measurement random(int block, int queuePairs, int depth, Repetitions repetitions) {
    return measure(block, queuePairs, depth, bench -> bench.random(block, repetitions));
  }

  /**
   * Reads of 1 MiB.
   *
   * @param queuePairs 0: as {@link InitiatorOptions} says
   * @param depth likewise
   * @throws BenchException if something else arrived than was asked for
   */
  public static Measurement stream(int queuePairs, int depth, Repetitions repetitions) {
    return measure(STREAM_BLOCK, queuePairs, depth, bench -> bench.stream(repetitions));
  }

  private static Measurement measure(
      int block, int queuePairs, int depth, Function<SsdBench, Measurement> what) {
    int workers = InitiatorOptions.suitableThreads();
    InitiatorOptions cpu =
        InitiatorOptions.defaults()
            .with(InitiatorKind.CPU, Placement.HOST)
            .with(queuePairs, depth, 0);
    try (BenchDevice device = new BenchDevice(BYTES, block, workers);
        CpuAccelerator accelerator = CpuAccelerator.open()) {
      BlockPattern.hashWords(device.medium());
      BlockRun all =
          new BlockRun(device.controller(), device.namespace(), 0, device.namespace().blocks());
      try (SsdBench bench = SsdBench.ofHashedWords(List.of(all), accelerator, cpu)) {
        Measurement result = what.apply(bench);
        Map<String, Object> conditions = new LinkedHashMap<>(result.conditions());
        conditions.put("controller_threads", workers);
        return result.under(conditions);
      }
    }
  }
}
