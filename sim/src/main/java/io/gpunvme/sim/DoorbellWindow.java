package io.gpunvme.sim;

/** The windows through which a doorbell can be written, and so who rang it. */
public enum DoorbellWindow {
  /** {@link io.gpunvme.nvme.pci.Bar#memory}, the register interface, and shadow doorbells. */
  CPU,
  /** {@link io.gpunvme.nvme.pci.Bar#peerMemory}: a GPU, or other code that is not this Java. */
  PEER
}
