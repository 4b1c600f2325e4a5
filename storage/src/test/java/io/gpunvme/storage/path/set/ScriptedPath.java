package io.gpunvme.storage.path.set;

import io.gpunvme.gpu.transfer.Direction;
import io.gpunvme.storage.path.DataPath;
import io.gpunvme.storage.path.PathCall;
import io.gpunvme.storage.path.PathKind;
import io.gpunvme.storage.path.Range;
import io.gpunvme.storage.path.RequestShape;
import io.gpunvme.storage.path.StorageException;
import io.gpunvme.storage.path.StorageException.Kind;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/** Fills with its number; fails, waits or takes time on a clock of its own on demand. */
final class ScriptedPath implements DataPath {
  static final int SIZE = 256 << 20;

  /** The time of each thread: what others do takes none of it. */
  private static final ThreadLocal<long[]> TIME = ThreadLocal.withInitial(() -> new long[1]);

  private final byte number;
  final AtomicInteger calls = new AtomicInteger();
  int failAt = Integer.MAX_VALUE;
  Kind kind = Kind.IO;
  @Nullable CountDownLatch waitFor;

  /** Done by each transfer. */
  Runnable meanwhile = () -> {};

  /** What a transfer takes, and for each byte besides. */
  volatile long nanos;

  volatile double nanosPerByte;

  /** Whether bytes are moved, and not only counted. */
  volatile boolean fills = true;

  boolean sawCancel;
  boolean closed;

  ScriptedPath(int number) {
    this.number = (byte) number;
  }

  /** A clock for sets of these. */
  static long clock() {
    return TIME.get()[0];
  }

  @Override
  public PathKind kind() {
    return PathKind.DIRECT;
  }

  @Override
  public String mode() {
    return "scripted";
  }

  @Override
  public long size() {
    return SIZE;
  }

  @Override
  public int alignment() {
    return 4096;
  }

  @Override
  public double expected(RequestShape shape) {
    return 1;
  }

  @Override
  public void transfer(Direction direction, List<Range> ranges, PathCall call) {
    if (calls.getAndIncrement() >= failAt) {
      Range r = ranges.getFirst();
      throw new StorageException(kind, call.source(), r.offset(), r.length(), "broken", null);
    }
    meanwhile.run();
    CountDownLatch latch = waitFor;
    if (latch != null) {
      waitUntilCancelled(latch, call);
    }
    long bytes = ranges.stream().mapToLong(Range::length).sum();
    long took = nanos + (long) (nanosPerByte * bytes);
    TIME.get()[0] += took;
    for (Range r : fills ? ranges : List.<Range>of()) {
      byte[] fill = new byte[(int) r.length()];
      Arrays.fill(fill, number);
      r.buffer().copyFromHost(MemorySegment.ofArray(fill), r.bufferOffset());
    }
    call.counters().moved(direction, bytes);
    call.operation(took);
  }

  private void waitUntilCancelled(CountDownLatch latch, PathCall call) {
    try {
      latch.await();
      while (!call.isCancelled()) {
        Thread.sleep(1);
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    sawCancel = true;
    call.throwIfCancelled(0, 1);
  }

  @Override
  public void close() {
    closed = true;
  }
}
