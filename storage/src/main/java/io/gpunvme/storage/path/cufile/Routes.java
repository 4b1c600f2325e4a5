package io.gpunvme.storage.path.cufile;

import io.gpunvme.cuda.CudaException;
import io.gpunvme.cuda.cufile.CuFile;
import io.gpunvme.cuda.cufile.CuFileException;
import io.gpunvme.cuda.cufile.CuFileStatistics;

/**
 * Which way the bytes took, from cuFile's statistics since this was made. They are the process's:
 * other users of cuFile in it count too.
 */
final class Routes {
  private static final int LEVEL = 3;

  private final CuFile library;
  private final boolean counting;
  private final Counts before;

  /** The driver is open. */
  Routes(CuFile library, int level) {
    this.library = library;
    if (level > 0 && library.hasStatistics() && library.statisticsLevel() < level) {
      library.startStatistics(level);
    }
    counting = library.hasStatistics() && library.statisticsLevel() >= LEVEL;
    before = counting ? count() : Counts.NONE;
  }

  private record Counts(long posix, long p2p, long nvfs) {
    static final Counts NONE = new Counts(0, 0, 0);
  }

  private Counts count() {
    CuFileStatistics all = library.statistics(LEVEL);
    CuFileStatistics.Routes single = all.allRoutes();
    CuFileStatistics.Batches batches = all.batches();
    return new Counts(
        single.posix() + batches.posixEnqueued(),
        single.p2p() + batches.byP2p(),
        single.nvfs() + batches.byNvfs());
  }

  /** In words, for people. */
  String text() {
    if (!library.hasStatistics()) {
      return "directly or in compatibility mode: only cuFile 1.15 and newer report it";
    }
    if (!counting) {
      return "directly or in compatibility mode: its statistics are below level 3";
    }
    try {
      Counts now = count();
      return text(now.posix - before.posix, now.p2p - before.p2p, now.nvfs - before.nvfs);
    } catch (CuFileException | CudaException e) {
      return "its statistics cannot be read: " + e.getMessage();
    }
  }

  private static String text(long posix, long p2p, long nvfs) {
    String counts =
        " (%d POSIX transfers, %d peer-to-peer, %d by nvidia-fs)".formatted(posix, p2p, nvfs);
    if (posix > 0) {
      return (p2p + nvfs > 0 ? "partly in compatibility mode" : "compatibility mode") + counts;
    }
    return p2p + nvfs > 0 ? "direct" + counts : "nothing transferred yet";
  }
}
