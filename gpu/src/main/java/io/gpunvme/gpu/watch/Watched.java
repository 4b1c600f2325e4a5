package io.gpunvme.gpu.watch;

/** A controller that others may watch. */
interface Watched {
  /** Adds its numbers. Waits for nobody. */
  void addTo(MetricText text);
}
