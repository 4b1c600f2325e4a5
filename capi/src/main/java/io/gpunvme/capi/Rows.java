package io.gpunvme.capi;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.cuda.CudaStream;
import io.gpunvme.gpu.queue.DeviceRows;
import java.util.function.Consumer;

/**
 * A matrix that C has a handle of. Safe for all threads. Closing its cache, or that one's storage
 * for kernels, closes it, too.
 */
final class Rows implements AutoCloseable {
  private final Kernels kernels;
  private final Cache cache;
  private final DeviceRows rows;

  Rows(Kernels kernels, Cache cache, DeviceRows rows) {
    this.kernels = kernels;
    this.cache = cache;
    this.rows = rows;
  }

  /**
   * Starts it in a stream of the caller's.
   *
   * @param ids device address of the numbers of rows
   * @param count of them, unsigned
   * @param target device address of the rows
   */
  void gather(long ids, long count, long target, long stream) {
    start(ids, count, target, rows.rowBytes(), stream, s -> rows.gather(s, ids, count, target));
  }

  void fetch(long ids, long count, long stream) {
    start(ids, count, ids, 0, stream, s -> rows.fetch(s, ids, count));
  }

  void update(long ids, long count, long source, long stream) {
    start(ids, count, source, rows.rowBytes(), stream, s -> rows.update(s, ids, count, source));
  }

  /**
   * @param rowBytes in memory; 0: none
   */
  private void start(
      long ids, long count, long memory, long rowBytes, long handle, Consumer<CudaStream> work) {
    kernels.whileOpen(
        () -> {
          cache.requireOpen();
          if (count < 0 || count > Long.MAX_VALUE / Math.max(rowBytes, Long.BYTES)) {
            throw new InvalidRequestException(
                "%s rows are more than there can be".formatted(Long.toUnsignedString(count)));
          }
          if (count != 0) {
            if (ids % Long.BYTES != 0) {
              throw new InvalidRequestException(
                  "the numbers of rows at %Xh: a multiple of 8 is wanted".formatted(ids));
            }
            requireOfGpu(ids, count * Long.BYTES);
            if (rowBytes != 0) {
              requireOfGpu(memory, count * rowBytes);
            }
          }
          try (CudaStream stream = kernels.memory().stream(handle, kernels.name())) {
            work.accept(stream);
          }
          return count;
        });
  }

  /** What is under way needs the memory, which its owner keeps, and no more than that. */
  private void requireOfGpu(long address, long bytes) {
    Place place = kernels.memory().place(address, bytes);
    if (place == null) {
      throw new InvalidRequestException(
          "%Xh is not memory of the GPU, which moves the rows".formatted(address));
    }
    place.release().run();
  }

  /** Waits, and tells what failed. */
  void synchronize() {
    kernels.whileOpen(
        () -> {
          cache.requireOpen();
          rows.synchronize();
          return rows;
        });
  }

  @Override
  public void close() {
    kernels.beforeItCloses(rows::close);
  }
}
