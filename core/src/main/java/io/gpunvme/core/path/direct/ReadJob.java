package io.gpunvme.core.path.direct;

import io.gpunvme.core.accel.DeviceBuffer;
import io.gpunvme.core.gpu.Placement;
import io.gpunvme.core.path.Range;
import io.gpunvme.core.path.direct.DirectPath.Commands;
import io.gpunvme.core.path.direct.DirectPath.Staged;
import io.gpunvme.core.plan.Plan;
import io.gpunvme.core.plan.PlanOptions;
import io.gpunvme.core.plan.Planner;
import io.gpunvme.core.plan.Ranges;
import io.gpunvme.core.transfer.Direction;
import io.gpunvme.core.transfer.TransferPlan;
import io.gpunvme.nvme.driver.Namespace;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** Reads of one transfer: those of whole blocks as they are, the others as the planner says. */
final class ReadJob {
  /** Data pointers name bytes at multiples of this (Base 2.0, 4.1.1). */
  static final int POINTER_ALIGNMENT = 4;

  private static final long LONGEST_STAGED = 1 << 20;

  private final Namespace namespace;
  private final int block;
  private final int shift;
  private final Placement placement;
  private final Supplier<Staged> staged;
  private final Commands commands;

  private final Map<DeviceBuffer, Integer> numbers = new HashMap<>();
  private final List<DeviceBuffer> buffers = new ArrayList<>();
  private final List<TransferPlan.Builder> plans = new ArrayList<>();
  private @Nullable DeviceBuffer lastBuffer;
  private int lastNumber;

  ReadJob(Namespace namespace, Placement placement, Supplier<Staged> staged, Commands commands) {
    this.namespace = namespace;
    block = namespace.blockSize();
    shift = Integer.numberOfTrailingZeros(block);
    this.placement = placement;
    this.staged = staged;
    this.commands = commands;
  }

  void run(List<Range> ranges) {
    Ranges.Builder others = Ranges.builder();
    int count = 0;
    for (Range r : ranges) {
      if (r.length() == 0) {
        continue;
      }
      int number = number(r.buffer());
      if (isWhole(r) && isReached(r.buffer())) {
        plans.get(number).add(r.offset() >> shift, r.length() >> shift, r.bufferOffset());
      } else {
        others.add(r.offset(), r.length(), number, r.bufferOffset());
        count++;
      }
    }
    Plan plan = count == 0 ? null : plan(others.build());
    if (plan != null) {
      addDirect(plan);
    }
    for (int i = 0; i < buffers.size(); i++) {
      commands.run(plans.get(i), buffers.get(i));
    }
    if (plan != null) {
      readStaged(plan);
    }
  }

  private int number(DeviceBuffer buffer) {
    // Most ranges go where the one before went.
    if (buffer == lastBuffer) {
      return lastNumber;
    }
    lastBuffer = buffer;
    lastNumber = newNumber(buffer);
    return lastNumber;
  }

  private int newNumber(DeviceBuffer buffer) {
    return numbers.computeIfAbsent(
        buffer,
        b -> {
          buffers.add(b);
          plans.add(commands.plan(Direction.READ));
          return buffers.size() - 1;
        });
  }

  private boolean isWhole(Range r) {
    return ((r.offset() | r.length()) & (block - 1)) == 0
        && r.bufferOffset() % POINTER_ALIGNMENT == 0;
  }

  /** Whether commands can name the buffer: it is in the kind of memory that the placement says. */
  private boolean isReached(DeviceBuffer buffer) {
    return buffer.isHost() == placement.hostData();
  }

  private Plan plan(Ranges ranges) {
    Plan plan =
        Planner.plan(
            ranges,
            PlanOptions.of(namespace.bytes())
                .alignment(block)
                .targetAlignment(POINTER_ALIGNMENT)
                .maxBytes(Math.max(block, LONGEST_STAGED))
                .gap(block)
                .build());
    commands.call().counters().overread(plan.bytesOverread());
    return plan;
  }

  private boolean isDirect(Plan plan, int io) {
    return plan.isDirect(io) && isReached(buffers.get(plan.target(plan.firstPiece(io))));
  }

  private void addDirect(Plan plan) {
    for (int io = 0; io < plan.ios(); io++) {
      if (isDirect(plan, io)) {
        int piece = plan.firstPiece(io);
        plans
            .get(plan.target(piece))
            .add(plan.offset(io) >> shift, plan.length(io) >> shift, plan.targetOffset(piece));
      }
    }
  }

  private void readStaged(Plan plan) {
    int io = 0;
    while (io < plan.ios()) {
      io = round(plan, io);
    }
  }

  /** Reads as many I/Os as fit into the staging memory; returns the next one. */
  private int round(Plan plan, int from) {
    TransferPlan.Builder reads = commands.plan(Direction.READ);
    List<Integer> ios = new ArrayList<>();
    long used = 0;
    int io = from;
    for (; io < plan.ios(); io++) {
      if (isDirect(plan, io)) {
        continue;
      }
      if (used + plan.length(io) > staged.get().memory().size()) {
        break;
      }
      reads.add(plan.offset(io) >> shift, plan.length(io) >> shift, used);
      ios.add(io);
      used += plan.length(io);
    }
    if (reads.isEmpty()) {
      return io;
    }
    commands.call().throwIfCancelled(plan.offset(ios.getFirst()), used);
    commands.run(reads, staged.get().memory());
    long at = 0;
    for (int next : ios) {
      copyOut(plan, next, at);
      at += plan.length(next);
    }
    staged.get().copies().await();
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
}
