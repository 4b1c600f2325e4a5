package io.gpunvme.cuda.cufile;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.MemorySegment;

/**
 * What an open driver says of itself ({@code CUfileDrvProps_t}).
 *
 * @param nvfsMajor version of nvidia-fs; 0 without it
 * @param nvfsMinor its second part
 * @param pollThresholdKb longest request that is polled for
 * @param maxDirectIoKb longest request to the kernel
 * @param statusFlags bits by {@code CU_FILE_..._SUPPORTED}
 * @param controlFlags bits: 0 polling, 1 compatibility mode allowed
 * @param featureFlags bits: 0 dynamic routing, 1 batches, 2 streams, 3 parallel I/O
 * @param maxDeviceCacheKb GPU memory for what is not registered, per GPU
 * @param perBufferCacheKb its pieces
 * @param maxPinnedKb most memory that may be registered
 * @param maxBatch most entries of a batch
 * @param batchTimeoutMillis how long a batch may take
 */
public record CuFileProperties(
    int nvfsMajor,
    int nvfsMinor,
    long pollThresholdKb,
    long maxDirectIoKb,
    int statusFlags,
    int controlFlags,
    int featureFlags,
    long maxDeviceCacheKb,
    long perBufferCacheKb,
    long maxPinnedKb,
    int maxBatch,
    int batchTimeoutMillis) {
  static final long BYTES = 56;

  static CuFileProperties of(MemorySegment s) {
    return new CuFileProperties(
        s.get(JAVA_INT, 0),
        s.get(JAVA_INT, 4),
        s.get(JAVA_LONG, 8),
        s.get(JAVA_LONG, 16),
        s.get(JAVA_INT, 24),
        s.get(JAVA_INT, 28),
        s.get(JAVA_INT, 32),
        Integer.toUnsignedLong(s.get(JAVA_INT, 36)),
        Integer.toUnsignedLong(s.get(JAVA_INT, 40)),
        Integer.toUnsignedLong(s.get(JAVA_INT, 44)),
        s.get(JAVA_INT, 48),
        s.get(JAVA_INT, 52));
  }
}
