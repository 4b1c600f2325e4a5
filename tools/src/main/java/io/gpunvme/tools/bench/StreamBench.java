package io.gpunvme.tools.bench;

import io.gpunvme.base.CloseAll;
import io.gpunvme.cuda.CudaEvent;
import io.gpunvme.cuda.CudaStream;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.accel.HostMemoryKind;
import io.gpunvme.gpu.accel.HostWindow;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.gpu.transfer.Direction;
import io.gpunvme.gpu.transfer.Extent;
import io.gpunvme.gpu.transfer.GpuInitiator;
import io.gpunvme.gpu.transfer.TransferPlan;
import io.gpunvme.gpu.transfer.TransferReport;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Long reads from an embedded SSD whose medium is pinned memory, by a kernel, beside a plain copy
 * of the same bytes. The GPU compares every byte that arrived. For one thread.
 */
final class StreamBench implements AutoCloseable {
  static final String CEILING = "ceiling.h2d";

  private static final int BLOCK_SIZE = 4096;
  private static final long COPY_BYTES = 64L << 20;
  private static final int ROUNDS = 2;
  private static final int RETRIES = 0;
  private static final double BYTES_PER_MILLI_AND_GB = 1e6;

  private final GpuAccelerator accelerator;
  private final GpuWords words;
  private final BenchDevice device;
  private final HostWindow pinned;
  private final int workers;

  /**
   * @param kernels of {@code reads.cu}; stay the caller's
   * @param bytes of the SSD, a multiple of 1 MiB; each repetition reads them {@value #ROUNDS} times
   * @param workers threads of the controller
   */
  StreamBench(GpuAccelerator accelerator, BenchKernels kernels, long bytes, int workers) {
    this.accelerator = accelerator;
    this.words = new GpuWords(accelerator, kernels);
    this.workers = workers;
    device = new BenchDevice(bytes, BLOCK_SIZE, workers);
    try {
      BlockPattern.hashWords(device.medium());
      pinned = accelerator.mapHost(device.medium(), HostMemoryKind.MEMORY);
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, device::close);
      throw e;
    }
  }

  /**
   * Bytes per second of 1 MiB reads, in 10^9.
   *
   * @throws BenchException if something else arrived than was on the SSD
   */
  Measurement measure(
      String id, Placement placement, int queuePairs, int depth, Repetitions repetitions) {
    Map<String, Object> conditions = new LinkedHashMap<>();
    long bytes = device.namespace().bytes();
    try (DeviceBuffer target = placement.allocate(accelerator, bytes);
        GpuInitiator initiator =
            GpuInitiator.open(
                device.controller(), accelerator, placement, queuePairs, depth, RETRIES)) {
      TransferPlan plan = plan(initiator.maxTransferBytes());
      double[] samples =
          repetitions.samples(
              () -> {
                words.clear(target);
                long byCpu = device.commandsByCpu();
                TransferReport report = initiator.run(plan, target, moved -> {});
                device.requireNoneByCpu(id, byCpu);
                words.check(id, target);
                conditions.put("depth", report.depth());
                conditions.put("queue_pairs", report.queuePairs());
                return report.gigabytesPerSecond();
              });
      conditions.put("placement", placement.toString());
      conditions.put("command_bytes", initiator.maxTransferBytes());
      conditions.put("bytes", plan.bytes());
      conditions.put("controller_threads", workers);
      return Measurement.of(id, "GB/s", samples, conditions);
    }
  }

  private TransferPlan plan(long maxTransferBytes) {
    List<Extent> extents = new ArrayList<>();
    for (int i = 0; i < ROUNDS; i++) {
      extents.add(new Extent(0, device.namespace().blocks(), 0));
    }
    return TransferPlan.of(Direction.READ, device.namespace(), maxTransferBytes, extents);
  }

  /** The most that any path from pinned host memory can do: large copies, one after the other. */
  Measurement ceiling(Repetitions repetitions) {
    MemorySegment medium = device.medium();
    try (DeviceBuffer target = accelerator.allocate(medium.byteSize());
        CudaStream stream = accelerator.context().stream();
        CudaEvent begin = accelerator.context().timingEvent();
        CudaEvent end = accelerator.context().timingEvent()) {
      double[] samples =
          repetitions.samples(
              () -> {
                words.clear(target);
                stream.record(begin);
                for (int i = 0; i < ROUNDS; i++) {
                  copy(stream, medium, target);
                }
                stream.record(end);
                stream.synchronize();
                words.check(CEILING, target);
                double millis = end.millisecondsSince(begin);
                return ROUNDS * medium.byteSize() / millis / BYTES_PER_MILLI_AND_GB;
              });
      Map<String, Object> conditions = new LinkedHashMap<>();
      conditions.put("copy_bytes", COPY_BYTES);
      conditions.put("bytes", ROUNDS * medium.byteSize());
      return Measurement.of(CEILING, "GB/s", samples, conditions);
    }
  }

  private static void copy(CudaStream stream, MemorySegment medium, DeviceBuffer target) {
    for (long at = 0; at < medium.byteSize(); at += COPY_BYTES) {
      long part = Math.min(COPY_BYTES, medium.byteSize() - at);
      stream.copyToDeviceAsync(target.deviceAddress() + at, medium.asSlice(at, part));
    }
  }

  @Override
  public void close() {
    // The medium goes with the device.
    pinned.close();
    device.close();
  }
}
