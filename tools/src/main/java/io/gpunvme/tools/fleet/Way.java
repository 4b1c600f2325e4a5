package io.gpunvme.tools.fleet;

import java.util.Locale;

/** Where machines get a model from, and where they write checkpoints to. */
public enum Way {
  /** The page cache of each machine, which has the whole model there. Nothing is written to it. */
  CACHE,
  /** Each machine's own SSDs, which have the whole model. */
  OWN,
  /**
   * Each machine's own SSDs, which have one part of the model and a second copy of another
   * machine's; what is read goes to all others by a collective of the training engine. A checkpoint
   * is written to the machine and to the one that has its second copy.
   */
  PEERS,
  /** Targets of NVMe over fabrics, which have the model and the checkpoints once, striped. */
  POOL;

  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT);
  }
}
