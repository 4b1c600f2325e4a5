package io.gpunvme.storage.path.direct;

import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.transfer.Direction;
import io.gpunvme.gpu.transfer.TransferPlan;
import io.gpunvme.nvme.driver.Namespace;
import io.gpunvme.storage.path.Range;
import io.gpunvme.storage.path.direct.DirectPath.Commands;
import io.gpunvme.storage.path.direct.StagingPool.Staged;
import io.gpunvme.storage.plan.Plan;
import io.gpunvme.storage.plan.PlanOptions;
import io.gpunvme.storage.plan.Planner;
import io.gpunvme.storage.plan.Ranges;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** Reads of one transfer: those of whole blocks as they are, the others as the planner says. */
final class ReadJob {
  static final long LONGEST_STAGED = 1 << 20;

  private final Namespace namespace;
  private final int block;
  private final int shift;
  private final Supplier<Staged> staged;
  private final Commands commands;

  /** The buffers that the ranges name. */
  private final Numbers buffers = new Numbers();

  /** Those that commands name: reached buffers, and the staging memory. */
  private Numbers reached = new Numbers();

  /** Whether copies from the staging memory may be under way. */
  private boolean copying;

  ReadJob(Namespace namespace, Supplier<Staged> staged, Commands commands) {
    this.namespace = namespace;
    block = namespace.blockSize();
    shift = Integer.numberOfTrailingZeros(block);
    this.staged = staged;
    this.commands = commands;
  }

  void run(List<Range> ranges) {
    TransferPlan.Builder reads = commands.plan(Direction.READ);
    Ranges.Builder others = null;
    for (Range r : ranges) {
      if (r.length() == 0) {
        continue;
      }
      if (commands.isStraight(r)) {
        add(reads, r.offset(), r.length(), r.buffer(), r.bufferOffset());
      } else {
        if (others == null) {
          others = Ranges.builder();
        }
        others.add(r.offset(), r.length(), buffers.of(r.buffer()), r.bufferOffset());
      }
    }
    if (others == null) {
      commands.run(reads, reached.all());
      return;
    }
    Plan plan = plan(others.build());
    addDirect(plan, reads);
    // What is staged first goes along: a kernel of its own would be launched and waited for.
    int round = 0;
    for (int io = 0; io < plan.ios(); round++) {
      io = round(plan, io, reads, round);
      reads = commands.plan(Direction.READ);
      reached = new Numbers();
    }
    if (copying) {
      staged.get().copies().await();
    }
  }

  private void add(
      TransferPlan.Builder reads, long offset, long length, DeviceBuffer buffer, long at) {
    reads.add(offset >> shift, length >> shift, reached.of(buffer), at);
  }

  private Plan plan(Ranges ranges) {
    Plan plan =
        Planner.plan(
            ranges,
            PlanOptions.of(namespace.bytes())
                .alignment(block)
                .targetAlignment(DirectPath.POINTER_ALIGNMENT)
                .maxBytes(Math.max(block, LONGEST_STAGED))
                .gap(block)
                .build());
    commands.call().counters().overread(plan.bytesOverread());
    return plan;
  }

  private boolean isDirect(Plan plan, int io) {
    return plan.isDirect(io) && commands.isReached(buffers.get(plan.target(plan.firstPiece(io))));
  }

  private void addDirect(Plan plan, TransferPlan.Builder reads) {
    for (int io = 0; io < plan.ios(); io++) {
      if (isDirect(plan, io)) {
        int piece = plan.firstPiece(io);
        DeviceBuffer buffer = buffers.get(plan.target(piece));
        add(reads, plan.offset(io), plan.length(io), buffer, plan.targetOffset(piece));
      }
    }
  }

  /**
   * Carries out {@code reads} and as many I/Os as fit into half of the staging memory; returns the
   * next. What was staged is copied out of the one half while the next round reads into the other.
   */
  private int round(Plan plan, int from, TransferPlan.Builder reads, int round) {
    List<Integer> ios = new ArrayList<>();
    long used = 0;
    long half = 0;
    int io = from;
    for (; io < plan.ios(); io++) {
      if (isDirect(plan, io)) {
        continue;
      }
      DeviceBuffer memory = staged.get().memory();
      long room = memory.size() / 2;
      if (used + plan.length(io) > room) {
        break;
      }
      half = round % 2 * room;
      add(reads, plan.offset(io), plan.length(io), memory, half + used);
      ios.add(io);
      used += plan.length(io);
    }
    if (!ios.isEmpty()) {
      commands.call().throwIfCancelled(plan.offset(ios.getFirst()), used);
    }
    commands.run(reads, reached.all());
    if (ios.isEmpty()) {
      return io;
    }
    if (copying) {
      staged.get().copies().await();
    }
    copying = true;
    long at = half;
    for (int next : ios) {
      copyOut(plan, next, at);
      at += plan.length(next);
    }
    staged.get().copies().start();
    return io;
  }

  private void copyOut(Plan plan, int io, long at) {
    Staged own = staged.get();
    for (int p = plan.firstPiece(io); p < plan.endPiece(io); p++) {
      own.copies()
          .add(
              own.memory(),
              at + plan.pieceOffset(p),
              buffers.get(plan.target(p)),
              plan.targetOffset(p),
              plan.pieceLength(p));
      commands.call().counters().staged(plan.pieceLength(p));
    }
  }

  /** Buffers, numbered from 0 in the order in which they turn up. */
  static final class Numbers {
    /** Null up to the second buffer. */
    private @Nullable Map<DeviceBuffer, Integer> numbers;

    private final List<DeviceBuffer> all = new ArrayList<>(1);
    private @Nullable DeviceBuffer last;
    private int lastNumber;

    int of(DeviceBuffer buffer) {
      // Most ranges go where the one before went.
      if (buffer != last) {
        last = buffer;
        lastNumber = number(buffer);
      }
      return lastNumber;
    }

    private int number(DeviceBuffer buffer) {
      if (all.isEmpty()) {
        return add(buffer);
      }
      Map<DeviceBuffer, Integer> known = numbers;
      if (known == null) {
        known = new HashMap<>();
        known.put(all.getFirst(), 0);
        numbers = known;
      }
      return known.computeIfAbsent(buffer, this::add);
    }

    private int add(DeviceBuffer buffer) {
      all.add(buffer);
      return all.size() - 1;
    }

    DeviceBuffer get(int number) {
      return all.get(number);
    }

    List<DeviceBuffer> all() {
      return all;
    }
  }
}
