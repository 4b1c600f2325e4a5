package io.gpunvme.gpu.queue;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.cuda.CudaStream;
import org.jspecify.annotations.Nullable;

/**
 * A matrix on SSDs whose rows the GPU moves by their numbers, through a {@link PageCache}: features
 * of a graph, a table of embeddings. Made by {@link PageCache#rows}. Safe for all threads.
 *
 * <p>{@link #gather}, {@link #fetch} and {@link #update} put a kernel into a stream and return at
 * once; their memory stays until it is over. What failed is told by the next call, or by {@link
 * #synchronize}, which waits.
 */
public final class DeviceRows implements AutoCloseable {
  private final RowKernels kernels;
  private final DeviceArray array;
  private final long count;
  private final long rowBytes;
  private final boolean writable;

  /** Guarded by this. */
  private @Nullable RuntimeException failure;

  private volatile boolean closed;

  /**
   * @param array of bytes
   */
  DeviceRows(RowKernels kernels, DeviceArray array, long count, long rowBytes, boolean writable) {
    this.kernels = kernels;
    this.array = array;
    this.count = count;
    this.rowBytes = rowBytes;
    this.writable = writable;
  }

  /** Rows. */
  public long count() {
    return count;
  }

  /** Bytes of a row. */
  public long rowBytes() {
    return rowBytes;
  }

  /**
   * Copies rows into memory of the GPU, those that the cache does not have from the SSDs. A row
   * that does not come is filled with bytes FFh.
   *
   * @param stream in whose order it happens
   * @param ids device address of signed 64-bit numbers of rows, in any order, also more than once
   * @param rows how many, 0 or more
   * @param target device address of {@code rows * rowBytes} bytes
   * @throws RowsFailedException if an earlier call failed; nothing is started then
   */
  public void gather(CudaStream stream, long ids, long rows, long target) {
    start(RowKernels.Kernel.GATHER, stream, ids, rows, target);
  }

  /** Has rows read into the cache, as {@link #gather}, whose call for them is faster then. */
  public void fetch(CudaStream stream, long ids, long rows) {
    start(RowKernels.Kernel.FETCH, stream, ids, rows, 0);
  }

  /**
   * Overwrites rows in the cache, as {@link #gather} reads them. The SSD has them after {@link
   * PageCache#flush}, or when the cache needs the room. Of a row that is named more than once any
   * of its values may be kept, or parts of several.
   *
   * @param source device address of {@code rows * rowBytes} bytes
   * @throws InvalidRequestException if the rows may not be written
   */
  public void update(CudaStream stream, long ids, long rows, long source) {
    if (!writable) {
      throw new InvalidRequestException("these rows were opened to be read only");
    }
    start(RowKernels.Kernel.UPDATE, stream, ids, rows, source);
  }

  private void start(
      RowKernels.Kernel kernel, CudaStream stream, long ids, long rows, long memory) {
    requireOpen();
    check();
    if (rows < 0 || rows > Long.MAX_VALUE / rowBytes) {
      throw new InvalidRequestException(
          "%d rows of %d bytes are more than there can be".formatted(rows, rowBytes));
    }
    if (rows != 0) {
      kernels.launch(this, kernel, stream, ids, rows, memory);
    }
  }

  /**
   * Waits until all that was started is over.
   *
   * @throws RowsFailedException if rows failed that nobody was told of yet
   * @throws io.gpunvme.nvme.NvmeTimeoutException if a kernel hung
   */
  public void synchronize() {
    requireOpen();
    kernels.awaitAll(this);
    check();
  }

  /** Tells once what failed. */
  private void check() {
    RuntimeException told = takeFailure();
    if (told != null) {
      kernels.told(told);
      throw told;
    }
  }

  private synchronized @Nullable RuntimeException takeFailure() {
    RuntimeException told = failure;
    failure = null;
    return told;
  }

  // ---- for RowKernels

  long array() {
    return array.deviceAddress();
  }

  /** A call has failed, perhaps behind others of which nobody was told yet. */
  synchronized void failed(RuntimeException e) {
    failure = failure == null ? e : failure;
  }

  private void requireOpen() {
    if (closed) {
      throw new IllegalStateException("these rows are closed");
    }
  }

  /** Waits for what was started. Closing the cache or its storage closes it, too. */
  @Override
  public void close() {
    if (!closed) {
      closed = true;
      kernels.awaitAll(this);
      array.close();
    }
  }
}
