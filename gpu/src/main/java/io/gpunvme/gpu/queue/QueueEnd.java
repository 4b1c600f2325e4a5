package io.gpunvme.gpu.queue;

import io.gpunvme.gpu.queue.DeviceLayout.Queue;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/**
 * What an exclusive queue was when its kernel had ended.
 *
 * @param counters since its creation
 * @param quiet whether no command was outstanding, quarantined ones included
 */
public record QueueEnd(QueueCounters counters, boolean quiet) {
  /** Bytes of memory for one. */
  public static final long BYTES = Queue.SIZE;

  static QueueEnd of(MemorySegment queue, int depth) {
    return new QueueEnd(QueueCounters.read(queue), DeviceQueue.isQuiet(queue, depth));
  }

  /** Before a kernel that leaves its queue there, in host memory. */
  public static void clear(MemorySegment queue) {
    DeviceLayout.setInt(queue, Queue.QID, 0);
  }

  /** Whether the kernel has left it. Then nothing is left to do for it but to end. */
  public static boolean isLeft(MemorySegment queue) {
    return DeviceLayout.getIntAcquire(queue, Queue.QID) != 0;
  }

  /** What the kernel has left; null if it ended without doing so. */
  public static @Nullable QueueEnd read(MemorySegment queue, int depth) {
    return isLeft(queue) ? of(queue, depth) : null;
  }
}
