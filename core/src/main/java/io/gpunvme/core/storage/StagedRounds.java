package io.gpunvme.core.storage;

import io.gpunvme.core.accel.BufferCopies;
import io.gpunvme.core.accel.DeviceBuffer;
import io.gpunvme.core.path.DataPath;
import io.gpunvme.core.path.Failures;
import io.gpunvme.core.path.PathCall;
import io.gpunvme.core.path.Range;
import io.gpunvme.core.plan.Plan;
import io.gpunvme.core.transfer.Direction;
import java.util.ArrayList;
import java.util.List;

/**
 * Carries out a plan by one path: direct I/Os go to their targets, as many staged ones as fit go to
 * staging memory, their pieces are copied from there, and the next round begins.
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
   * Reads.
   *
   * @param memory at least as long as the longest I/O
   * @param copies of this call's alone
   */
  void run(DeviceBuffer memory, BufferCopies copies) {
    int next = 0;
    while (next < plan.ios()) {
      next = round(next, memory, copies);
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

  /** Reads as many I/Os as fit; returns the next one. */
  private int round(int from, DeviceBuffer memory, BufferCopies copies) {
    List<Range> reads = new ArrayList<>();
    long used = 0;
    int io = from;
    while (io < plan.ios() && (plan.isDirect(io) || used + plan.length(io) <= memory.size())) {
      if (plan.isDirect(io)) {
        reads.add(direct(io));
      } else {
        reads.add(new Range(plan.offset(io), memory, used, length(io)));
        used += plan.length(io);
      }
      io++;
    }
    call.throwIfCancelled(plan.offset(from), used);
    path.transfer(Direction.READ, reads, call);
    try {
      addCopies(from, io, memory, copies);
      copies.await();
    } catch (RuntimeException e) {
      throw Failures.of(e, call.source(), plan.offset(from), used);
    }
    return io;
  }

  private void addCopies(int from, int to, DeviceBuffer memory, BufferCopies copies) {
    long at = 0;
    for (int io = from; io < to; io++) {
      if (plan.isDirect(io)) {
        continue;
      }
      for (int p = plan.firstPiece(io); p < plan.endPiece(io); p++) {
        copies.add(
            memory,
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
