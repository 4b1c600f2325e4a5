package io.gpunvme.sim;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * The pieces of memory one command moves data to or from, in order. Adjacent pieces are one. Each
 * lies in host memory or in remote memory.
 *
 * <p>Pieces of host memory are valid only while the command executes: the worker's lock keeps the
 * memory mapped. Reused from command to command; grows to the largest transfer seen and, as long as
 * no piece is remote, allocates nothing afterwards.
 */
final class ScatterList {
  private static final int INITIAL = 4;

  private final RemoteChannels channels;
  private DmaRegion[] regions = new DmaRegion[INITIAL];
  private long[] offsets = new long[INITIAL];
  private long[] lengths = new long[INITIAL];
  private int count;
  private long total;
  private boolean anyRemote;

  ScatterList(RemoteChannels channels) {
    this.channels = channels;
  }

  /** How many pieces. */
  int count() {
    return count;
  }

  /** The host memory piece {@code i} lies in; {@link MemorySegment#NULL} if it is remote. */
  MemorySegment segment(int i) {
    return regions[i].memory();
  }

  /** The remote region piece {@code i} lies in; null if it is host memory. */
  @Nullable DmaRegion remote(int i) {
    DmaRegion region = regions[i];
    return region.isRemote() ? region : null;
  }

  /** Whether a piece is remote. */
  boolean anyRemote() {
    return anyRemote;
  }

  /** Where in its memory piece {@code i} starts. */
  long offset(int i) {
    return offsets[i];
  }

  /** Bytes in piece {@code i}, above 0. */
  long length(int i) {
    return lengths[i];
  }

  /** Bytes in all pieces. */
  long total() {
    return total;
  }

  /** Forgets all pieces. */
  void clear() {
    count = 0;
    total = 0;
    anyRemote = false;
  }

  /** Appends a piece of a region, {@code length} above 0. */
  void add(DmaRegion region, long offset, long length) {
    total += length;
    int last = count - 1;
    if (last >= 0 && region == regions[last] && offsets[last] + lengths[last] == offset) {
      lengths[last] += length;
      return;
    }
    if (count == regions.length) {
      regions = Arrays.copyOf(regions, count * 2);
      offsets = Arrays.copyOf(offsets, count * 2);
      lengths = Arrays.copyOf(lengths, count * 2);
    }
    if (regions[count] != region) {
      regions[count] = region;
    }
    anyRemote |= region.isRemote();
    offsets[count] = offset;
    lengths[count] = length;
    count++;
  }

  /**
   * Copies the first {@code bytes} from {@code source} to the host's memory, remote memory
   * included.
   *
   * @throws RemoteFailure if remote memory cannot be reached
   */
  void copyOut(MemorySegment source, long sourceOffset, long bytes) {
    long done = 0;
    for (int i = 0; done < bytes; i++) {
      long n = Math.min(lengths[i], bytes - done);
      DmaRegion region = regions[i];
      if (region.isRemote()) {
        channels.of(region).write(offsets[i], source.asSlice(sourceOffset + done, n));
      } else {
        MemorySegment.copy(source, sourceOffset + done, region.memory(), offsets[i], n);
      }
      done += n;
    }
  }

  /**
   * Copies the first {@code bytes} of the host's memory, remote memory included, to {@code target}.
   *
   * @throws RemoteFailure if remote memory cannot be reached
   */
  void copyIn(MemorySegment target, long targetOffset, long bytes) {
    long done = 0;
    for (int i = 0; done < bytes; i++) {
      long n = Math.min(lengths[i], bytes - done);
      copyIn(i, 0, target, targetOffset + done, n);
      done += n;
    }
  }

  /**
   * Copies {@code bytes} of piece {@code i}, from {@code skip} on, to {@code target}.
   *
   * @throws RemoteFailure if remote memory cannot be reached
   */
  void copyIn(int i, long skip, MemorySegment target, long targetOffset, long bytes) {
    DmaRegion region = regions[i];
    if (region.isRemote()) {
      channels.of(region).read(offsets[i] + skip, target.asSlice(targetOffset, bytes));
    } else {
      MemorySegment.copy(region.memory(), offsets[i] + skip, target, targetOffset, bytes);
    }
  }

  /**
   * Flips a bit of the memory, 0 ≤ bit &lt; 8 × {@link #total}.
   *
   * @throws RemoteFailure if remote memory cannot be reached
   */
  void flip(long bit, MemorySegment scratch) {
    long at = bit / Byte.SIZE;
    int i = 0;
    while (at >= lengths[i]) {
      at -= lengths[i];
      i++;
    }
    int mask = 1 << (int) (bit % Byte.SIZE);
    DmaRegion region = regions[i];
    if (!region.isRemote()) {
      flip(region.memory(), offsets[i] + at, mask);
    } else {
      RemoteChannel channel = channels.of(region);
      MemorySegment one = scratch.asSlice(0, 1);
      channel.read(offsets[i] + at, one);
      flip(one, 0, mask);
      channel.write(offsets[i] + at, one);
    }
  }

  private static void flip(MemorySegment memory, long at, int mask) {
    byte old = memory.get(ValueLayout.JAVA_BYTE, at);
    memory.set(ValueLayout.JAVA_BYTE, at, (byte) (old ^ mask));
  }
}
