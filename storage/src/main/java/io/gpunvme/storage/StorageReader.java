package io.gpunvme.storage;

import io.gpunvme.base.CloseAll;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.storage.fs.BlockReader;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.LinkedHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Reads a storage into host memory, for users such as a file system: it reads into pinned memory
 * and copies from there. A short read also brings the bytes around it, of which it keeps 2 MiB.
 * Safe for all threads, one read at a time.
 */
public final class StorageReader implements BlockReader {
  private static final int LINE = 32 << 10;
  private static final int LINES = 64;

  /** Of longer reads nothing is kept. */
  private static final int LONGEST_KEPT = 2 * LINE;

  private static final int PIECE = 4 << 20;

  private final GpuStorage storage;
  private final String name;
  private final long size;
  private final DeviceBuffer lines;

  // By number of the line, the least recently used first: its place in the buffer.
  private final Map<Long, Integer> places = new LinkedHashMap<>(2 * LINES, 0.75f, true);
  private final Deque<Integer> free = new ArrayDeque<>();
  private @Nullable DeviceBuffer piece;
  private boolean closed;

  /**
   * Reads a storage.
   *
   * @param storage the caller closes it after this; nobody writes to it meanwhile
   */
  public StorageReader(GpuStorage storage) {
    this.storage = storage;
    name = storage.address().toString();
    size = storage.size();
    lines = storage.accelerator().allocatePinned((long) LINES * LINE);
    for (int i = 0; i < LINES; i++) {
      free.add(i);
    }
  }

  @Override
  public String name() {
    return name;
  }

  @Override
  public long size() {
    return size;
  }

  @Override
  public synchronized void read(long offset, MemorySegment target) {
    if (closed) {
      throw new IllegalStateException(name + " is closed");
    }
    long length = target.byteSize();
    requireInside(offset, length);
    if (length > LONGEST_KEPT) {
      readLong(offset, target);
      return;
    }
    for (long done = 0; done < length; ) {
      long line = (offset + done) / LINE;
      long within = (offset + done) % LINE;
      long n = Math.min(LINE - within, length - done);
      lines.copyToHost(place(line) + within, target.asSlice(done, n));
      done += n;
    }
  }

  /** Where a line is in the buffer, once it is there. */
  private long place(long line) {
    Integer there = places.get(line);
    if (there != null) {
      return (long) there * LINE;
    }
    if (free.isEmpty()) {
      var eldest = places.values().iterator();
      free.add(eldest.next());
      eldest.remove();
    }
    int place = free.getFirst();
    long from = line * LINE;
    storage.read(from, lines, (long) place * LINE, Math.min(LINE, size - from));
    free.removeFirst();
    places.put(line, place);
    return (long) place * LINE;
  }

  private void readLong(long offset, MemorySegment target) {
    DeviceBuffer buffer = piece;
    if (buffer == null) {
      buffer = storage.accelerator().allocatePinned(PIECE);
      piece = buffer;
    }
    for (long done = 0; done < target.byteSize(); ) {
      long n = Math.min(PIECE, target.byteSize() - done);
      storage.read(offset + done, buffer, 0, n);
      buffer.copyToHost(0, target.asSlice(done, n));
      done += n;
    }
  }

  /** Frees its memory, not the storage. Idempotent. */
  @Override
  public synchronized void close() {
    if (closed) {
      return;
    }
    closed = true;
    CloseAll.all(lines, piece);
  }
}
