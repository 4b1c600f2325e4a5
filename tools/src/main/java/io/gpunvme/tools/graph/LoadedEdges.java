package io.gpunvme.tools.graph;

import io.gpunvme.base.CloseAll;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.queue.RunningKernel;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/** All edges in memory, before the program begins: what an SSD is compared with. */
final class LoadedEdges implements EdgeMemory {
  /** So that a multiprocessor has all threads that it can have. */
  private static final int BLOCKS = 8;

  /** The share of all pages that a cache has if nobody says otherwise, and half of it. */
  private static final int SWEEP_SHARE = 8;

  private static final long LOOK_NANOS = 20_000;

  private final GpuAccelerator gpu;
  private final boolean host;
  private final List<DeviceBuffer> buffers = new ArrayList<>();
  private final long mostPieces;

  /**
   * @param host whether they are in pinned memory of the host, else in GPU memory
   */
  LoadedEdges(
      GpuAccelerator gpu,
      GraphReader graph,
      boolean host,
      int pageBytes,
      boolean weighted,
      GraphListener listener) {
    this.gpu = gpu;
    this.host = host;
    GraphHeader header = graph.header();
    mostPieces =
        header.edges() * (Integer.BYTES + (weighted ? Byte.BYTES : 0)) / pageBytes / SWEEP_SHARE;
    try {
      DeviceBuffer edges = allocate(header.edges() * Integer.BYTES);
      graph.edges(listener, edges::copyFromHost);
      if (weighted) {
        DeviceBuffer weights = allocate(header.edges());
        graph.weights(listener, weights::copyFromHost);
      }
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, this::close);
      throw e;
    }
  }

  private DeviceBuffer allocate(long bytes) {
    DeviceBuffer buffer = host ? gpu.allocatePinned(bytes) : gpu.allocate(bytes);
    buffers.add(buffer);
    return buffer;
  }

  @Override
  public String suffix() {
    return "_plain";
  }

  @Override
  public long edges() {
    return buffers.getFirst().deviceAddress();
  }

  @Override
  public long weights() {
    return buffers.size() == 1 ? 0 : buffers.getLast().deviceAddress();
  }

  @Override
  public int blocks() {
    return BLOCKS;
  }

  @Override
  public long mostPieces() {
    return mostPieces;
  }

  @Override
  public void await(RunningKernel kernel) {
    while (!kernel.isOver()) {
      LockSupport.parkNanos(LOOK_NANOS);
    }
  }

  @Override
  public long bytesRead() {
    return 0;
  }

  @Override
  public RuntimeException readFailed(long edge, int status) {
    return new IllegalStateException("edge %d was not read from memory".formatted(edge));
  }

  @Override
  public GraphReport.@Nullable Reads reads() {
    return null;
  }

  @Override
  public void close() {
    CloseAll.each(buffers, DeviceBuffer::close);
  }
}
