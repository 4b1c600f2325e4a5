package io.gpunvme.core.accel;

import io.gpunvme.cuda.CudaContext;
import io.gpunvme.nvme.memory.RemotePort;
import java.util.HashMap;
import java.util.Map;

/**
 * The streams that the threads of embedded controllers copy in: two of each thread, for however
 * many buffers. GPUs have few hardware queues, and a stream for each buffer would wait in one of
 * them behind a kernel that waits for the copy. Safe for all threads.
 */
final class CopyLanes {
  /** For the threads of four controllers. */
  private static final int LEAST = 8;

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
  synchronized CopyLane lane(RemotePort.Use use) {
    Key key = new Key(Thread.currentThread(), use);
    CopyLane lane = lanes.get(key);
    if (lane == null) {
      CopyLane there = stock.poll();
      lane = there == null ? make() : there;
      lanes.put(key, lane);
    }
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
