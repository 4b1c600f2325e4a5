package io.gpunvme.storage.soak;

import io.gpunvme.gpu.accel.DeviceBuffer;
import java.util.Arrays;
import java.util.SplittableRandom;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/**
 * Watches buffers whose transfer has failed: what is at rest does not change any more, and what may
 * be written for a while is at rest after it.
 */
final class BuffersAtRest extends Actor {
  private static final int MOST = 40;
  private static final long LOOK_MILLIS = 20;

  private final ConcurrentLinkedQueue<Watched> all = new ConcurrentLinkedQueue<>();
  private final AtomicInteger count = new AtomicInteger();

  BuffersAtRest(SplittableRandom random, Tally tally) {
    super("buffers at rest", random, tally);
  }

  private static final class Watched {
    final Buffer buffer;
    final String what;
    final long until;
    byte @Nullable [] then;

    Watched(Buffer buffer, String what, long until, byte @Nullable [] then) {
      this.buffer = buffer;
      this.what = what;
      this.until = until;
      this.then = then;
    }
  }

  /** Whether there is room for another one. */
  boolean hasRoom() {
    return count.get() < MOST;
  }

  /**
   * Takes a buffer over.
   *
   * @param seen what it holds; null if something may still write to it
   */
  void add(Buffer buffer, String what, byte @Nullable [] seen) {
    long until = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(random.nextInt(200, 3000));
    count.incrementAndGet();
    all.add(new Watched(buffer, what, until, seen));
  }

  @Override
  void act() throws InterruptedException {
    doing("looks");
    for (Watched w : all) {
      look(w, false);
    }
    Thread.sleep(LOOK_MILLIS);
  }

  private void look(Watched w, boolean last) {
    byte[] then = w.then;
    if (then == null) {
      if (w.buffer.inDoubt() == null) {
        w.then = w.buffer.bytes();
      } else if (last) {
        throw new AssertionError("nobody lets go of the buffer of: " + w.what);
      }
    } else if (last || System.nanoTime() > w.until) {
      int changed = Arrays.mismatch(then, w.buffer.bytes());
      if (changed >= 0) {
        throw new AssertionError(
            "byte %d of a buffer at rest has changed after: %s".formatted(changed, w.what));
      }
      all.remove(w);
      count.decrementAndGet();
      w.buffer.close();
      tally.add("buffers stayed at rest");
    }
  }

  /** When nothing is disturbed any more. */
  void drain() throws InterruptedException {
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(20);
    while (all.stream().anyMatch(w -> w.then == null) && System.nanoTime() < end) {
      act();
    }
    // Whoever let go last has some time, too.
    Thread.sleep(10 * LOOK_MILLIS);
    all.forEach(w -> look(w, true));
  }

  /** Memory and what it was filled with. */
  static final class Buffer {
    private final DeviceBuffer memory;
    private final Tally tally;

    Buffer(DeviceBuffer memory, Tally tally) {
      this.memory = memory;
      this.tally = tally;
    }

    DeviceBuffer memory() {
      return memory;
    }

    @Nullable String inDoubt() {
      return memory.inDoubt();
    }

    byte[] bytes() {
      byte[] bytes = new byte[(int) memory.size()];
      Actor.look(() -> memory.copyToHost(0, java.lang.foreign.MemorySegment.ofArray(bytes)));
      return bytes;
    }

    void fill(byte[] bytes) {
      Actor.look(() -> memory.copyFromHost(java.lang.foreign.MemorySegment.ofArray(bytes), 0));
    }

    void close() {
      Actor.untilItSucceeds("close buffer", tally, memory::close);
    }
  }
}
