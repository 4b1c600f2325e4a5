package io.gpunvme.gpu.queue;

import io.gpunvme.base.CloseAll;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.queue.DeviceLayout.FrameSet;
import io.gpunvme.gpu.queue.DeviceLayout.Tier;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;

/**
 * Pinned host memory for pages that left a {@link PageCache} and are missed often, as {@code
 * tier.cuh} has it. Kernels alone copy to it and from it.
 */
final class HostTier {
  /** Misses in an age, for each word of counters: 8 to 16 for each frame. */
  private static final int AGE = 4;

  /**
   * Pages are counted together with others, so that one more seems to be nothing. Simulated with
   * skewed and with scanned pages: half of the copies to the tier of a margin of 1, and more hits.
   */
  private static final int MARGIN = 2;

  private final DeviceBuffer pages;
  private final DeviceBuffer state;

  private HostTier(DeviceBuffer pages, DeviceBuffer state) {
    this.pages = pages;
    this.state = state;
  }

  /**
   * Allocates it.
   *
   * @param bytes of pages; rounded down to sets of 16
   * @param pageBytes of a page
   */
  static HostTier create(Accelerator accelerator, long bytes, int pageBytes) {
    int sets = (int) (bytes / pageBytes / DeviceLayout.Cache.WAYS);
    long frames = (long) sets * DeviceLayout.Cache.WAYS;
    long words = Long.highestOneBit(4 * frames - 1);
    DeviceBuffer pages = accelerator.allocatePinned(frames * pageBytes);
    try {
      // Cleared: every frame is free, and nothing was missed yet.
      long handsAt = Tier.SIZE + sets * FrameSet.SIZE + words * Long.BYTES;
      DeviceBuffer state = accelerator.allocate(handsAt + (long) sets * Integer.BYTES);
      try (Arena arena = Arena.ofConfined()) {
        MemorySegment all = arena.allocate(Tier.SIZE, Long.BYTES);
        long address = state.deviceAddress();
        DeviceLayout.setLong(all, Tier.SETS, address + Tier.SIZE);
        DeviceLayout.setLong(all, Tier.HANDS, address + handsAt);
        DeviceLayout.setLong(all, Tier.USES, address + Tier.SIZE + sets * FrameSet.SIZE);
        DeviceLayout.setLong(all, Tier.MEMORY, pages.deviceAddress());
        DeviceLayout.setInt(all, Tier.SET_COUNT, sets);
        DeviceLayout.setInt(all, Tier.USE_MASK, (int) (words - 1));
        DeviceLayout.setInt(all, Tier.AGE_SHIFT, Long.numberOfTrailingZeros(words * AGE));
        DeviceLayout.setInt(all, Tier.PAGE_SHIFT, Integer.numberOfTrailingZeros(pageBytes));
        DeviceLayout.setInt(all, Tier.MARGIN, MARGIN);
        state.copyFromHost(all, 0);
        return new HostTier(pages, state);
      } catch (RuntimeException | Error e) {
        CloseAll.after(e, state::close);
        throw e;
      }
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, pages::close);
      throw e;
    }
  }

  /** The {@code gpunvme::HostTier}. */
  long deviceAddress() {
    return state.deviceAddress();
  }

  /** Of pages that it holds. */
  long bytes() {
    return pages.size();
  }

  /** Of GPU memory. */
  long metadataBytes() {
    return state.size();
  }

  /** The {@code gpunvme::HostTier} as it is now. */
  void copyToHost(MemorySegment all) {
    state.copyToHost(0, all);
  }

  void free() {
    CloseAll.each(List.of(state, pages), DeviceBuffer::close);
  }
}
