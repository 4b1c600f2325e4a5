package io.gpunvme.tools.bench;

import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.gpu.transfer.Direction;
import io.gpunvme.gpu.transfer.Extent;
import io.gpunvme.gpu.transfer.Initiator;
import io.gpunvme.gpu.transfer.InitiatorKind;
import io.gpunvme.gpu.transfer.InitiatorOptions;
import io.gpunvme.gpu.transfer.TransferPlan;
import io.gpunvme.gpu.transfer.TransferReport;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;

/**
 * The reads of {@link GpuBenchmarks} with the CPU as initiator, for machines without a GPU and for
 * comparison. Every block that arrives is checked. For one thread.
 */
public final class CpuBenchmarks {
  private static final long BYTES = 256L << 20;
  private static final int STREAM_BLOCK = 4096;
  private static final int BLOCKS_AT_ONCE = 16384;
  private static final int SEED = 42;
  private static final double NANOS_PER_SECOND = 1e9;

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
    try (BenchDevice device = new BenchDevice(BYTES, block, workers());
        CpuAccelerator accelerator = CpuAccelerator.open();
        Initiator initiator = open(device, accelerator, queuePairs, depth);
        DeviceBuffer target = accelerator.allocate((long) BLOCKS_AT_ONCE * block)) {
      BlockPattern.stampBlocks(device.medium(), block);
      String id = "random." + (block == 4096 ? "4k" : Integer.toString(block)) + ".cpu";
      SplittableRandom random = new SplittableRandom(SEED);
      Map<String, Object> conditions = new LinkedHashMap<>();
      conditions.put("block_bytes", block);
      double[] samples =
          repetitions.samples(
              () -> {
                long[] blocks =
                    random.longs(BLOCKS_AT_ONCE, 0, device.namespace().blocks()).toArray();
                target.segment().fill((byte) 0);
                TransferReport report = initiator.run(plan(device, blocks), target, moved -> {});
                check(id, target, block, blocks);
                describe(conditions, report);
                return report.commands() * NANOS_PER_SECOND / report.nanos();
              });
      return Measurement.of(id, "commands/s", samples, conditions);
    }
  }

  private static TransferPlan plan(BenchDevice device, long[] blocks) {
    List<Extent> extents = new ArrayList<>();
    int size = device.namespace().blockSize();
    for (int i = 0; i < blocks.length; i++) {
      extents.add(new Extent(blocks[i], 1, (long) i * size));
    }
    return TransferPlan.of(Direction.READ, device.namespace(), size, extents);
  }

  private static void check(String id, DeviceBuffer target, int size, long[] blocks) {
    int wrong = 0;
    for (int i = 0; i < blocks.length; i++) {
      wrong += BlockPattern.isBlock(target.segment(), (long) i * size, size, blocks[i]) ? 0 : 1;
    }
    if (wrong != 0) {
      throw new BenchException(id + ": " + wrong + " blocks are not those asked for");
    }
  }

  /**
   * Reads of 1 MiB.
   *
   * @param queuePairs 0: as {@link InitiatorOptions} says
   * @param depth likewise
   * @throws BenchException if something else arrived than was asked for
   */
  public static Measurement stream(int queuePairs, int depth, Repetitions repetitions) {
    try (BenchDevice device = new BenchDevice(BYTES, STREAM_BLOCK, workers());
        CpuAccelerator accelerator = CpuAccelerator.open();
        Initiator initiator = open(device, accelerator, queuePairs, depth);
        DeviceBuffer target = accelerator.allocate(BYTES)) {
      BlockPattern.hashWords(device.medium());
      TransferPlan plan =
          TransferPlan.of(
              Direction.READ,
              device.namespace(),
              initiator.maxTransferBytes(),
              List.of(new Extent(0, device.namespace().blocks(), 0)));
      Map<String, Object> conditions = new LinkedHashMap<>();
      conditions.put("command_bytes", initiator.maxTransferBytes());
      double[] samples =
          repetitions.samples(
              () -> {
                target.segment().fill((byte) 0);
                TransferReport report = initiator.run(plan, target, moved -> {});
                long wrong = BlockPattern.wrongWords(target.segment());
                if (wrong != 0) {
                  throw new BenchException("stream.1m.cpu: " + wrong + " words are wrong");
                }
                describe(conditions, report);
                return report.gigabytesPerSecond();
              });
      return Measurement.of("stream.1m.cpu", "GB/s", samples, conditions);
    }
  }

  private static int workers() {
    return InitiatorOptions.suitableThreads();
  }

  private static Initiator open(
      BenchDevice device, CpuAccelerator accelerator, int queuePairs, int depth) {
    return InitiatorOptions.defaults()
        .with(InitiatorKind.CPU, Placement.HOST)
        .with(queuePairs, depth, 0)
        .open(device.controller(), accelerator);
  }

  private static void describe(Map<String, Object> conditions, TransferReport report) {
    conditions.put("namespace_bytes", BYTES);
    conditions.put("queue_pairs", report.queuePairs());
    conditions.put("depth", report.depth());
    conditions.put("threads", report.threads());
    conditions.put("controller_threads", workers());
    conditions.put("commands", report.commands());
    conditions.put(
        "doorbells_per_command",
        (double) (report.sqDoorbells() + report.cqDoorbells()) / report.commands());
  }
}
