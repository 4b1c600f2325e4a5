package io.gpunvme.sim;

import io.gpunvme.nvme.spec.FeatureId;
import java.util.List;
import java.util.concurrent.atomic.AtomicIntegerArray;
import org.jspecify.annotations.Nullable;

/**
 * The values of all features: current, saved and default (Base 2.0, 4.4).
 *
 * <p>Values change on worker 0 only (Set Features, reset); reading a current value is safe for all
 * threads.
 */
final class FeatureStore {
  private static final int FEATURES = 256;
  private static final int AEC_NAMESPACE = 1 << 8;

  private final @Nullable FeatureRule[] rules = new @Nullable FeatureRule[FEATURES];
  private final int[] base = new int[FEATURES];
  private final int[] defaults;
  private final int[] saved;
  private final AtomicIntegerArray current;
  private final boolean writeCachePresent;

  // Set by Set Features and Keep Alive on worker 0, which also asks for it.
  private long keepAliveStart;

  FeatureStore(SimConfig config) {
    List<FeatureRule> all = FeatureRule.all(config);
    int slots = 0;
    for (FeatureRule rule : all) {
      rules[rule.fid()] = rule;
      base[rule.fid()] = slots;
      slots += rule.slots();
    }
    defaults = new int[slots];
    for (FeatureRule rule : all) {
      for (int slot = 0; slot < rule.slots(); slot++) {
        defaults[base[rule.fid()] + slot] = rule.initial().applyAsInt(slot);
      }
    }
    saved = defaults.clone();
    current = new AtomicIntegerArray(saved);
    writeCachePresent = config.volatileWriteCache();
  }

  /** The feature, or null if the controller has none with this identifier, 0..255. */
  @Nullable FeatureRule rule(int fid) {
    return rules[fid];
  }

  /** Current value of the only slot; 0 for a feature that is not there. */
  int value(int fid) {
    return rules[fid] == null ? 0 : current(fid, 0);
  }

  /** Current value of a slot of a feature that is there. */
  int current(int fid, int slot) {
    return current.get(base[fid] + slot);
  }

  /** Saved value, which is the default as long as nothing has been saved. */
  int saved(int fid, int slot) {
    return saved[base[fid] + slot];
  }

  /** Default value. */
  int defaultValue(int fid, int slot) {
    return defaults[base[fid] + slot];
  }

  /** Changes a current value. */
  void set(int fid, int slot, int value) {
    current.set(base[fid] + slot, value);
  }

  /** Makes a value survive resets. */
  void save(int fid, int slot, int value) {
    saved[base[fid] + slot] = value;
  }

  /** Controller reset: saved values (or defaults) become current. */
  void reset() {
    for (int i = 0; i < saved.length; i++) {
      current.set(i, saved[i]);
    }
  }

  /** Whether a completed write may still be in a volatile cache. */
  boolean writeCacheEnabled() {
    return writeCachePresent && (value(FeatureId.VOLATILE_WRITE_CACHE) & 1) != 0;
  }

  /** Whether interrupt coalescing is off for a vector. */
  boolean coalescingDisabled(int vector) {
    return (current(FeatureId.INTERRUPT_VECTOR_CONFIG, vector) & 1 << 16) != 0;
  }

  /** Whether the host wants SMART events for this critical warning bit. */
  boolean smartEventEnabled(int warning) {
    return (value(FeatureId.ASYNC_EVENT_CONFIG) & warning) != 0;
  }

  /** Whether the host wants Namespace Attribute Changed events. */
  boolean namespaceEventEnabled() {
    return (value(FeatureId.ASYNC_EVENT_CONFIG) & AEC_NAMESPACE) != 0;
  }

  /** Starts the keep alive timer again, at {@code now} ns. */
  void keepAlive(long now) {
    keepAliveStart = now;
  }

  /** Whether the host has set a keep alive timer and let it expire. Worker 0 only. */
  boolean keepAliveExpired(long now) {
    long timeout = Integer.toUnsignedLong(value(FeatureId.KEEP_ALIVE_TIMER)) * 1_000_000;
    return timeout != 0 && now - keepAliveStart > timeout;
  }
}
