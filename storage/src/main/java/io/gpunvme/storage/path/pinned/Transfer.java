package io.gpunvme.storage.path.pinned;

import io.gpunvme.gpu.transfer.Direction;
import io.gpunvme.storage.path.PathCall;
import io.gpunvme.storage.path.Range;
import io.gpunvme.storage.path.StorageException;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/** What the threads of one transfer share. */
final class Transfer {
  private final Direction direction;
  private final List<Range> ranges;
  private final PathCall call;
  private final AtomicReference<@Nullable StorageException> failure = new AtomicReference<>();
  private volatile boolean stopped;

  Transfer(Direction direction, List<Range> ranges, PathCall call) {
    this.direction = direction;
    this.ranges = ranges;
    this.call = call;
  }

  boolean isWrite() {
    return direction == Direction.WRITE;
  }

  Range range(int index) {
    return ranges.get(index);
  }

  PathCall call() {
    return call;
  }

  /** Ends it early, for a failure that its caller is told of in another way. */
  void stop() {
    stopped = true;
  }

  /** Whether nothing more is to be started. */
  boolean isStopped() {
    return stopped || failure.get() != null || call.isCancelled();
  }

  /** It fails; the first failure is the one that counts. */
  void fail(StorageException e) {
    failure.compareAndSet(null, e);
  }

  void throwIfFailed() {
    StorageException e = failure.get();
    if (e != null) {
      throw e;
    }
  }
}
