package io.gpunvme.storage.path.pinned;

import io.gpunvme.gpu.transfer.Direction;
import io.gpunvme.storage.path.Range;
import io.gpunvme.storage.path.file.SourceFile;
import java.util.List;

/**
 * Cuts a transfer into what goes past the page cache and what goes through it.
 *
 * <p>Reads with {@link DirectIo#AUTO}: of a range of at least a load the kernel is asked whether
 * the page cache holds it, at up to eight places of 32 loads that follow each other. Where the
 * answers differ, each load is asked for by itself, at up to four places. Shorter ranges all go the
 * way that most of 256 of them should.
 */
final class Cutter {
  /** What is cut: past the page cache, and through it. */
  record Cut(IoList direct, IoList cached) {}

  /** Blocks of file systems: writes past the page cache are whole ones. */
  private static final int BLOCK = 4096;

  /** A shorter write goes through the page cache. */
  private static final int LEAST_DIRECT_WRITE = 64 << 10;

  private static final int LOAD_IOS = 1024;
  private static final int LEAST_LOAD_IOS = 8;

  /** Every thread should find a few loads. */
  private static final int LOADS_PER_LANE = 3;

  private static final int SHORT_PROBES = 256;
  private static final int LONG_PROBES = 4096;
  private static final int PIECE_PROBES = 4;

  /**
   * Loads that are looked at together. Nobody reads while the kernel is asked: one question for
   * each load of 2 MiB took 9 % of the time in which two GPUs read a model from the page cache.
   */
  private static final int GROUP = 32;

  private static final int GROUP_PROBES = 8;

  private final SourceFile file;
  private final DirectIo mode;
  private final List<Range> ranges;
  private final long bytes;
  private final LoadFiller direct;
  private final LoadFiller cached;
  private final int loadBytes;

  Cutter(SourceFile file, PinnedOptions options, Direction direction, List<Range> ranges) {
    this.file = file;
    this.ranges = ranges;
    mode = file.hasDirect() ? options.direct() : DirectIo.FALSE;
    bytes = ranges.stream().mapToLong(Range::length).sum();
    long loads = (long) LOADS_PER_LANE * options.threads();
    int share = (int) Math.min(options.chunk(), Math.ceilDiv(bytes, loads));
    loadBytes = Math.max(Integer.highestOneBit(Math.max(1, share)), PinnedOptions.LEAST_CHUNK);
    int loadIos = Math.clamp(ranges.size() / loads, LEAST_LOAD_IOS, LOAD_IOS);
    int blocks = direction == Direction.WRITE ? BLOCK : 1;
    direct =
        new LoadFiller(
            loadBytes,
            LOAD_IOS,
            Math.max(blocks, file.directAlignment()),
            file.directMemoryAlignment());
    cached = new LoadFiller(loadBytes, loadIos, 1, 1);
  }

  /** Bytes of all ranges. */
  long bytes() {
    return bytes;
  }

  /** Bytes of the longest I/O. */
  int loadBytes() {
    return loadBytes;
  }

  /** Cuts a read. */
  Cut reads() {
    boolean shortPast = mode == DirectIo.TRUE || (mode == DirectIo.AUTO && !shortAreResident());
    long pieces = Math.max(1, bytes / loadBytes);
    int probes = Math.clamp(LONG_PROBES / pieces, 1, PIECE_PROBES);
    for (int i = 0; i < ranges.size(); i++) {
      Range range = ranges.get(i);
      if (range.length() < loadBytes || mode != DirectIo.AUTO) {
        add(shortPast ? direct : cached, i, range, 0, range.length());
      } else {
        readLong(i, range, probes);
      }
    }
    return new Cut(direct.finish(), cached.finish());
  }

  private void readLong(int index, Range range, int probes) {
    Run run = new Run(index, range);
    for (long at = 0; at < range.length(); ) {
      long end = end(range, at, (long) GROUP * loadBytes);
      int asked = (int) Math.min(GROUP_PROBES, (end - at) / loadBytes * PIECE_PROBES);
      int there = resident(range, at, end, asked);
      if (asked > PIECE_PROBES && (there == 0 || there == asked)) {
        run.go(at, there == 0);
      } else {
        for (long piece = at; piece < end; ) {
          long next = end(range, piece, loadBytes);
          run.go(piece, 2 * resident(range, piece, next, probes) <= probes);
          piece = next;
        }
      }
      at = end;
    }
    run.end();
  }

  /**
   * Where a piece of the range ends that begins here: at a multiple of so many bytes of the file.
   */
  private static long end(Range range, long at, long unit) {
    long end = range.offset() + at + unit;
    return Math.min(range.length(), end - end % unit - range.offset());
  }

  /** At how many of so many places the page cache holds this part of the range. */
  private int resident(Range range, long from, long to, int probes) {
    int resident = 0;
    for (int i = 0; i < probes; i++) {
      long at = from + (to - from) * (2L * i + 1) / (2L * probes);
      resident += file.isResident(range.offset() + at) ? 1 : 0;
    }
    return resident;
  }

  /** Pieces of a range that follow each other and go the same way are added as one. */
  private final class Run {
    private final int index;
    private final Range range;
    private long from;
    private boolean past;

    Run(int index, Range range) {
      this.index = index;
      this.range = range;
    }

    /** From here on it goes this way. */
    void go(long at, boolean goesPast) {
      if (goesPast != past) {
        addUntil(at);
        past = goesPast;
      }
    }

    void end() {
      addUntil(range.length());
    }

    private void addUntil(long at) {
      if (at > from) {
        add(past ? direct : cached, index, range, from, at - from);
        from = at;
      }
    }
  }

  private boolean shortAreResident() {
    int step = Math.max(1, ranges.size() / SHORT_PROBES);
    int asked = 0;
    int resident = 0;
    for (int i = 0; i < ranges.size(); i += step) {
      Range range = ranges.get(i);
      if (range.length() > 0 && range.length() < loadBytes) {
        asked++;
        resident += file.isResident(range.offset() + range.length() / 2) ? 1 : 0;
      }
    }
    return 2 * resident > asked;
  }

  /** Cuts a write: whole blocks past the page cache if there are many, edges through it. */
  Cut writes() {
    int block = Math.max(BLOCK, file.directAlignment());
    long least = mode == DirectIo.TRUE ? block : Math.max(block, LEAST_DIRECT_WRITE);
    for (int i = 0; i < ranges.size(); i++) {
      Range range = ranges.get(i);
      long first = (range.offset() + block - 1) / block * block - range.offset();
      long last = (range.offset() + range.length()) / block * block - range.offset();
      if (mode == DirectIo.FALSE || last - first < least) {
        add(cached, i, range, 0, range.length());
      } else {
        add(cached, i, range, 0, first);
        add(direct, i, range, first, last - first);
        add(cached, i, range, last, range.length() - last);
      }
    }
    return new Cut(direct.finish(), cached.finish());
  }

  private static void add(LoadFiller filler, int index, Range range, long at, long bytes) {
    if (range.buffer().isHost()) {
      long address = range.buffer().segment().address() + range.bufferOffset() + at;
      filler.straight(index, range, at, bytes, address);
    } else {
      filler.stage(index, range, at, bytes);
    }
  }
}
