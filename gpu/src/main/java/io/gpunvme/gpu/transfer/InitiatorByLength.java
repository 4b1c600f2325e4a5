package io.gpunvme.gpu.transfer;

import io.gpunvme.base.CloseAll;
import io.gpunvme.gpu.accel.DeviceBuffer;
import java.util.List;

/**
 * A GPU's kernels for long requests, the CPU for the others, with queue pairs of their own at one
 * controller. For data in host memory: a kernel brings it no nearer to the GPU there, and the CPU
 * is done with a short request before a kernel would be launched.
 */
final class InitiatorByLength implements Initiator {
  /**
   * Requests up to this are the CPU's, bytes. A kernel reads 16 MiB before it ends, so only of
   * longer ones is something copied to the GPU meanwhile.
   */
  static final long MOST_BY_CPU = 16 << 20;

  private final Initiator gpu;
  private final Initiator cpu;

  /** Both are closed with this. */
  InitiatorByLength(Initiator gpu, Initiator cpu) {
    this.gpu = gpu;
    this.cpu = cpu;
  }

  @Override
  public Initiator of(long bytes) {
    return bytes <= MOST_BY_CPU ? cpu : gpu;
  }

  @Override
  public String name() {
    return gpu.name();
  }

  @Override
  public int queuePairs() {
    return gpu.queuePairs();
  }

  @Override
  public int depth() {
    return gpu.depth();
  }

  @Override
  public long maxTransferBytes() {
    return gpu.maxTransferBytes();
  }

  @Override
  public TransferReport run(
      TransferPlan plan, List<DeviceBuffer> buffers, TransferListener listener) {
    return of(plan.bytes()).run(plan, buffers, listener);
  }

  @Override
  public void close() {
    CloseAll.all(cpu, gpu);
  }
}
