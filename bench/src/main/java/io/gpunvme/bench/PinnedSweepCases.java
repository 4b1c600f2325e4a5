package io.gpunvme.bench;

import io.gpunvme.storage.path.pinned.DirectIo;
import io.gpunvme.storage.path.pinned.Engine;
import io.gpunvme.storage.path.pinned.PinnedOptions;
import java.util.ArrayList;
import java.util.List;

/** The settings of the pinned path that are compared. */
final class PinnedSweepCases {
  /**
   * One of them.
   *
   * @param random 4 KiB blocks in random order, else the whole file
   * @param cold nothing of the file in the page cache, else all of it
   */
  record Case(boolean random, boolean cold, PinnedOptions options) {
    String id() {
      return "pinned.%s.%s.%s.chunk%dk.ring%dm.depth%d.threads%d.streams%d"
          .formatted(
              random ? "rand4k" : "seq",
              cold ? "cold" : "warm",
              options.engine() == Engine.URING ? "uring" : "threads",
              options.chunk() >> 10,
              options.ringBytes() >> 20,
              options.depth(),
              options.threads(),
              options.streams());
    }
  }

  private static final long RING = 64L << 20;

  private PinnedSweepCases() {}

  static List<Case> all() {
    List<Case> cases = new ArrayList<>();
    sequentialCold(cases);
    sequentialWarm(cases);
    randomReads(cases);
    return cases;
  }

  private static PinnedOptions of(Engine engine, boolean cold, int chunk, long ring) {
    return PinnedOptions.defaults()
        .withEngine(engine)
        .withDirect(cold ? DirectIo.TRUE : DirectIo.FALSE)
        .withMemory(chunk, ring);
  }

  private static void sequentialCold(List<Case> cases) {
    for (Engine engine : new Engine[] {Engine.URING, Engine.THREADS}) {
      for (int chunk : new int[] {256 << 10, 1 << 20, 2 << 20, 4 << 20}) {
        for (int depth : new int[] {4, 16, 64}) {
          // Some chunks more than are being read, for those that are being copied.
          long ring = Math.max(RING, chunk * (depth + 8L));
          if (ring <= 4 * RING) {
            cases.add(new Case(false, true, of(engine, true, chunk, ring).withDepth(depth)));
          }
        }
      }
    }
  }

  private static void sequentialWarm(List<Case> cases) {
    for (int chunk : new int[] {256 << 10, 512 << 10, 1 << 20, 2 << 20, 4 << 20}) {
      for (int threads : new int[] {4, 8, 12, 16}) {
        cases.add(
            new Case(false, false, of(Engine.THREADS, false, chunk, RING).withThreads(threads)));
      }
    }
    for (int streams : new int[] {1, 2, 8, 12}) {
      PinnedOptions options = of(Engine.THREADS, false, 1 << 20, RING);
      cases.add(new Case(false, false, options.withThreads(12).withStreams(streams)));
    }
    for (long ring : new long[] {RING / 4, RING / 2, 2 * RING}) {
      PinnedOptions options = of(Engine.THREADS, false, 1 << 20, ring);
      cases.add(new Case(false, false, options.withThreads(12)));
    }
    cases.add(new Case(false, false, of(Engine.URING, false, 1 << 20, RING).withThreads(12)));
  }

  private static void randomReads(List<Case> cases) {
    for (Engine engine : new Engine[] {Engine.URING, Engine.THREADS}) {
      for (int depth : new int[] {16, 64, 256}) {
        cases.add(new Case(true, true, of(engine, true, 2 << 20, RING).withDepth(depth)));
      }
    }
    for (int threads : new int[] {1, 4, 8, 12, 16}) {
      cases.add(
          new Case(true, false, of(Engine.THREADS, false, 2 << 20, RING).withThreads(threads)));
    }
    cases.add(new Case(true, false, of(Engine.URING, false, 2 << 20, RING).withThreads(8)));
  }
}
