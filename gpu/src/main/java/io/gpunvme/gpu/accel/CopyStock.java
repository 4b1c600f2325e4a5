package io.gpunvme.gpu.accel;

import io.gpunvme.cuda.CudaContext;
import io.gpunvme.cuda.PinnedMemory;
import io.gpunvme.nvme.pci.NumaHome;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * What embedded controllers of one GPU copy with: streams, and pinned memory for queues' entries
 * and for data that has no place of its own. Safe for all threads.
 */
final class CopyStock {
  private static final long SMALL = 64 << 10;
  private static final long LARGE = 1 << 20;
  private static final long ALIGNMENT = 4096;
  private static final int LEAST_SMALL = 16;
  private static final int LEAST_LARGE = 8;
  private static final int MOST = 64;

  /** Beside a kernel that takes longer nothing is made: controllers manage without. */
  private static final long PATIENCE_NANOS = TimeUnit.SECONDS.toNanos(1);

  private final KernelPauses pauses;
  private final CopyLanes lanes;
  private final Stock<PinnedMemory> small;
  private final Stock<PinnedMemory> large;

  /** Of pieces that are lent, by their address; guarded by itself. */
  private final Map<Long, PinnedMemory> lent = new HashMap<>();

  /**
   * @param home of the pinned memory
   */
  CopyStock(CudaContext context, NumaHome home, KernelPauses pauses) {
    this.pauses = pauses;
    lanes = new CopyLanes(context);
    small = stock(context, home, SMALL, LEAST_SMALL);
    large = stock(context, home, LARGE, LEAST_LARGE);
  }

  private Stock<PinnedMemory> stock(CudaContext context, NumaHome home, long bytes, int least) {
    // Who gives memory back may be waited for by a controller: it must not wait for kernels.
    return new Stock<>(
        least,
        MOST,
        () -> {
          try (var _ = home.memory()) {
            return context.allocatePinned(bytes);
          }
        },
        b -> pauses.later(b.size(), () -> CopyLane.quietly(b::close)));
  }

  CopyLanes lanes() {
    return lanes;
  }

  /** Sees to it that there is enough for another mapping. */
  void fill() {
    if (lanes.stock().isLow() || small.isLow() || large.isLow()) {
      pauses.tryTake(
          PATIENCE_NANOS,
          () -> {
            lanes.stock().fill();
            small.fill();
            large.fill();
          });
    }
  }

  /**
   * Host memory for copies; pinned if there is any in stock. Never waits for the driver.
   *
   * @param bytes &gt; 0
   */
  MemorySegment take(long bytes) {
    PinnedMemory piece = bytes <= SMALL ? small.poll() : bytes <= LARGE ? large.poll() : null;
    if (piece == null) {
      return Arena.ofAuto().allocate(bytes, ALIGNMENT);
    }
    synchronized (lent) {
      lent.put(piece.segment().address(), piece);
    }
    return piece.segment().asSlice(0, bytes);
  }

  /** Takes it back; nothing is copied through it any more. */
  void give(MemorySegment memory) {
    PinnedMemory piece = returned(memory);
    if (piece != null) {
      (piece.size() == SMALL ? small : large).give(piece);
    }
  }

  private @Nullable PinnedMemory returned(MemorySegment memory) {
    synchronized (lent) {
      return lent.remove(memory.address());
    }
  }
}
