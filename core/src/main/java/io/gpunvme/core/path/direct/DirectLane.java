package io.gpunvme.core.path.direct;

import io.gpunvme.core.accel.Accelerator;
import io.gpunvme.core.accel.BufferCopies;
import io.gpunvme.core.accel.DeviceBuffer;
import io.gpunvme.core.gpu.Placement;
import io.gpunvme.core.path.PathCall;
import io.gpunvme.core.transfer.Direction;
import io.gpunvme.core.transfer.Initiator;
import io.gpunvme.core.transfer.InitiatorOptions;
import io.gpunvme.core.transfer.TransferListener;
import io.gpunvme.core.transfer.TransferPlan;
import io.gpunvme.core.transfer.TransferReport;
import io.gpunvme.nvme.driver.Namespace;
import io.gpunvme.nvme.driver.NvmeController;
import org.jspecify.annotations.Nullable;

/** What one transfer at a time needs: queues, and staging memory. For one thread at a time. */
final class DirectLane implements AutoCloseable {
  private final NvmeController controller;
  private final Namespace namespace;
  private final Accelerator accelerator;
  private final InitiatorOptions options;
  private final Placement placement;

  /** Null after a transfer that left its queues unusable. */
  private @Nullable Initiator initiator;

  private @Nullable Staged staged;
  private String mode = "";

  /** Creates the queues. */
  DirectLane(
      NvmeController controller,
      Namespace namespace,
      Accelerator accelerator,
      InitiatorOptions options,
      Placement placement) {
    this.controller = controller;
    this.namespace = namespace;
    this.accelerator = accelerator;
    this.options = options;
    this.placement = placement;
    initiator();
  }

  private Initiator initiator() {
    Initiator there = initiator;
    if (there == null) {
      there = options.open(controller, accelerator);
      initiator = there;
    }
    return there;
  }

  Namespace namespace() {
    return namespace;
  }

  Placement placement() {
    return placement;
  }

  /** How the last transfer was done; empty before the first one. */
  String mode() {
    return mode;
  }

  Staged staged() {
    Staged there = staged;
    if (there == null) {
      there = new Staged(accelerator, placement);
      staged = there;
    }
    return there;
  }

  /** Gives the queue pairs back; the next transfer gets new ones. */
  void leaveQueues() {
    Initiator queues = initiator;
    initiator = null;
    if (queues != null) {
      queues.close();
    }
  }

  /** The same after a failure. */
  void abandon(RuntimeException e) {
    try {
      leaveQueues();
    } catch (RuntimeException second) {
      e.addSuppressed(second);
    }
  }

  /** Runs commands of one call and counts them. */
  final class Commands {
    private final PathCall call;

    Commands(PathCall call) {
      this.call = call;
    }

    PathCall call() {
      return call;
    }

    /** Commands to come. */
    TransferPlan.Builder plan(Direction direction) {
      return TransferPlan.builder(direction, namespace, initiator().maxTransferBytes());
    }

    /** Moves whole blocks between the namespace and a buffer of this path's placement. */
    void run(TransferPlan.Builder plan, DeviceBuffer buffer) {
      if (plan.isEmpty()) {
        return;
      }
      TransferReport report =
          initiator()
              .run(
                  plan.build(),
                  buffer,
                  new TransferListener() {
                    @Override
                    public void moved(long bytes) {}

                    @Override
                    public boolean isCancelled() {
                      return call.isCancelled();
                    }
                  });
      call.counters().operations(report.latency());
      call.counters().retried(report.retries());
      mode =
          "%s-initiated, %s, %d queue pairs of depth %d"
              .formatted(
                  report.initiator(), report.placement(), report.queuePairs(), report.depth());
    }
  }

  /** Memory that the controller reaches, for what cannot go straight to its buffer. */
  static final class Staged implements AutoCloseable {
    static final long BYTES = 16 << 20;

    private final DeviceBuffer memory;
    private final BufferCopies copies;

    Staged(Accelerator accelerator, Placement placement) {
      memory = placement.allocate(accelerator, BYTES);
      try {
        copies = accelerator.copies();
      } catch (RuntimeException e) {
        memory.close();
        throw e;
      }
    }

    DeviceBuffer memory() {
      return memory;
    }

    BufferCopies copies() {
      return copies;
    }

    @Override
    public void close() {
      try {
        copies.close();
      } finally {
        memory.close();
      }
    }
  }

  @Override
  public void close() {
    Staged memory = staged;
    staged = null;
    try {
      if (memory != null) {
        memory.close();
      }
    } finally {
      leaveQueues();
    }
  }
}
