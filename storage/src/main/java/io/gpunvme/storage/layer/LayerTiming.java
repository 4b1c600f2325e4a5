package io.gpunvme.storage.layer;

/**
 * The times of one layer.
 *
 * @param name of the layer
 * @param bytes of it
 * @param readNanos from the start of its read, or from the end of the read before if that was
 *     later, to its arrival
 * @param waitNanos how long its taker waited: the calling thread, or the stream by its own clock
 */
public record LayerTiming(String name, long bytes, long readNanos, long waitNanos) {}
