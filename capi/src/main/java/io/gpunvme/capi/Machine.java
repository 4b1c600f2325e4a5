package io.gpunvme.capi;

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
      there = new Memory(Accelerators.open(kind).accelerator());
      memories.put(kind, there);
      // What auto has chosen is the same for those who say so.
      memories.putIfAbsent(there.accelerator().gpu() ? "gpu" : "cpu", there);
    }
    return there;
  }
}
