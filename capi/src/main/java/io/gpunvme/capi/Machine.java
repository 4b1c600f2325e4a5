package io.gpunvme.capi;

import io.gpunvme.core.accel.Accelerator;
import io.gpunvme.core.accel.Accelerators;
import java.util.HashMap;
import java.util.Map;

/**
 * The accelerators of this process, opened when they are first asked for and kept. Safe for all
 * threads.
 */
final class Machine {
  private final Map<String, Memory> memories = new HashMap<>();

  /**
   * The memory of an accelerator.
   *
   * @param kind {@code gpu}, {@code cpu} or {@code auto}
   */
  synchronized Memory memory(String kind) {
    Memory there = memories.get(kind);
    if (there == null) {
      there = open(kind);
      memories.put(kind, there);
    }
    return there;
  }

  private Memory open(String kind) {
    Accelerator opened = Accelerators.open(kind).accelerator();
    // What auto has chosen is the same for those who say so.
    String chosen = opened.gpu() ? "gpu" : "cpu";
    Memory there = memories.get(chosen);
    if (there != null) {
      opened.close();
      return there;
    }
    Memory memory = new Memory(opened);
    memories.put(chosen, memory);
    return memory;
  }
}
