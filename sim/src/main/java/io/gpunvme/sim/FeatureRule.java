package io.gpunvme.sim;

import io.gpunvme.nvme.spec.FeatureId;
import java.util.ArrayList;
import java.util.List;
import java.util.function.IntUnaryOperator;

/**
 * What one feature is (Base 2.0, 5.27.1).
 *
 * @param fid feature identifier
 * @param capabilities as Get Features returns them: {@link #SAVEABLE}, …
 * @param used bits of CDW11 with a meaning in Set Features
 * @param selector bits of CDW11 with a meaning in Get Features
 * @param slots how many values the feature has (one a namespace, a vector…)
 * @param initial the default value of a slot
 */
record FeatureRule(
    int fid, int capabilities, int used, int selector, int slots, IntUnaryOperator initial) {
  /** Capabilities: the value can be saved across resets. */
  static final int SAVEABLE = 1;

  /** Capabilities: one value a namespace. */
  static final int NAMESPACE_SPECIFIC = 1 << 1;

  /** Capabilities: the value can be changed. */
  static final int CHANGEABLE = 1 << 2;

  /** Slot of the over temperature threshold. */
  static final int OVER = 0;

  /** Slot of the under temperature threshold. */
  static final int UNDER = 1;

  /** Default over temperature threshold and WCTEMP, in kelvin. */
  static final int WARNING_TEMPERATURE = 343;

  private static final int ALL = 0xFFFF_FFFF;
  private static final int ALTERABLE = SAVEABLE | CHANGEABLE;

  boolean saveable() {
    return (capabilities & SAVEABLE) != 0;
  }

  boolean namespaceSpecific() {
    return (capabilities & NAMESPACE_SPECIFIC) != 0;
  }

  boolean changeable() {
    return (capabilities & CHANGEABLE) != 0;
  }

  private static FeatureRule simple(int fid, int capabilities, int used, int initial) {
    return new FeatureRule(fid, capabilities, used, 0, 1, slot -> initial);
  }

  /** The features of a controller. */
  static List<FeatureRule> all(SimConfig config) {
    int queues = config.ioQueues() - 1;
    List<FeatureRule> rules = new ArrayList<>();
    rules.add(simple(FeatureId.ARBITRATION, ALTERABLE, 0xFFFF_FF07, 7));
    rules.add(simple(FeatureId.POWER_MANAGEMENT, CHANGEABLE, 0xFF, 0));
    rules.add(
        new FeatureRule(
            FeatureId.TEMPERATURE_THRESHOLD,
            ALTERABLE,
            0x3F_FFFF,
            0x3F_0000,
            2,
            slot -> slot == OVER ? WARNING_TEMPERATURE : 0));
    rules.add(
        new FeatureRule(
            FeatureId.ERROR_RECOVERY,
            ALTERABLE | NAMESPACE_SPECIFIC,
            0xFFFF,
            0,
            config.maxNamespaces() + 1,
            slot -> 0));
    rules.add(simple(FeatureId.NUMBER_OF_QUEUES, CHANGEABLE, ALL, queues | queues << 16));
    rules.add(simple(FeatureId.INTERRUPT_COALESCING, ALTERABLE, 0xFFFF, 0));
    rules.add(
        new FeatureRule(
            FeatureId.INTERRUPT_VECTOR_CONFIG,
            ALTERABLE,
            0x1_FFFF,
            0xFFFF,
            config.vectors(),
            slot -> slot));
    rules.add(simple(FeatureId.WRITE_ATOMICITY, 0, 1, 0));
    rules.add(simple(FeatureId.ASYNC_EVENT_CONFIG, CHANGEABLE, 0x1FF, 0));
    rules.add(simple(FeatureId.TIMESTAMP, CHANGEABLE, 0, 0));
    rules.add(simple(FeatureId.HOST_BEHAVIOR, CHANGEABLE, 0, 0));
    if (config.volatileWriteCache()) {
      rules.add(simple(FeatureId.VOLATILE_WRITE_CACHE, ALTERABLE, 1, 1));
    }
    if (config.hmbPreferred() != 0) {
      rules.add(simple(FeatureId.HOST_MEMORY_BUFFER, CHANGEABLE, 3, 0));
    }
    if (config.keepAlive()) {
      rules.add(simple(FeatureId.KEEP_ALIVE_TIMER, CHANGEABLE, ALL, 0));
    }
    return rules;
  }
}
