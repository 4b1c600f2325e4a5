package io.gpunvme.tools.bench;

import io.gpunvme.base.Align;
import io.gpunvme.base.ByteRange;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.transfer.InitiatorOptions;
import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.storage.GpuStorage;
import io.gpunvme.storage.layer.Layer;
import io.gpunvme.tools.ssd.Ssds;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Whatever is on SSDs, as layers: the CPU reads them first, so that it is known what is there. Then
 * they are read while work with the layer before goes on. Writes nothing. For one thread.
 */
public final class SsdLayers {
  /** How many there are in {@link #measure}. */
  public static final int MEASUREMENTS = LayerBench.CASES.size();

  private static final long PAGE = 4096;
  private static final long LONGEST = 64L << 20;
  private static final int MOST = 64;

  /** So that the memory is full before the last one is read. */
  private static final int LEAST = 2 * LayerBench.SLOTS;

  /** About how long a repetition reads. */
  private static final long READ_NANOS = 1_000_000_000;

  private final List<Layer> layers;
  private final long[] sums;

  private SsdLayers(List<Layer> layers, long[] sums) {
    this.layers = layers;
    this.sums = sums;
  }

  /**
   * Reads layers by the CPU: as many as it reads in about a second, 8 at least and 64 at most. They
   * have 64 MiB each, or less if the range or the memory is small.
   *
   * @param ssds open by the CPU, for the CPU's memory
   * @param range of their bytes; null: all
   * @param accelerator whose memory the layers are to be read into
   * @throws InvalidRequestException if the range is not inside, or has no 8 layers of 4 KiB
   * @throws io.gpunvme.storage.path.StorageException if it cannot be read
   */
  public static SsdLayers look(Ssds ssds, @Nullable ByteRange range, Accelerator accelerator) {
    // Refuses what is not inside before anything is read.
    ssds.blocks(range);
    long from = range == null ? 0 : range.offset();
    long first = Align.up(from, PAGE);
    long room = (range == null ? ssds.size() : from + range.bytes()) - first;
    long memory = accelerator.availableBytes() / (2 * LayerBench.SLOTS);
    long bytes = Math.min(LONGEST, Math.min(room / LEAST, memory)) / PAGE * PAGE;
    if (bytes < PAGE) {
      throw new InvalidRequestException(
          "%s has no %d layers of %d bytes"
              .formatted(range == null ? ssds.address() : "the range " + range, LEAST, PAGE));
    }
    List<Layer> all = LayerBench.layers((int) Math.min(MOST, room / bytes), bytes, first);
    long[] sums = new long[all.size()];
    int count = 0;
    try (DeviceBuffer buffer = ssds.storage().accelerator().allocatePinned(bytes)) {
      long begin = System.nanoTime();
      while (count < all.size() && (count < LEAST || System.nanoTime() - begin < READ_NANOS)) {
        long offset = all.get(count).offset();
        ssds.storage().read(offset, buffer, 0, bytes);
        MemorySegment words = buffer.segment().asSlice(0, bytes);
        sums[count++] = LayerSums.of(words, offset / Long.BYTES);
      }
    }
    return new SsdLayers(List.copyOf(all.subList(0, count)), Arrays.copyOf(sums, count));
  }

  /**
   * The time of reads and work together, in times of the longer of the two alone; the work takes
   * half as long as a read, as long, and twice. Kernels work if the accelerator is a GPU, else
   * threads of the CPU.
   *
   * @param ssds the same ones, open for the accelerator as {@code options} say
   * @throws BenchException if something else arrived than the CPU has read
   * @throws io.gpunvme.storage.layer.LayerException if a layer cannot be read
   */
  public List<Measurement> measure(Ssds ssds, InitiatorOptions options, Repetitions repetitions) {
    GpuStorage storage = ssds.storage();
    List<NvmeController> controllers = Ssds.controllers(ssds.blocks(null));
    Map<String, Object> how = new LinkedHashMap<>();
    how.put("path", "direct");
    how.put("initiator", options.initiator(storage.accelerator()).name());
    how.put(
        "placement", options.placement(controllers.getFirst(), storage.accelerator()).toString());
    how.put("ssds", controllers.size());
    try (LayerBench bench = new LayerBench(storage, layers, sums)) {
      how.put("mode", mode(storage));
      how.put("checked_against", "what the CPU reads");
      return LayerBench.CASES.keySet().stream()
          .map(id -> with(bench.measure(id, repetitions), how))
          .toList();
    }
  }

  /** How the storage reads, in its own words. */
  private String mode(GpuStorage storage) {
    try (DeviceBuffer buffer = storage.accelerator().allocatePinned(PAGE)) {
      return storage.read(layers.getFirst().offset(), buffer, 0, PAGE).mode();
    }
  }

  private static Measurement with(Measurement m, Map<String, Object> more) {
    Map<String, Object> conditions = new LinkedHashMap<>(more);
    conditions.putAll(m.conditions());
    return m.under(conditions);
  }
}
