package io.gpunvme.gpu.transfer;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.queue.DeviceError;
import io.gpunvme.gpu.queue.DeviceLayout.TransferArgs;
import io.gpunvme.gpu.queue.DeviceQueues;
import io.gpunvme.gpu.queue.DeviceStatus;
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
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import org.HdrHistogram.Histogram;
import org.jspecify.annotations.Nullable;

/**
 * One plan carried out by a kernel: launch, wait, look at what became of each command, recover
 * queues in trouble, and launch again for the commands that may be repeated. For one thread.
 *
 * <p>The rules are those of {@link TransferLane}: a status without DNR is repeated, and so is a
 * command that recovery ended, each as often as the options say; the first failure beyond that ends
 * the transfer.
 */
final class GpuTransfer {

  /** Launches in a row that may end before a command was submitted, as when others reset a lot. */
  private static final int MOST_FRUITLESS = 100;

  private final NvmeController controller;
  private final DeviceQueues queues;
  private final TransferKernel kernel;
  private final TransferJob job;
  private final TransferPlan plan;
  private final TransferArrays arrays;
  private final KernelWatch watch;
  private final int most;

  /** Repetitions of each command so far. */
  private final byte[] attempts;

  private final Histogram latency;
  private long commands;
  private long bytes;
  private long retries;
  private long recoveries;

  /**
   * @param most how often a command is repeated, 0..100
   */
  GpuTransfer(
      NvmeController controller,
      DeviceQueues queues,
      TransferKernel kernel,
      TransferJob job,
      TransferArrays arrays,
      KernelWatch watch,
      int most) {
    this.controller = controller;
    this.queues = queues;
    this.kernel = kernel;
    this.job = job;
    this.plan = job.plan();
    this.arrays = arrays;
    this.watch = watch;
    this.most = most;
    this.attempts = new byte[plan.commands()];
    // One that others may share is slower to record in.
    latency = job.isShort() ? job.latencies() : TransferListener.newLatencies();
  }

  /**
   * Runs until every command is over or the job failed. No command is outstanding then.
   *
   * @param moved device address of the progress word
   */
  void run(long moved) {
    int[] order = null;
    int fruitless = 0;
    do {
      launch(order, moved);
      long before = commands;
      order = settle(order);
      recover();
      fruitless = commands == before ? fruitless + 1 : 0;
      if (fruitless > MOST_FRUITLESS) {
        job.fail(
            new CommandAbortedException(
                "%s lost its queues %d times before a command could be submitted"
                    .formatted(controller.name(), fruitless)));
      }
      if (order.length > 0 && !job.failed()) {
        arrays.repeat(order);
      }
    } while (order.length > 0 && !job.failed());
  }

  private void launch(int @Nullable [] order, long moved) {
    int count = order == null ? plan.commands() : order.length;
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment args = arena.allocate(TransferArgs.SIZE, Long.BYTES);
      arrays.describe(args, queues.deviceAddress(), moved, count, order != null);
      int shift = Integer.numberOfTrailingZeros(plan.blockSize());
      watch.await(kernel.start(args, shift, queues.queues().size()));
    }
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
    int failed = -1;
    for (int i = 0; i < count; i++) {
      int command = order == null ? i : order[i];
      int status = i < taken ? statuses[command] : DeviceStatus.PENDING;
      if (status == DeviceStatus.PENDING) {
        // Never submitted: the kernel was told to stop before.
        again[againCount++] = command;
        continue;
      }
      commands++;
      if (DeviceStatus.fromController(status) && Status.ok(status)) {
        latency.recordValue(Integer.toUnsignedLong(latencies[command]));
        bytes += plan.bytes(command);
        continue;
      }
      // Read launch by launch, so that the log has room for the next one's.
      told = told == null ? errors() : told;
      if (mayRepeat(status) && attempts[command] < most) {
        attempts[command]++;
        retries++;
        again[againCount++] = command;
      } else if (failed < 0 || (!told.containsKey(failed) && told.containsKey(command))) {
        failed = command;
      }
    }
    if (told != null && failed >= 0) {
      job.fail(failure(failed, statuses[failed], told.get(failed)));
    }
    return Arrays.copyOf(again, againCount);
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
    int opcode = plan.direction() == Direction.READ ? IoOpcode.READ : IoOpcode.WRITE;
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
    for (RecoveryOutcome outcome : queues.recover()) {
      recoveries++;
      if (outcome.failure() != null) {
        job.fail(outcome.failure());
      }
    }
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

  long recoveries() {
    return recoveries;
  }

  Histogram latency() {
    return latency;
  }
}
