package io.gpunvme.tools.bench;

import io.gpunvme.base.CloseAll;
import io.gpunvme.cuda.CudaStream;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.models.tensor.TensorKernels;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.zip.CRC32C;

/**
 * Rows of half a matrix in GPU memory packed together, and checksums of GPU memory, beside a plain
 * copy of as many bytes. Everything that was copied is compared. For one thread.
 */
final class TensorBench implements AutoCloseable {
  static final String PREFIX = "tensors.";

  /** A copy reads and writes; a checksum only reads, and so may be faster. */
  static final String LIMIT = PREFIX + "copy";

  static final String CHECKSUM = PREFIX + "crc32c";

  private static final String ROWS = PREFIX + "rows.";
  private static final int[] WIDTHS = {64, 256, 2048, 16384};
  private static final int HOST_BYTES = 64 << 20;

  /** Copies between two looks at the clock, which then cost nothing. */
  private static final int ROUNDS = 8;

  private final GpuWords words;
  private final TensorKernels kernels;
  private final CudaStream stream;
  private final DeviceBuffer packed;
  private final DeviceBuffer strided;
  private final DeviceBuffer target;
  private final int crc;

  /**
   * @param reads of {@code reads.cu}; stay the caller's
   * @param bytes that are copied or summed at once, a multiple of {@value #HOST_BYTES}; four times
   *     as much is allocated
   */
  TensorBench(GpuAccelerator accelerator, BenchKernels reads, long bytes) {
    words = new GpuWords(accelerator, reads);
    List<AutoCloseable> made = new ArrayList<>();
    try {
      kernels = TensorKernels.open(accelerator);
      made.add(kernels);
      stream = accelerator.context().stream();
      made.add(stream);
      packed = accelerator.allocate(bytes);
      made.add(packed);
      target = accelerator.allocate(bytes);
      made.add(target);
      strided = accelerator.allocate(2 * bytes);
      made.add(strided);
      crc = fill(accelerator);
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, made, AutoCloseable::close);
      throw e;
    }
  }

  /** Makes the words hashes of their positions; returns their checksum. */
  private int fill(GpuAccelerator accelerator) {
    CRC32C sum = new CRC32C();
    try (DeviceBuffer host = accelerator.allocatePinned(packed.size())) {
      MemorySegment memory = host.segment();
      BlockPattern.hashWords(memory);
      packed.copyFromHost(memory, 0);
      for (long at = 0; at < memory.byteSize(); at += HOST_BYTES) {
        sum.update(memory.asSlice(at, HOST_BYTES).asByteBuffer());
      }
    }
    return (int) sum.getValue();
  }

  /** The names of all results, the limit first. */
  static List<String> ids() {
    List<String> ids = new ArrayList<>(List.of(LIMIT));
    for (int width : WIDTHS) {
      ids.add(ROWS + width);
    }
    ids.add(CHECKSUM);
    return ids;
  }

  /**
   * Bytes per second, in 10^9.
   *
   * @param id one of {@link #ids}
   * @throws BenchException if something else arrived than was copied, or a checksum is wrong
   */
  Measurement measure(String id, Repetitions repetitions) {
    Map<String, Object> conditions = new LinkedHashMap<>();
    conditions.put("bytes", packed.size());
    conditions.put("rounds", ROUNDS);
    double[] samples;
    if (id.equals(LIMIT)) {
      samples = repetitions.samples(() -> copies(id, this::plainCopy));
    } else if (id.equals(CHECKSUM)) {
      samples = repetitions.samples(() -> timed(() -> checksum(id)));
    } else {
      long width = Long.parseLong(id.substring(ROWS.length()));
      long rows = packed.size() / width;
      conditions.put("width_bytes", width);
      conditions.put("pitch_bytes", 2 * width);
      kernels.stridedCopy(packed, 0, width, strided, 0, 2 * width, width, rows);
      kernels.await();
      samples = repetitions.samples(() -> copies(id, () -> rows(width, rows)));
    }
    return Measurement.of(id, "GB/s", samples, conditions);
  }

  private void plainCopy() {
    for (int i = 0; i < ROUNDS; i++) {
      stream.copyOnDeviceAsync(target.deviceAddress(), packed.deviceAddress(), packed.size());
    }
    stream.synchronize();
  }

  private void rows(long width, long rows) {
    for (int i = 0; i < ROUNDS; i++) {
      kernels.stridedCopy(strided, 0, 2 * width, target, 0, width, width, rows);
    }
    kernels.await();
  }

  private void checksum(String id) {
    for (int i = 0; i < ROUNDS; i++) {
      int got = kernels.crc32c(packed, 0, packed.size());
      if (got != crc) {
        throw new BenchException(
            "%s: the checksum is %08Xh, expected %08Xh".formatted(id, got, crc));
      }
    }
  }

  private double copies(String id, Runnable copy) {
    words.clear(target);
    double rate = timed(copy);
    words.check(id, target);
    return rate;
  }

  private double timed(Runnable work) {
    long begin = System.nanoTime();
    work.run();
    return (double) ROUNDS * packed.size() / (System.nanoTime() - begin);
  }

  @Override
  public void close() {
    kernels.close();
    stream.close();
    packed.close();
    strided.close();
    target.close();
  }
}
