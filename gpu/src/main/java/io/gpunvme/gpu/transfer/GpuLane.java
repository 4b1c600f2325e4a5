package io.gpunvme.gpu.transfer;

import io.gpunvme.base.CloseAll;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.queue.DeviceQueueOptions;
import io.gpunvme.gpu.queue.DeviceQueues;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.gpu.queue.QueueCounters;
import io.gpunvme.gpu.queue.QueueEnd;
import io.gpunvme.gpu.queue.TransferKernel;
import io.gpunvme.nvme.driver.NvmeController;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * Queue pairs that one kernel at a time drives, and what it needs for that. Safe for all threads:
 * they take turns, and whoever waits longest is next.
 */
final class GpuLane implements AutoCloseable {
  private final NvmeController controller;
  private final TransferKernel kernel;
  private final Placement placement;
  private final DeviceQueues queues;
  private final KernelCounts counts;
  private final MovedWord moved;
  private final TransferArrays arrays;
  private final int retries;
  private final ReentrantLock turns = new ReentrantLock(true);

  /** What each queue had done when the last transfer was over; null if that is not known. */
  private @Nullable List<QueueCounters> seen;

  /** Why no transfer can be run any more, or null. */
  private volatile @Nullable Throwable broken;

  /** A kernel runs and does not end. What it may use is never freed: freeing waits for it. */
  private volatile boolean hung;

  private boolean closed;

  /**
   * Creates the queue pairs.
   *
   * @param kernel not closed with this
   */
  GpuLane(
      NvmeController controller,
      Accelerator accelerator,
      TransferKernel kernel,
      DeviceQueueOptions options,
      int retries) {
    this.controller = controller;
    this.kernel = kernel;
    this.placement = options.placement();
    this.retries = retries;
    arrays = new TransferArrays(accelerator);
    queues = new DeviceQueues(controller, accelerator, options);
    try {
      moved = new MovedWord(accelerator);
      counts = new KernelCounts(controller, queues);
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, queues::close);
      throw e;
    }
  }

  int queuePairs() {
    return queues.queues().size();
  }

  int depth() {
    return queues.depth();
  }

  boolean isHung() {
    return hung;
  }

  /**
   * Carries out requests whose plans go with each other. Each has its report then, or its job has
   * failed.
   *
   * @param alone whether one warp is enough for all of them
   * @throws BrokenInitiatorException if an earlier transfer has left the queues unusable
   * @throws InvalidRequestException if this thread is at it already: a transfer asked whether to
   *     end, and was answered by a program that transfers meanwhile
   */
  void carryOut(List<GpuRequest> requests, boolean alone) {
    if (turns.isHeldByCurrentThread()) {
      throw new InvalidRequestException(
          controller.name()
              + " is carrying out a transfer of this thread; wait for its end, or use another"
              + " thread");
    }
    turns.lock();
    try {
      requireUsable();
      carryOutNow(requests, alone);
    } finally {
      turns.unlock();
    }
  }

  private void carryOutNow(List<GpuRequest> requests, boolean alone) {
    List<TransferJob> jobs = requests.stream().map(GpuRequest::job).toList();
    TransferPlan plan = TransferPlan.join(jobs.stream().map(TransferJob::plan).toList());
    TransferJob first = jobs.getFirst();
    List<QueueCounters> before = counters();
    KernelWatch watch =
        new KernelWatch(controller, queues, jobs, alone ? arrays::advanced : () -> passOn(first));
    long start = System.nanoTime();
    try {
      arrays.load(plan, descriptions(requests), alone);
      GpuTransfer transfer =
          new GpuTransfer(
              controller, queues, kernel, plan, jobs, arrays, watch, counts, retries, alone);
      if (plan.commands() > 0) {
        guarded(transfer, watch);
      }
      long nanos = System.nanoTime() - start;
      if (jobs.stream().allMatch(TransferJob::failed)) {
        return;
      }
      List<QueueCounters> after = counters(before, transfer.left());
      QueueCounters own = QueueCounters.sum(after).minus(QueueCounters.sum(before));
      seen = own.troubles() == 0 ? after : null;
      report(requests, transfer, own, alone ? 1 : queuePairs(), nanos);
    } finally {
      watch.restoreInterrupt();
      hung = watch.hung();
      if (!hung) {
        arrays.unload();
      }
    }
  }

  /** Whether bytes have arrived since the last call; all who want to know of them are told. */
  private boolean passOn(TransferJob job) {
    long bytes = moved.passOn(job);
    if (!job.plan().writes()) {
      counts.arrived(bytes);
    }
    return bytes > 0;
  }

  private static long[] descriptions(List<GpuRequest> requests) {
    return requests.size() == 1
        ? requests.getFirst().descriptions()
        : requests.stream().map(GpuRequest::descriptions).flatMapToLong(Arrays::stream).toArray();
  }

  /** What the queues have done before a transfer; what kernels told of earlier ones is dropped. */
  private List<QueueCounters> counters() {
    List<QueueCounters> known = seen;
    seen = null;
    if (known != null) {
      return known;
    }
    queues.takeErrors();
    return queues.countersOfEach();
  }

  /** What they have done after it. */
  private List<QueueCounters> counters(List<QueueCounters> before, @Nullable QueueEnd left) {
    if (left == null) {
      return queues.countersOfEach();
    }
    List<QueueCounters> each = new ArrayList<>(before);
    each.set(0, left.counters());
    return each;
  }

  /**
   * A kernel that failed or does not end leaves commands at work in the caller's buffer: the
   * controller must forget the queues then.
   */
  private void guarded(GpuTransfer transfer, KernelWatch watch) {
    try {
      transfer.run(moved.deviceAddress());
    } catch (RuntimeException | Error e) {
      broken = e;
      CloseAll.after(e, watch.hung() ? queues::abandon : queues::forget);
      throw e;
    }
  }

  private void requireUsable() {
    if (closed) {
      throw new IllegalStateException("this initiator is closed");
    }
    Throwable reason = broken;
    if (reason != null) {
      throw new BrokenInitiatorException(reason);
    }
  }

  /** What the queues did is told with the first of several. */
  private void report(
      List<GpuRequest> requests,
      GpuTransfer transfer,
      QueueCounters counters,
      int warps,
      long nanos) {
    QueueCounters own = counters;
    for (int i = 0; i < requests.size(); i++) {
      GpuTransfer.Part part = transfer.parts().get(i);
      TransferJob job = part.job();
      if (!job.failed()) {
        requireAll(part);
        job.add(part.latency());
        requests
            .get(i)
            .report(
                new TransferReport(
                    "direct",
                    GpuInitiator.NAME,
                    placement,
                    warps,
                    depth(),
                    warps,
                    part.commands(),
                    own.sqDoorbells(),
                    own.cqDoorbells(),
                    part.bytes(),
                    nanos,
                    part.retries(),
                    transfer.recoveries(),
                    job.latencies()));
        own = QueueCounters.NONE;
      }
    }
  }

  private static void requireAll(GpuTransfer.Part part) {
    long wanted = part.job().plan().bytes();
    if (part.bytes() != wanted) {
      throw new IllegalStateException(
          "a plan of %d bytes ended after %d bytes without an error"
              .formatted(wanted, part.bytes()));
    }
  }

  /** Deletes the queue pairs at the controller and frees them, unless a kernel still runs. */
  @Override
  public void close() {
    turns.lock();
    try {
      if (closed) {
        return;
      }
      if (!hung) {
        queues.close();
        moved.close();
        arrays.close();
      }
      counts.close();
      closed = true;
    } finally {
      turns.unlock();
    }
  }
}
