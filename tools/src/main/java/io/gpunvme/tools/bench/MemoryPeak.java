package io.gpunvme.tools.bench;

import io.gpunvme.base.Uninterrupted;
import io.gpunvme.gpu.accel.GpuAccelerator;
import java.util.concurrent.locks.LockSupport;

/**
 * Watches how much of a GPU's memory is in use, from a thread of its own, until it is closed.
 * Nobody else uses the GPU meanwhile.
 */
final class MemoryPeak implements AutoCloseable {
  private static final String NAME = "gpunvme-peak";
  private static final long NAP_NANOS = 200_000;

  private final GpuAccelerator accelerator;
  private final long before;
  private final Thread thread;
  private volatile long least;
  private volatile boolean over;

  private MemoryPeak(GpuAccelerator accelerator) {
    this.accelerator = accelerator;
    before = free();
    least = before;
    thread = Thread.ofPlatform().name(NAME).daemon().unstarted(this::watch);
  }

  /**
   * Begins.
   *
   * @param often whether to look all the time, not only at the end
   */
  static MemoryPeak watch(GpuAccelerator accelerator, boolean often) {
    MemoryPeak peak = new MemoryPeak(accelerator);
    if (often) {
      peak.thread.start();
    }
    return peak;
  }

  private void watch() {
    while (!over) {
      least = Math.min(least, free());
      LockSupport.parkNanos(NAP_NANOS);
    }
  }

  private long free() {
    return accelerator.context().memoryInfo().free();
  }

  /** Bytes taken at the peak, beside what was in use at the start. */
  long bytes() {
    return before - Math.min(least, free());
  }

  /** What watching took so far. */
  double processorSeconds() {
    return ProcessorTime.threads(NAME);
  }

  @Override
  public void close() {
    over = true;
    Uninterrupted.join(thread);
  }
}
