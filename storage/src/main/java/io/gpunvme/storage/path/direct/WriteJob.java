package io.gpunvme.storage.path.direct;

import io.gpunvme.base.Align;
import io.gpunvme.gpu.transfer.Direction;
import io.gpunvme.gpu.transfer.TransferPlan;
import io.gpunvme.nvme.driver.Namespace;
import io.gpunvme.storage.path.Range;
import io.gpunvme.storage.path.direct.DirectPath.Commands;
import io.gpunvme.storage.path.direct.ReadJob.Numbers;
import io.gpunvme.storage.path.direct.StagingPool.Staged;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;

/**
 * Writes of one transfer. Blocks that are written in part are read first; nobody else writes to
 * them meanwhile by the same path.
 */
final class WriteJob {
  private final int block;
  private final Supplier<Staged> staged;
  private final Commands commands;

  WriteJob(Namespace namespace, Supplier<Staged> staged, Commands commands) {
    block = namespace.blockSize();
    this.staged = staged;
    this.commands = commands;
  }

  /** Whether no block is written in part. */
  boolean isWhole(List<Range> ranges) {
    for (Range r : ranges) {
      if (((r.offset() | r.length()) & (block - 1)) != 0) {
        return false;
      }
    }
    return true;
  }

  void run(List<Range> ranges) {
    TransferPlan.Builder whole = commands.plan(Direction.WRITE);
    Numbers buffers = new Numbers();
    List<Range> others = new ArrayList<>();
    for (Range r : ranges) {
      if (r.length() == 0) {
        continue;
      }
      if (commands.isStraight(r)) {
        int buffer = buffers.of(r.buffer());
        whole.add(r.offset() / block, r.length() / block, buffer, r.bufferOffset());
      } else {
        others.add(r);
      }
    }
    commands.run(whole, buffers.all());
    for (Range r : others) {
      write(r);
    }
  }

  private void write(Range r) {
    long end = r.offset() + r.length();
    long at = r.offset();
    while (at < end) {
      commands.call().throwIfCancelled(at, end - at);
      long first = at & -block;
      long n = Math.min(end, first + staged.get().memory().size()) - at;
      write(r, at, n);
      at += n;
    }
  }

  /** Writes a run of bytes whose blocks all fit into the staging memory. */
  private void write(Range r, long at, long n) {
    Staged own = staged.get();
    long first = at & -block;
    long last = Align.down(at + n - 1, block);
    TransferPlan.Builder partly = commands.plan(Direction.READ);
    if (at != first || (last == first && n < block)) {
      partly.add(first / block, 1, 0);
      commands.call().counters().overread(block);
    }
    if (last != first && (at + n) % block != 0) {
      partly.add(last / block, 1, last - first);
      commands.call().counters().overread(block);
    }
    commands.run(partly, List.of(own.memory()));
    own.copies().add(r.buffer(), r.bufferOffset() + (at - r.offset()), own.memory(), at - first, n);
    own.copies().await();
    commands.call().counters().staged(n);
    long blocks = (last - first) / block + 1;
    TransferPlan.Builder all = commands.plan(Direction.WRITE);
    all.add(first / block, blocks, 0);
    commands.run(all, List.of(own.memory()));
  }
}
