package io.gpunvme.storage.fs.fat;

import io.gpunvme.storage.fs.BlockReader;
import io.gpunvme.storage.fs.FileExtent;
import io.gpunvme.storage.fs.FileSystemException;
import io.gpunvme.storage.fs.FileSystemException.Kind;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;

/**
 * The file allocation table: for each cluster the one that follows it (specification: "FAT Data
 * Structure"). The upper four bits of an entry are reserved. Safe for all threads.
 */
final class AllocationTable {
  private static final int ENTRY_BYTES = 4;
  private static final int PAGE_ENTRIES = 1024;
  private static final int MASK = 0x0FFFFFFF;
  private static final int BAD = 0x0FFFFFF7;
  private static final int FIRST_END = 0x0FFFFFF8;
  private static final int STATE = 1;
  private static final int CLEAN = 0x08000000;
  private static final int NO_ERRORS = 0x04000000;

  private final BlockReader reader;
  private final BootSector boot;

  AllocationTable(BlockReader reader, BootSector boot) {
    this.reader = reader;
    this.boot = boot;
  }

  /**
   * A chain.
   *
   * @param extents where it lies, as far as its places were wanted
   * @param clusters all in it
   */
  record Chain(List<FileExtent> extents, long clusters) {}

  /**
   * Follows a chain to its end.
   *
   * @param first its first cluster
   * @param bytes whose places are wanted; the last extent may be cut
   * @param least clusters that there must be
   * @param most clusters that there may be
   * @param where whose chain it is, for messages
   * @throws FileSystemException if it ends early, leads nowhere or comes back to itself
   */
  Chain chain(int first, long bytes, long least, long most, String where) {
    List<FileExtent> extents = new ArrayList<>();
    Walk walk = new Walk();
    long count = 0;
    long runStart = 0;
    long runFirst = first;
    // Brent's search for loops: a mark that moves to where the walk is after 1, 2, 4… steps.
    int mark = first;
    long steps = 0;
    long until = 1;
    int cluster = requireCluster(first, where, "it begins with");
    while (true) {
      if (cluster - runFirst != count - runStart) {
        add(extents, runStart, count, runFirst, bytes);
        runStart = count;
        runFirst = cluster;
      }
      count++;
      if (count > most) {
        throw corrupt(where, "its chain has more than the " + most + " clusters that are possible");
      }
      int next = walk.next(cluster);
      if (next >= FIRST_END) {
        break;
      }
      if (next == mark) {
        throw corrupt(where, "its chain comes back to cluster " + mark);
      }
      if (++steps == until) {
        mark = next;
        steps = 0;
        until <<= 1;
      }
      cluster = requireCluster(next, where, "cluster " + cluster + " is followed by");
    }
    add(extents, runStart, count, runFirst, bytes);
    if (count < least) {
      throw corrupt(
          where, "its chain has %d clusters, but its size needs %d".formatted(count, least));
    }
    return new Chain(extents, count);
  }

  /** Adds clusters {@code from..to} of a chain, which lie in a row, unless nobody wants them. */
  private void add(List<FileExtent> extents, long from, long to, long firstCluster, long bytes) {
    long start = from * boot.clusterBytes();
    long end = Math.min(to * boot.clusterBytes(), bytes);
    if (end > start) {
      extents.add(new FileExtent(start, end - start, boot.offset((int) firstCluster)));
    }
  }

  private int requireCluster(int cluster, String where, String how) {
    if (boot.has(cluster)) {
      return cluster;
    }
    String what =
        switch (cluster) {
          case 0 -> "none: the entry is free";
          case BAD -> "a bad cluster";
          default ->
              "cluster %d, which is outside 2..%d"
                  .formatted(cluster, (long) boot.clusters() + BootSector.FIRST_CLUSTER - 1);
        };
    throw corrupt(where, how + " " + what);
  }

  private static FileSystemException corrupt(String where, String what) {
    return new FileSystemException(Kind.CORRUPT, where, what + "; fsck.fat may repair it");
  }

  /** What the volume's second entry says of how it was left. */
  String state() {
    int entry = new Walk().entry(STATE);
    if ((entry & NO_ERRORS) == 0) {
      return "had I/O errors";
    }
    return (entry & CLEAN) == 0 ? "not unmounted" : "clean";
  }

  /** Reads entries, mostly in order: keeps one page of them. */
  private final class Walk {
    private final byte[] bytes = new byte[PAGE_ENTRIES * ENTRY_BYTES];
    private final ByteBuffer page = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
    private int loaded = -1;

    int next(int cluster) {
      return entry(cluster) & MASK;
    }

    int entry(int cluster) {
      int wanted = cluster / PAGE_ENTRIES;
      if (wanted != loaded) {
        long first = (long) wanted * PAGE_ENTRIES;
        long entries =
            Math.min(PAGE_ENTRIES, (long) boot.clusters() + BootSector.FIRST_CLUSTER - first);
        loaded = -1;
        reader.read(
            boot.tableOffset() + first * ENTRY_BYTES,
            MemorySegment.ofArray(bytes).asSlice(0, entries * ENTRY_BYTES));
        loaded = wanted;
      }
      return page.getInt(cluster % PAGE_ENTRIES * ENTRY_BYTES);
    }
  }
}
