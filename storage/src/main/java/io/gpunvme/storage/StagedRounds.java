package io.gpunvme.storage;

import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.transfer.Direction;
import io.gpunvme.storage.StagingHalves.Half;
import io.gpunvme.storage.path.DataPath;
import io.gpunvme.storage.path.PathCall;
import io.gpunvme.storage.path.Range;
import io.gpunvme.storage.path.StorageFailures;
import io.gpunvme.storage.plan.Plan;
import java.util.ArrayList;
import java.util.List;

/**
 * Carries out a plan by one path, in rounds: direct I/Os go to their targets, as many staged ones
 * as fit go to one half of the staging memory, and their pieces are copied from there while the
 * next round is read into the other half.
 */
final class StagedRounds {
  private final DataPath path;
  private final Plan plan;
  private final List<DeviceBuffer> targets;
  private final long size;
  private final PathCall call;

  /**
   * @param size of the source; what of the last I/O lies behind it is not read
   */
  StagedRounds(DataPath path, Plan plan, List<DeviceBuffer> targets, long size, PathCall call) {
    this.path = path;
    this.plan = plan;
    this.targets = targets;
    this.size = size;
    this.call = call;
  }

  /** Reads a plan that stages nothing. */
  void run() {
    List<Range> reads = new ArrayList<>(plan.ios());
    for (int io = 0; io < plan.ios(); io++) {
      reads.add(direct(io));
    }
    path.transfer(Direction.READ, reads, call);
  }

  /**
   * What was read together.
   *
   * @param half where the staged I/Os are
   * @param from first I/O
   * @param end behind the last one
   * @param bytes of the half in use
   */
  private record Round(Half half, int from, int end, long bytes) {}

  /**
   * Reads. After a failure copies may still be under way.
   *
   * @param staging halves at least as long as the longest I/O; of this call alone
   */
  void run(StagingHalves staging) {
    Round before = null;
    int next = 0;
    for (int n = 0; next < plan.ios(); n++) {
      // Nothing is copied from this half any more: the round before last has been waited for.
      Round round = read(next, staging.half(n));
      start(round);
      if (before != null) {
        await(before);
      }
      before = round;
      next = round.end;
    }
    if (before != null) {
      await(before);
    }
    call.counters().overread(overread());
  }

  /** Without what would lie behind the source's end. */
  private long overread() {
    long behind = 0;
    for (int io = 0; io < plan.ios(); io++) {
      behind += plan.length(io) - length(io);
    }
    return plan.bytesOverread() - behind;
  }

  private long length(int io) {
    return Math.min(plan.length(io), size - plan.offset(io));
  }

  private Range direct(int io) {
    int piece = plan.firstPiece(io);
    return new Range(
        plan.offset(io), targets.get(plan.target(piece)), plan.targetOffset(piece), length(io));
  }

  /** Reads as many I/Os as fit. */
  private Round read(int from, Half half) {
    List<Range> reads = new ArrayList<>();
    long used = 0;
    int io = from;
    while (io < plan.ios()
        && (plan.isDirect(io) || used + plan.length(io) <= half.memory().size())) {
      if (plan.isDirect(io)) {
        reads.add(direct(io));
      } else {
        reads.add(new Range(plan.offset(io), half.memory(), used, length(io)));
        used += plan.length(io);
      }
      io++;
    }
    call.throwIfCancelled(plan.offset(from), used);
    path.transfer(Direction.READ, reads, call);
    return new Round(half, from, io, used);
  }

  private void start(Round round) {
    try {
      addCopies(round);
      round.half.copies().start();
    } catch (RuntimeException e) {
      throw failure(e, round);
    }
  }

  private void await(Round round) {
    try {
      round.half.copies().await();
    } catch (RuntimeException e) {
      throw failure(e, round);
    }
  }

  private RuntimeException failure(RuntimeException e, Round round) {
    return StorageFailures.of(e, call.source(), plan.offset(round.from), round.bytes);
  }

  private void addCopies(Round round) {
    long at = 0;
    for (int io = round.from; io < round.end; io++) {
      if (plan.isDirect(io)) {
        continue;
      }
      for (int p = plan.firstPiece(io); p < plan.endPiece(io); p++) {
        round
            .half
            .copies()
            .add(
                round.half.memory(),
                at + plan.pieceOffset(p),
                targets.get(plan.target(p)),
                plan.targetOffset(p),
                plan.pieceLength(p));
        call.counters().staged(plan.pieceLength(p));
      }
      at += plan.length(io);
    }
  }
}
