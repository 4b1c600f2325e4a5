package io.gpunvme.storage;

import io.gpunvme.nvme.driver.Namespace;
import io.gpunvme.nvme.driver.NvmeController;

/**
 * Logical blocks of an SSD that this process drives, one after the other.
 *
 * @param controller whose they are; closed with the storage that named them
 * @param namespace of that controller
 * @param slba the first
 * @param blocks how many, above 0
 */
public record BlockRun(NvmeController controller, Namespace namespace, long slba, long blocks) {
  /** How many bytes that are. */
  public long bytes() {
    return blocks * namespace.blockSize();
  }
}
