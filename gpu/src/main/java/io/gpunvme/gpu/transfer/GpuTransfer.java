package io.gpunvme.gpu.transfer;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.queue.DeviceError;
import io.gpunvme.gpu.queue.DeviceLayout.TransferArgs;
import io.gpunvme.gpu.queue.DeviceQueues;
import io.gpunvme.gpu.queue.DeviceStatus;
import io.gpunvme.gpu.queue.QueueEnd;
import io.gpunvme.gpu.queue.RunningKernel;
import io.gpunvme.gpu.queue.TransferKernel;
import io.gpunvme.nvme.CommandAbortedException;
import io.gpunvme.nvme.NvmeStatusException;
import io.gpunvme.nvme.NvmeTimeoutException;
import io.gpunvme.nvme.driver.CompletionPolicy;
import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.nvme.driver.RecoveryOutcome;
import io.gpunvme.nvme.spec.IoOpcode;
import io.gpunvme.nvme.spec.Status;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.HdrHistogram.Histogram;
import org.jspecify.annotations.Nullable;

/**
 * One plan carried out by a kernel for one job, or for several that were joined: launch, wait, look
 * at what became of each command, recover queues in trouble, and launch again for the commands that
 * may be repeated. For one thread.
 *
 * <p>The rules are those of {@link TransferLane}: a status without DNR is repeated, and so is a
 * command that recovery ended, each as often as the options say; the first failure beyond that ends
 * its job. Other jobs go on.
 */
final class GpuTransfer {
  /** Launches in a row that may end before a command was submitted, as when others reset a lot. */
  private static final int MOST_FRUITLESS = 100;

  /** So long a warp that is alone is not asked about before it has left its queue. */
  private static final long UNASKED_NANOS = TimeUnit.MICROSECONDS.toNanos(100);

  private final NvmeController controller;
  private final DeviceQueues queues;
  private final TransferKernel kernel;
  private final TransferPlan plan;
  private final TransferArrays arrays;
  private final KernelWatch watch;
  private final KernelCounts counts;
  private final int most;
  private final boolean alone;
  private final List<Part> parts = new ArrayList<>();

  /** Repetitions of each command so far. */
  private final byte[] attempts;

  private @Nullable QueueEnd left;
  private long recoveries;

  /** The commands of one job, and what became of them. */
  static final class Part {
    private final TransferJob job;

    /** Its first command. */
    private final int start;

    /** One past its last command. */
    private final int end;

    private final Histogram latency;

    /** The command of the last launch that ends the job, or -1. */
    private int failed;

    private long commands;
    private long bytes;
    private long bytesTold;
    private long retries;

    Part(TransferJob job, int start, int end) {
      this.job = job;
      this.start = start;
      this.end = end;
      // One that others may share is slower to record in.
      latency = job.isShort() ? job.latencies() : TransferListener.newLatencies();
    }

    private void tell() {
      if (bytes > bytesTold) {
        job.moved(bytes - bytesTold);
        bytesTold = bytes;
      }
    }

    TransferJob job() {
      return job;
    }

    Histogram latency() {
      return latency;
    }

    long commands() {
      return commands;
    }

    long bytes() {
      return bytes;
    }

    long retries() {
      return retries;
    }
  }

  /**
   * @param plan of all jobs, one after the other; loaded into {@code arrays}
   * @param most how often a command is repeated, 0..100
   * @param alone whether one warp carries it out, as {@link TransferArrays#load} was told
   */
  GpuTransfer(
      NvmeController controller,
      DeviceQueues queues,
      TransferKernel kernel,
      TransferPlan plan,
      List<TransferJob> jobs,
      TransferArrays arrays,
      KernelWatch watch,
      KernelCounts counts,
      int most,
      boolean alone) {
    this.controller = controller;
    this.queues = queues;
    this.kernel = kernel;
    this.plan = plan;
    this.arrays = arrays;
    this.watch = watch;
    this.counts = counts;
    this.most = most;
    this.alone = alone;
    this.attempts = new byte[plan.commands()];
    int end = 0;
    for (TransferJob job : jobs) {
      int start = end;
      end += job.plan().commands();
      parts.add(new Part(job, start, end));
    }
  }

  /**
   * Runs until every command is over or its job failed. No command is outstanding then.
   *
   * @param moved device address of the progress word, for warps that are not alone
   */
  void run(long moved) {
    int[] order = null;
    int fruitless = 0;
    do {
      launch(order, moved);
      long before = commands();
      order = settle(order);
      recover();
      fruitless = commands() == before ? fruitless + 1 : 0;
      if (fruitless > MOST_FRUITLESS) {
        failAll(
            new CommandAbortedException(
                "%s lost its queues %d times before a command could be submitted"
                    .formatted(controller.name(), fruitless)));
      }
      order = ofJobsThatGoOn(order);
      if (order.length > 0) {
        arrays.repeat(order);
      }
    } while (order.length > 0);
  }

