package io.gpunvme.sim;

import io.gpunvme.nvme.spec.AsyncEvent;
import io.gpunvme.nvme.spec.FeatureId;
import io.gpunvme.nvme.spec.IoOpcode;
import io.gpunvme.nvme.spec.LogId;
import io.gpunvme.nvme.spec.SmartLog;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.TimeUnit;

/** The SMART / Health Information log (Base 2.0, 5.16.1.3) and its events. Worker 0. */
final class SmartHealth {
  private static final int ROOM_TEMPERATURE = 300;
  private static final int SPARE_PERCENT = 100;
  private static final int SPARE_THRESHOLD_PERCENT = 10;

  /** A data unit is 1000 times 512 bytes, rounded up. */
  private static final long DATA_UNIT = 1000 * 512;

  private final FeatureStore features;
  private final ControllerEvents events;
  private final SimStats stats;
  private final Namespaces namespaces;
  private final ErrorLog errors;
  private final long started = System.nanoTime();

  // Set by a test's thread, read by worker 0.
  private volatile int temperature = ROOM_TEMPERATURE;
  private int reported;

  SmartHealth(
      FeatureStore features,
      Namespaces namespaces,
      SimStats stats,
      ControllerEvents events,
      ErrorLog errors) {
    this.features = features;
    this.events = events;
    this.stats = stats;
    this.namespaces = namespaces;
    this.errors = errors;
  }

  /** Changes the composite temperature, in kelvin; a threshold crossed makes an event. */
  synchronized void temperature(int kelvin) {
    temperature = kelvin;
    warningsChanged();
  }

  /** Raises the events of critical warnings that are new and that the host wants. */
  synchronized void warningsChanged() {
    int warnings = criticalWarning();
    reported &= warnings;
    if ((warnings & ~reported & SmartLog.WARNING_TEMPERATURE) != 0
        && features.smartEventEnabled(SmartLog.WARNING_TEMPERATURE)) {
      reported |= SmartLog.WARNING_TEMPERATURE;
      events.raise(AsyncEvent.TYPE_SMART, AsyncEvent.SMART_TEMPERATURE, LogId.SMART);
    }
  }

  /** After a reset the host hears of every warning again. */
  synchronized void reset() {
    reported = 0;
  }

  private int criticalWarning() {
    int over = features.current(FeatureId.TEMPERATURE_THRESHOLD, FeatureRule.OVER);
    int under = features.current(FeatureId.TEMPERATURE_THRESHOLD, FeatureRule.UNDER);
    return temperature >= over || temperature <= under ? SmartLog.WARNING_TEMPERATURE : 0;
  }

  /** Writes the page to zeroed memory. */
  void render(MemorySegment page) {
    long hours = TimeUnit.NANOSECONDS.toHours(System.nanoTime() - started);
    long reads = stats.ioCommands(IoOpcode.READ) + stats.ioCommands(IoOpcode.COMPARE);
    new SmartLog(page)
        .set(SmartLog.CRITICAL_WARNING, criticalWarning())
        .set(SmartLog.COMPOSITE_TEMPERATURE, temperature)
        .set(SmartLog.AVAILABLE_SPARE, SPARE_PERCENT)
        .set(SmartLog.AVAILABLE_SPARE_THRESHOLD, SPARE_THRESHOLD_PERCENT)
        .set(SmartLog.DATA_UNITS_READ, Math.ceilDiv(stats.readBytes(), DATA_UNIT))
        .set(SmartLog.DATA_UNITS_WRITTEN, Math.ceilDiv(stats.writtenBytes(), DATA_UNIT))
        .set(SmartLog.HOST_READ_COMMANDS, reads)
        .set(SmartLog.HOST_WRITE_COMMANDS, stats.ioCommands(IoOpcode.WRITE))
        .set(SmartLog.POWER_CYCLES, 1)
        .set(SmartLog.POWER_ON_HOURS, hours)
        .set(SmartLog.MEDIA_ERRORS, errors.mediaErrors() + namespaces.flushFailures())
        .set(SmartLog.ERROR_LOG_ENTRIES, errors.count());
  }
}
