package io.gpunvme.storage.layer;

/**
 * How one layer came.
 *
 * @param name of the layer
 * @param bytes of it
 * @param readNanos from when reading it began, or from the end of the read before if that was
 *     later, to when it was there
 * @param waitNanos how long its taker waited: the calling thread, or the stream by its own clock
 */
public record LayerTiming(String name, long bytes, long readNanos, long waitNanos) {}
