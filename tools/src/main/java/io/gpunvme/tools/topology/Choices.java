package io.gpunvme.tools.topology;

import io.gpunvme.tools.machine.MachineFunction;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * What to put where, by the topology alone: nothing is measured.
 *
 * @param gpus the nearest SSDs of each GPU
 * @param ssds the GPU for each SSD
 * @param sets SSDs to be striped, one set a GPU
 */
public record Choices(List<ForGpu> gpus, List<ForSsd> ssds, List<ForSet> sets) {
  /** Copies the lists. */
  public Choices {
    gpus = List.copyOf(gpus);
    ssds = List.copyOf(ssds);
    sets = List.copyOf(sets);
  }

  /**
   * The SSDs that no other is nearer than.
   *
   * @param reason in a few words
   */
  public record ForGpu(MachineFunction gpu, List<MachineFunction> nearest, String reason) {
    /** Copies the list. */
    public ForGpu {
      nearest = List.copyOf(nearest);
    }
  }

  /**
   * The GPU that is the nearest to an SSD, and the NUMA nodes for what a transfer needs.
   *
   * @param gpu null on a machine without one
   * @param reason why this GPU
   * @param queues the node for queues in host memory: the SSD's; -1 if not known
   * @param staging the node for pinned memory that is copied to the GPU: the GPU's; -1 if not known
   * @param workers the node for threads that drive the SSD; -1 if not known
   * @param nodeReason why these nodes
   */
  public record ForSsd(
      MachineFunction ssd,
      @Nullable MachineFunction gpu,
      String reason,
      int queues,
      int staging,
      int workers,
      String nodeReason) {}

  /**
   * A stripe set of the SSDs that have one GPU as their nearest, are equally near and that nobody
   * uses.
   *
   * @param limit of reads straight into the GPU's memory by all of them
   * @param units the stripe unit for each length of requests
   */
  public record ForSet(
      MachineFunction gpu, List<MachineFunction> ssds, Limit limit, List<StripeUnit> units) {
    /** Copies the lists. */
    public ForSet {
      ssds = List.copyOf(ssds);
      units = List.copyOf(units);
    }
  }
}
