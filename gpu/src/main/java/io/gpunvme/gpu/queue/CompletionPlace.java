package io.gpunvme.gpu.queue;

import io.gpunvme.nvme.pci.PciFunction;

/**
 * Where the completion queues of a placement lie. A completion tells that the data is there, so it
 * must not arrive earlier.
 *
 * @param host in host memory, else in the GPU's
 * @param reason why there
 */
public record CompletionPlace(boolean host, String reason) {
  /**
   * The place that is right on every system.
   *
   * @param gpu whether the accelerator has memory of its own
   */
  public static CompletionPlace of(Placement placement, boolean gpu, PciFunction function) {
    if (!placement.hostQueues()) {
      return new CompletionPlace(false, "all queues are in GPU memory");
    }
    if (placement.hostData() || !gpu) {
      return new CompletionPlace(true, "the data goes to host memory, too");
    }
    if (function.polled()) {
      return new CompletionPlace(
          true, "the controller is software, and completes when its copies have ended");
    }
    return new CompletionPlace(
        false,
        "where the data goes: writes of an SSD to one place arrive in order, to two places they may"
            + " overtake each other");
  }

  @Override
  public String toString() {
    return "completion queues in %s memory: %s".formatted(host ? "host" : "GPU", reason);
  }
}
