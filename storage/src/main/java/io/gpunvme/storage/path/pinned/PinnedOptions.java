package io.gpunvme.storage.path.pinned;

import io.gpunvme.base.InvalidRequestException;

/**
 * How a {@link PinnedPath} works.
 *
 * @param engine how I/O is done
 * @param direct whether the page cache is gone past
 * @param depth most reads or writes past the page cache in flight for one transfer, 1 to 4096; with
 *     threads, at most 64 of these
 * @param chunk longest read or write in bytes, a power of two from 64 KiB to 256 MiB; each has that
 *     much pinned memory
 * @param ringBytes most pinned memory in use at a time, at least one chunk
 * @param threads most threads that go through the page cache for one transfer, 1 to 256
 * @param streams CUDA streams for the copies, 1 to 64
 */
public record PinnedOptions(
    Engine engine,
    DirectIo direct,
    int depth,
    int chunk,
    long ringBytes,
    int threads,
    int streams) {
  static final int LEAST_CHUNK = 64 << 10;
  private static final int MOST_CHUNK = 256 << 20;
  private static final int MOST_DEPTH = 4096;
  private static final int MOST_THREADS = 256;
  private static final int MOST_STREAMS = 64;
  private static final int USUAL_THREADS = 12;

  /** What suits most. */
  public static PinnedOptions defaults() {
    return new PinnedOptions(
        Engine.AUTO,
        DirectIo.AUTO,
        64,
        2 << 20,
        64 << 20,
        Math.clamp(Runtime.getRuntime().availableProcessors(), 2, USUAL_THREADS),
        4);
  }

  /**
   * @throws InvalidRequestException if a value is out of its range
   */
  public PinnedOptions {
    require(depth >= 1 && depth <= MOST_DEPTH, "depth", depth, "1 to " + MOST_DEPTH);
    require(
        chunk >= LEAST_CHUNK && chunk <= MOST_CHUNK && Integer.bitCount(chunk) == 1,
        "chunk",
        chunk,
        "a power of two from " + LEAST_CHUNK + " to " + MOST_CHUNK);
    require(ringBytes >= chunk, "ring", ringBytes, "at least one chunk of " + chunk);
    require(threads >= 1 && threads <= MOST_THREADS, "threads", threads, "1 to " + MOST_THREADS);
    require(streams >= 1 && streams <= MOST_STREAMS, "streams", streams, "1 to " + MOST_STREAMS);
  }

  private static void require(boolean holds, String name, long value, String range) {
    if (!holds) {
      throw new InvalidRequestException(
          "pinned path: %s is %d; it must be %s".formatted(name, value, range));
    }
  }

  /** These with another engine. */
  public PinnedOptions withEngine(Engine other) {
    return new PinnedOptions(other, direct, depth, chunk, ringBytes, threads, streams);
  }

  /** These with another use of the page cache. */
  public PinnedOptions withDirect(DirectIo other) {
    return new PinnedOptions(engine, other, depth, chunk, ringBytes, threads, streams);
  }

  /** These with another depth. */
  public PinnedOptions withDepth(int other) {
    return new PinnedOptions(engine, direct, other, chunk, ringBytes, threads, streams);
  }

  /** These with other pinned memory. */
  public PinnedOptions withMemory(int otherChunk, long otherRingBytes) {
    return new PinnedOptions(engine, direct, depth, otherChunk, otherRingBytes, threads, streams);
  }

  /** These with other threads. */
  public PinnedOptions withThreads(int other) {
    return new PinnedOptions(engine, direct, depth, chunk, ringBytes, other, streams);
  }

  /** These with other streams. */
  public PinnedOptions withStreams(int other) {
    return new PinnedOptions(engine, direct, depth, chunk, ringBytes, threads, other);
  }
}
