package io.gpunvme.storage;

import io.gpunvme.base.CloseAll;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.cuda.CudaException;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.transfer.Direction;
import io.gpunvme.storage.path.DataPath;
import io.gpunvme.storage.path.PathCall;
import io.gpunvme.storage.path.StorageException;
import io.gpunvme.storage.path.StorageException.Kind;
import io.gpunvme.storage.path.StorageFailures;
import io.gpunvme.storage.plan.Plan;
import io.gpunvme.storage.plan.PlanOptions;
import io.gpunvme.storage.plan.Planner;
import io.gpunvme.storage.plan.Ranges;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.ConcurrentLinkedDeque;
import java.util.concurrent.Semaphore;
import org.jspecify.annotations.Nullable;

/**
 * Reads of many ranges by a file's paths: ranges that lie close together become one I/O to memory
 * of the accelerator, and their bytes are copied from there to where they belong; what is long and
 * aligned goes there at once. Ranges are read as they are where that is no more I/Os, and by paths
 * that plan reads themselves.
 *
 * <p>Safe for all threads. Two reads at a time have staging memory; others wait for it.
 */
final class PlannedReads implements AutoCloseable {
  private static final long HALF_BYTES = 32 << 20;
  private static final int STAGINGS = 2;

  /** Paths cut what is longer than they like. */
  private static final long LONGEST_IO = 16 << 20;

  private final Accelerator accelerator;
  private final Registrar registrar;
  private final long halfBytes;
  private final Semaphore turns = new Semaphore(STAGINGS);

  /** StagingHalves memory that nobody uses. */
  private final Deque<StagingHalves> free = new ConcurrentLinkedDeque<>();

  /**
   * @param registrar is told of staging memory
   */
  PlannedReads(Accelerator accelerator, Registrar registrar) {
    this(accelerator, registrar, HALF_BYTES);
  }

  /**
   * @param halfBytes of staging memory at most, of which each read that stages has two; at least
   *     every path's alignment
   */
  PlannedReads(Accelerator accelerator, Registrar registrar, long halfBytes) {
    this.accelerator = accelerator;
    this.registrar = registrar;
    this.halfBytes = halfBytes;
  }

  /**
   * Reads.
   *
   * @param ranges inside the source
   * @param targets a buffer for each target, with room for its ranges
   * @param size of the source
   * @throws InvalidRequestException if two ranges overlap in a target
   * @throws StorageException the first failure; nothing is at work in the buffers any more
   */
  void read(DataPath path, Ranges ranges, List<DeviceBuffer> targets, long size, PathCall call) {
    Plan plan = plan(path, ranges, size);
    if (plan == null || !carryOut(plan, path, targets, size, call)) {
      path.transfer(Direction.READ, new RangeList(ranges, targets), call);
    } else {
      call.counters().read(plan.bytesAsked() - moved(plan, size));
    }
  }

  /** What the path has counted for a plan: bytes that nobody asked for too, others once only. */
  private static long moved(Plan plan, long size) {
    long moved = 0;
    for (int io = 0; io < plan.ios(); io++) {
      moved += Math.min(plan.length(io), size - plan.offset(io));
    }
    return moved;
  }

  /** Null if the ranges are best read as they are. */
  private @Nullable Plan plan(DataPath path, Ranges ranges, long size) {
    if (path.plansReads() || ranges.size() < 2) {
      return null;
    }
    int alignment = path.alignment();
    Plan plan =
        Planner.plan(
            ranges,
            PlanOptions.of(size)
                .alignment(alignment)
                .targetAlignment(alignment)
                .maxBytes(Math.min(LONGEST_IO, halfBytes))
                .build());
    return plan.ios() < ranges.size() ? plan : null;
  }

  /** Returns whether all is read; if not, the ranges can be tried as they are. */
  private boolean carryOut(
      Plan plan, DataPath path, List<DeviceBuffer> targets, long size, PathCall call) {
    StagedRounds rounds = new StagedRounds(path, plan, targets, size, call);
    try {
      if (plan.directIos() == plan.ios()) {
        rounds.run();
        return true;
      }
      turns.acquireUninterruptibly();
      try {
        return run(rounds, bytesOfHalf(path, size), call);
      } finally {
        turns.release();
      }
    } catch (StorageException e) {
      // Bytes that nobody asked for do not fail those that somebody did.
      if (plan.bytesOverread() == 0 || (e.kind() != Kind.IO && e.kind() != Kind.SHORT_READ)) {
        throw e;
      }
      call.counters().retried(1);
      return false;
    }
  }

  /**
   * Memory takes long to come by, so a small file has little. It has powers of two: one that grows
   * seldom needs more.
   */
  private long bytesOfHalf(DataPath path, long size) {
    long most = Math.min(halfBytes, Math.max(size, path.alignment()));
    return Math.min(halfBytes, Long.highestOneBit(2 * most - 1));
  }

  private boolean run(StagedRounds rounds, long bytes, PathCall call) {
    StagingHalves staging = free.poll();
    if (staging != null && staging.bytes() < bytes) {
      discard(staging);
      staging = null;
    }
    if (staging == null) {
      staging = allocate(bytes, call);
    }
    if (staging == null) {
      return false;
    }
    try {
      rounds.run(staging);
    } finally {
      giveBack(staging);
    }
    return true;
  }

  /** Null if the accelerator has no room for it. */
  private @Nullable StagingHalves allocate(long bytes, PathCall call) {
    try {
      return new StagingHalves(accelerator, registrar, bytes);
    } catch (CudaException e) {
      if (e.code() == CudaException.OUT_OF_MEMORY) {
        return null;
      }
      throw StorageFailures.of(e, call.source(), -1, -1);
    }
  }

  /** After a failure copies may still be under way; whoever comes next must not meet them. */
  private void giveBack(StagingHalves staging) {
    try {
      staging.await();
      free.push(staging);
    } catch (RuntimeException e) {
      discard(staging);
    } catch (Error e) {
      CloseAll.after(e, staging::close);
      throw e;
    }
  }

  private static void discard(StagingHalves staging) {
    try {
      staging.close();
    } catch (RuntimeException e) {
      // Nobody needs it any more; what made its copies useless is on its way to the caller.
    }
  }

  /** Most memory of the accelerator that reads by this path are staged in. */
  long gpuBytes(DataPath path) {
    return path.plansReads() ? 0 : STAGINGS * 2 * halfBytes;
  }

  /** No read is running. */
  @Override
  public void close() {
    CloseAll steps = new CloseAll();
    for (StagingHalves one = free.poll(); one != null; one = free.poll()) {
      steps.run(one::close);
    }
    steps.end();
  }
}