  private void launch(int @Nullable [] order, long moved) {
    int count = order == null ? plan.commands() : order.length;
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment args = arena.allocate(TransferArgs.SIZE, Long.BYTES);
      arrays.describe(args, queues.deviceAddress(), moved, count, order != null);
      int shift = Integer.numberOfTrailingZeros(plan.blockSize());
      RunningKernel running = kernel.start(args, shift, alone ? 1 : queues.queues().size());
      watch.await(alone ? unasked(running) : running);
    }
  }

  /**
   * The driver is asked when it is worth it: each question keeps embedded controllers out of it.
   */
  private RunningKernel unasked(RunningKernel running) {
    long start = System.nanoTime();
    return () -> (arrays.isLeft() || System.nanoTime() - start > UNASKED_NANOS) && running.isOver();
  }

  /** What became of each command of a launch; returns those to be launched again. */
  private int[] settle(int @Nullable [] order) {
    int count = order == null ? plan.commands() : order.length;
    arrays.collect();
    int taken = arrays.taken(count);
    int[] statuses = arrays.statuses();
    int[] latencies = arrays.latencies();
    Map<Integer, DeviceError> told = null;
    int[] again = new int[count];
    int againCount = 0;
    parts.forEach(part -> part.failed = -1);
    int p = 0;
    for (int i = 0; i < count; i++) {
      int command = order == null ? i : order[i];
      while (command >= parts.get(p).end) {
        p++;
      }
      Part part = parts.get(p);
      int status = i < taken ? statuses[command] : DeviceStatus.PENDING;
      if (status == DeviceStatus.PENDING) {
        // Never submitted: the kernel was told to stop before.
        again[againCount++] = command;
        continue;
      }
      part.commands++;
      if (DeviceStatus.fromController(status) && Status.ok(status)) {
        long nanos = Integer.toUnsignedLong(latencies[command]);
        part.latency.recordValue(nanos);
        part.job.completed(command - part.start, nanos);
        part.bytes += plan.bytes(command);
        count(nanos, command);
        continue;
      }
      counts.failed(DeviceStatus.fromController(status));
      // Read launch by launch, so that the log has room for the next one's.
      told = told == null ? errors() : told;
      if (mayRepeat(status) && attempts[command] < most) {
        attempts[command]++;
        part.retries++;
        counts.repeated();
        again[againCount++] = command;
      } else if (part.failed < 0 || (!told.containsKey(part.failed) && told.containsKey(command))) {
        part.failed = command;
      }
    }
    for (Part part : parts) {
      int failed = part.failed;
      if (told != null && failed >= 0) {
        part.job.fail(failure(failed, statuses[failed], told.get(failed)));
      }
      if (alone) {
        part.tell();
      }
    }
    counts.settled();
    return Arrays.copyOf(again, againCount);
  }

  /** Tells those who watch of a command; the bytes of long reads have been told. */
  private void count(long nanos, int command) {
    long bytes = plan.bytes(command);
    if (plan.direction(command) == Direction.WRITE) {
      counts.succeeded(nanos, 0, bytes);
    } else {
      counts.succeeded(nanos, alone || plan.writes() ? bytes : 0, 0);
    }
  }

  /** Of these commands, in ascending order, those whose job has not failed. */
  private int[] ofJobsThatGoOn(int[] order) {
    int[] left = new int[order.length];
    int count = 0;
    int p = 0;
    for (int command : order) {
      while (command >= parts.get(p).end) {
        p++;
      }
      if (!parts.get(p).job.failed()) {
        left[count++] = command;
      }
    }
    return Arrays.copyOf(left, count);
  }

  private static boolean mayRepeat(int status) {
    return DeviceStatus.fromController(status)
        ? CompletionPolicy.mayRetry(status)
        : status == DeviceStatus.TIMEOUT || status == DeviceStatus.STOPPED;
  }

  /** The last error that was logged for a command, by its index. */
  private Map<Integer, DeviceError> errors() {
    Map<Integer, DeviceError> last = new HashMap<>();
    for (DeviceError error : queues.takeErrors().records()) {
      if (error.kind() == DeviceError.Kind.STATUS || error.kind() == DeviceError.Kind.TIMEOUT) {
        last.put(error.user(), error);
      }
    }
    return last;
  }

  private RuntimeException failure(int command, int status, @Nullable DeviceError told) {
    int opcode = plan.opcode(command);
    // As in error log entries, FFFFh is "not known": the queue's own log was full.
    int qid = told == null ? 0xFFFF : told.qid();
    int cid = told == null ? 0xFFFF : told.cid();
    if (DeviceStatus.fromController(status)) {
      return new NvmeStatusException(status, opcode, qid, cid, plan.nsid(), plan.slba(command));
    }
    if (status == DeviceStatus.ARGUMENT) {
      return new InvalidRequestException(
          "the kernel refused %s at LBA %d: %s"
              .formatted(IoOpcode.name(opcode), plan.slba(command), DeviceStatus.describe(status)));
    }
    return new NvmeTimeoutException(
        "%s at LBA %d on queue %d did not complete within %d ms, %d times; the queue was recovered"
            .formatted(
                IoOpcode.name(opcode),
                plan.slba(command),
                qid,
                controller.options().ioTimeout().toMillis(),
                attempts[command] + 1));
  }

  /**
   * Takes back what the controller may still be at work on. What recovery cannot take back, a
   * controller that is gone or stopped will not complete either.
   */
  private void recover() {
    left = arrays.left(queues.depth());
    if (left != null && left.quiet() && !queues.broken()) {
      return;
    }
    for (RecoveryOutcome outcome : queues.recover()) {
      recoveries++;
      if (outcome.failure() != null) {
        failAll(outcome.failure());
      }
    }
  }

  private void failAll(RuntimeException e) {
    parts.forEach(part -> part.job.fail(e));
  }

  private long commands() {
    return parts.stream().mapToLong(Part::commands).sum();
  }

  /** In the order of the jobs. */
  List<Part> parts() {
    return parts;
  }

  /** What the first queue was after the last launch, if its warp was alone and has left it. */
  @Nullable QueueEnd left() {
    return left;
  }

  long recoveries() {
    return recoveries;
  }
}
