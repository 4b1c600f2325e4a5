package io.gpunvme.nvme.driver;

/**
 * The rings of an {@link ExternalQueuePair}, provided by its driver: their places, their lengths,
 * and how to empty them. They may lie in memory that the CPU cannot load from, such as a GPU's.
 *
 * <p>Sizes and bus addresses are asked for once, when the pair is created. The memory must stay
 * mapped for the controller until the pair is deleted or the controller is closed.
 */
public interface QueueRings {
  /** Submission queue entries, 2..{@link NvmeController#maxQueueEntries}. */
  int sqSize();

  /** Completion queue entries, 2..{@link NvmeController#maxQueueEntries}. */
  int cqSize();

  /**
   * Bus address of the submission queue: {@link #sqSize} times 64 bytes, consecutive on the bus,
   * starting at a multiple of {@link NvmeController#pageSize}.
   */
  long sqBusAddress();

  /**
   * Bus address of the completion queue: {@link #cqSize} times 16 bytes, consecutive on the bus,
   * starting at a multiple of {@link NvmeController#pageSize}.
   */
  long cqBusAddress();

  /**
   * Makes both rings all zeroes, so that no entry has the phase tag of the controller's first lap
   * (Base 2.0, 4.6.1). The controller does not know the rings at that moment, and nobody may drive
   * them.
   *
   * <p>Called at creation and at every recreation, by the thread that asked for it, with the
   * controller's lock held: it must not wait for another user of the controller. The zeroes must be
   * where the controller looks when this returns. The owner also resets the initiator state (tail,
   * head, phase, CIDs), here or before it drives the pair again. An exception from this reaches the
   * caller of the creation or recovery, and the pair is then unusable.
   */
  void clear();
}
