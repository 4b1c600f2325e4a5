package io.gpunvme.gpu.accel;

import io.gpunvme.cuda.CudaContext;
import io.gpunvme.nvme.memory.RemotePort;
import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The streams that the threads of embedded controllers copy in: two of each thread, for however
 * many buffers. GPUs have few hardware queues, and a stream for each buffer would wait in one of
 * them behind a kernel that waits for the copy. Safe for all threads.
 */
final class CopyLanes {
  /** For the threads of twelve controllers. */
  private static final int LEAST = 24;

  private static final int MOST = 64;

  private record Key(Thread thread, RemotePort.Use use) {}

  private final CudaContext context;
  private final Stock<CopyLane> stock;

  /** Those in use. */
  private final Map<Key, CopyLane> lanes = new HashMap<>();

  CopyLanes(CudaContext context) {
    this.context = context;
    stock = new Stock<>(LEAST, MOST, this::make, CopyLane::free);
  }

  private CopyLane make() {
    return new CopyLane(context, this::left);
  }

  /** Lanes that are made before kernels run. */
  Stock<CopyLane> stock() {
    return stock;
  }

  /** This thread's stream; given back with {@link CopyLane#leave}. */
  CopyLane lane(RemotePort.Use use) {
    Key key = new Key(Thread.currentThread(), use);
    CopyLane lane = existing(key);
    // Outside the monitor: the driver may wait for a kernel that waits for another thread's lane.
    return lane == null ? entered(key, make()) : lane;
  }

  private synchronized @Nullable CopyLane existing(Key key) {
    CopyLane lane = lanes.get(key);
    if (lane == null) {
      lane = stock.poll();
    }
    return lane == null ? null : entered(key, lane);
  }

  private synchronized CopyLane entered(Key key, CopyLane lane) {
    lanes.put(key, lane);
    lane.enter();
    return lane;
  }

  private void left(CopyLane lane) {
    synchronized (this) {
      // Of two that leave at a time only one gives it back.
      if (!lane.isUnused() || !lanes.values().remove(lane)) {
        return;
      }
    }
    stock.give(lane);
  }
}
