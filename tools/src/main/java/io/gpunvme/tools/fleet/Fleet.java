package io.gpunvme.tools.fleet;

import io.gpunvme.base.InvalidRequestException;

/**
 * Machines, all alike, and what is asked of them.
 *
 * @param machines 1 to 1 000 000
 * @param gpus of a machine, 1 to 64
 * @param ssds of a machine, 1 to 1024; a model is striped over them
 * @param modelBytes 1 to 2^60
 * @param checkpointBytes of all machines together, 1 to 2^60
 * @param targets of the pool, 1 to 1 000 000
 * @param lost machines that fail in the middle of the load, fewer than there are
 * @param oneProcess whether a machine's GPUs belong to one process, not to one for each (torchrun)
 */
public record Fleet(
    long machines,
    long gpus,
    long ssds,
    long modelBytes,
    long checkpointBytes,
    Placement placement,
    long targets,
    long lost,
    boolean oneProcess) {
  private static final int MOST_MACHINES = 1_000_000;
  private static final int MOST_GPUS = 64;
  private static final int MOST_SSDS = 1024;
  private static final long MOST_BYTES = 1L << 60;

  /** Of a pool, unless it is told. */
  public static final int TARGETS = 8;

  /**
   * Checks everything.
   *
   * @throws InvalidRequestException if a number is out of range; the message names it
   */
  public Fleet {
    within("machines", machines, 1, MOST_MACHINES);
    within("GPUs of a machine", gpus, 1, MOST_GPUS);
    within("SSDs of a machine", ssds, 1, MOST_SSDS);
    within("bytes of the model", modelBytes, 1, MOST_BYTES);
    within("bytes of a checkpoint", checkpointBytes, 1, MOST_BYTES);
    within("targets of the pool", targets, 1, MOST_MACHINES);
    if (lost < 0 || lost >= machines) {
      throw new InvalidRequestException(
          "%d lost machines of %d: must be from 0 to %d, since one must be left"
              .formatted(lost, machines, machines - 1));
    }
  }

  /** A model on each machine, checkpoints as long as it, and one lost machine if there are more. */
  public static Fleet of(long machines, long gpus, long ssds, long modelBytes) {
    return new Fleet(
        machines,
        gpus,
        ssds,
        modelBytes,
        modelBytes,
        Placement.MACHINE,
        TARGETS,
        machines > 1 ? 1 : 0,
        false);
  }

  private static void within(String what, long value, long least, long most) {
    if (value < least || value > most) {
      throw new InvalidRequestException(
          "%d %s: must be from %d to %d".formatted(value, what, least, most));
    }
  }

  /** The same with another placement. */
  public Fleet withPlacement(Placement other) {
    return new Fleet(
        machines, gpus, ssds, modelBytes, checkpointBytes, other, targets, lost, oneProcess);
  }

  /** The same with checkpoints of another size. */
  public Fleet withCheckpointBytes(long bytes) {
    return new Fleet(machines, gpus, ssds, modelBytes, bytes, placement, targets, lost, oneProcess);
  }

  /** The same with another pool. */
  public Fleet withTargets(long count) {
    return new Fleet(
        machines, gpus, ssds, modelBytes, checkpointBytes, placement, count, lost, oneProcess);
  }

  /** The same with another number of machines that fail. */
  public Fleet withLost(long count) {
    return new Fleet(
        machines, gpus, ssds, modelBytes, checkpointBytes, placement, targets, count, oneProcess);
  }

  /** The same with one process on each machine, or one for each GPU. */
  public Fleet withOneProcess(boolean one) {
    return new Fleet(
        machines, gpus, ssds, modelBytes, checkpointBytes, placement, targets, lost, one);
  }

  /** The same with another number of machines, and no more of them lost than possible. */
  Fleet withMachines(long count) {
    return new Fleet(
        count,
        gpus,
        ssds,
        modelBytes,
        checkpointBytes,
        placement,
        targets,
        Math.min(lost, count - 1),
        oneProcess);
  }
}
