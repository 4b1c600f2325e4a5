package io.gpunvme.tools.ssd;

import io.gpunvme.storage.BlockRun;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * Equal pieces of SSDs' blocks, by number: those of the first run, of the second, and so on. Each
 * begins at a multiple of its length, as an SSD's own pages do. Immutable.
 */
public final class Places {
  private final int blocks;
  private final List<BlockRun> runs = new ArrayList<>();
  private final long[] slba;
  private final long[] ends;

  /**
   * Cuts runs.
   *
   * @param all what is left over at either end of one is not used
   * @param blocks logical blocks in a place
   */
  public Places(List<BlockRun> all, int blocks) {
    this.blocks = blocks;
    slba = new long[all.size()];
    ends = new long[all.size()];
    long count = 0;
    for (BlockRun run : all) {
      long first = Math.ceilDiv(run.slba(), blocks) * blocks;
      long places = Math.max(0, run.slba() + run.blocks() - first) / blocks;
      if (places > 0) {
        count += places;
        slba[runs.size()] = first;
        ends[runs.size()] = count;
        runs.add(run);
      }
    }
  }

  /** How many there are. */
  public long count() {
    return runs.isEmpty() ? 0 : ends[runs.size() - 1];
  }

  /** Logical blocks in each. */
  public int blocks() {
    return blocks;
  }

  /** The runs in which there are places. */
  public List<BlockRun> runs() {
    return runs;
  }

  /** The number of the first place after those of a run. */
  public long end(int run) {
    return ends[run];
  }

  /** The first block of the first place in a run. */
  public long first(int run) {
    return slba[run];
  }

  /** The run in which a place is. */
  public int run(long place) {
    int found = Arrays.binarySearch(ends, 0, runs.size(), place + 1);
    return found < 0 ? -found - 1 : found;
  }

  /** The first block of a place. */
  public long slba(long place) {
    int run = run(place);
    return slba[run] + (place - (run == 0 ? 0 : ends[run - 1])) * blocks;
  }
}
