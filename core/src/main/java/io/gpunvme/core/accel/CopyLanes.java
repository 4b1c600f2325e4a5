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
  private record Key(Thread thread, RemotePort.Use use) {}

  private final CudaContext context;

  /** Those in use. */
  private final Map<Key, CopyLane> lanes = new HashMap<>();

  CopyLanes(CudaContext context) {
    this.context = context;
  }

  /** This thread's stream; given back with {@link CopyLane#leave}. */
  synchronized CopyLane lane(RemotePort.Use use) {
    Key key = new Key(Thread.currentThread(), use);
    CopyLane lane = lanes.get(key);
    if (lane == null) {
      lane = new CopyLane(context, last -> forget(key, last));
      lanes.put(key, lane);
    }
    lane.enter();
    return lane;
  }

  /** Returns whether nobody uses it any more, and nobody will. */
  private synchronized boolean forget(Key key, CopyLane lane) {
    // Of two that leave at a time only one frees it.
    return lane.isUnused() && lanes.remove(key, lane);
  }
}
