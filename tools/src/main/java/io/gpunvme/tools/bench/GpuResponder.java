package io.gpunvme.tools.bench;

import static io.gpunvme.gpu.queue.DeviceLayout.getLong;
import static io.gpunvme.gpu.queue.DeviceLayout.setInt;
import static io.gpunvme.gpu.queue.DeviceLayout.setLong;

import io.gpunvme.base.CloseAll;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.tools.bench.BenchLayout.ResponderArgs;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * A {@link Responder} on the GPU, for queues in its memory: a kernel with one warp per queue pair,
 * beside the kernel that it serves.
 */
final class GpuResponder implements Responder {
  /** In {@code responder.cu}. */
  static final String KERNEL = "gpunvme_responder";

  private static final int WARP = 32;
  private static final int WARPS_PER_BLOCK = 4;
  private static final int LINE = 128;

  /** Ends it whatever happens to this process. */
  private static final long LONGEST_NANOS = TimeUnit.SECONDS.toNanos(90);

  private final int queues;
  private final DeviceBuffer memory;
  private final LaunchedKernel run;
  private @Nullable ResponderCounts counts;

  /** Starts answering on queues on which nothing was submitted. */
  GpuResponder(Accelerator accelerator, BenchKernels kernels, BenchQueues served) {
    queues = served.shape().queues();
    // The stop word first: the kernel polls it, so it is memory of the accelerator like the rest.
    memory = accelerator.allocate(LINE + 4L * queues * Long.BYTES);
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment args = arena.allocate(ResponderArgs.SIZE, Long.BYTES);
      setLong(args, ResponderArgs.QUEUES, served.deviceAddress());
      setLong(args, ResponderArgs.ANSWERED, memory.deviceAddress() + column(0));
      setLong(args, ResponderArgs.WRONG, memory.deviceAddress() + column(1));
      setLong(args, ResponderArgs.DOORBELLS, memory.deviceAddress() + column(2));
      setLong(args, ResponderArgs.SUMS, memory.deviceAddress() + column(3));
      setLong(args, ResponderArgs.STOP, memory.deviceAddress());
      setLong(args, ResponderArgs.END_NS, LONGEST_NANOS);
      setInt(args, ResponderArgs.QUEUE_COUNT, queues);
      setInt(args, ResponderArgs.NSID, BenchQueues.NSID);
      int blocks = Math.ceilDiv(queues, WARPS_PER_BLOCK);
      run = kernels.start(KERNEL, blocks, WARPS_PER_BLOCK * WARP, args);
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, memory::close);
      throw e;
    }
  }

  private long column(int index) {
    return LINE + (long) index * queues * Long.BYTES;
  }

  @Override
  public ResponderCounts end() {
    ResponderCounts known = counts;
    if (known != null) {
      return known;
    }
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment one = arena.allocate(Integer.BYTES, Integer.BYTES);
      setInt(one, 0, 1);
      memory.copyFromHost(one, 0);
      KernelDeadline.await(run, KERNEL, () -> {});
      long bytes = 4L * queues * Long.BYTES;
      MemorySegment columns = arena.allocate(bytes, Long.BYTES);
      memory.copyToHost(LINE, columns);
      known =
          new ResponderCounts(sum(columns, 0), sum(columns, 1), sum(columns, 2), sum(columns, 3));
    }
    counts = known;
    memory.close();
    return known;
  }

  private long sum(MemorySegment columns, int column) {
    long sum = 0;
    for (int i = 0; i < queues; i++) {
      sum += getLong(columns, ((long) column * queues + i) * Long.BYTES);
    }
    return sum;
  }
}
