package io.gpunvme.tools.bench;

import java.util.ArrayList;
import java.util.List;

/** The measurements of queues that make a report: every placement, flavour and number of queues. */
final class QueueCases {
  /** Commands in flight per queue. */
  static final int DEPTH = 1024;

  /** Lanes of a warp. */
  static final int WARP = 32;

  private static final int WARPS_PER_QUEUE = 16;

  /** Warps per queue of lone lanes: as many callers as keep a queue under load. */
  private static final int CROWD_PER_QUEUE = 64;

  /** The responder's warps need room of their own where it runs on the GPU too. */
  private static final int MOST_WARPS_HOST = 1024;

  private static final int MOST_WARPS_VRAM = 960;

  /** About how long one repetition is to take, seconds. */
  private static final double SECONDS = 0.04;

  private static final int[] QUEUES = {1, 4, 16, 32, 64, 128};

  /**
   * Commands per second that an H200 was seen to do with that many queues, in units of 10^6: they
   * size the repetitions, nothing else.
   */
  private static final double[][] SEEN = {
    {13, 50, 181, 339, 543, 645},
    {25, 100, 362, 720, 1430, 2780},
    {10, 36, 112, 222, 281, 261},
    {16, 52, 208, 400, 703, 1265},
  };

  private static final long BILLION = 1_000_000_000L;
  private static final int[] BLOCK_QUEUES = {1, 4, 16};
  private static final int BILLION_QUEUES = 128;
  private static final int LATENCY_COMMANDS = 20_000;
  private static final int[] DIVERGENT_QUEUES = {1, 32};
  private static final int[] DIVERGENT_LANES = {1, 4, 16};
  private static final int[] CROWDED_QUEUES = {1, 16};
  private static final int[] SERVED_QUEUES = {1, 32, 128};

  private QueueCases() {}

  /** All throughput cases. */
  static List<QueueCase> throughput() {
    List<QueueCase> all = new ArrayList<>();
    for (boolean vram : new boolean[] {false, true}) {
      for (int queues : QUEUES) {
        all.add(exclusive(vram, queues));
      }
      for (int queues : BLOCK_QUEUES) {
        all.add(block(vram, queues));
      }
      for (int queues : QUEUES) {
        all.add(shared(vram, queues, "", WARP, Arrival.TOGETHER));
      }
      for (int queues : DIVERGENT_QUEUES) {
        for (int lanes : DIVERGENT_LANES) {
          all.add(shared(vram, queues, ".lanes" + lanes, lanes, Arrival.TOGETHER));
        }
        all.add(shared(vram, queues, ".two-places", WARP, Arrival.TWO_PLACES));
        all.add(shared(vram, queues, ".own-times", WARP, Arrival.OWN_TIMES));
      }
      for (int queues : CROWDED_QUEUES) {
        all.add(crowd(vram, queues));
      }
      for (int queues : SERVED_QUEUES) {
        all.add(served(vram, queues, "", WARP));
        all.add(served(vram, queues, ".lanes1", 1));
      }
    }
    return all;
  }

  private static String prefix(boolean vram) {
    return vram ? "queue.vram." : "queue.host.";
  }

  static QueueCase exclusive(boolean vram, int queues) {
    String id = prefix(vram) + "exclusive.qp" + queues;
    return QueueCase.exclusive(id, vram, queues, DEPTH, total(vram, false, queues));
  }

  static QueueCase block(boolean vram, int queues) {
    String id = prefix(vram) + "block.qp" + queues;
    return QueueCase.block(id, vram, queues, DEPTH, 2 * total(vram, false, queues));
  }

  static QueueCase shared(boolean vram, int queues, String variant, int lanes, Arrival arrival) {
    return shared(vram, queues, variant, lanes, arrival, WARPS_PER_QUEUE);
  }

  /** One lane of each warp calls, and there are many warps. */
  static QueueCase crowd(boolean vram, int queues) {
    return shared(vram, queues, ".lanes1.crowd", 1, Arrival.TOGETHER, CROWD_PER_QUEUE);
  }

  /** The same callers, and a warp that serves for each queue. */
  static QueueCase served(boolean vram, int queues, String variant, int lanes) {
    return shared(
        BenchKernel.SERVED, vram, queues, variant, lanes, Arrival.TOGETHER, WARPS_PER_QUEUE);
  }

  private static QueueCase shared(
      boolean vram, int queues, String variant, int lanes, Arrival arrival, int warpsPerQueue) {
    return shared(BenchKernel.SHARED, vram, queues, variant, lanes, arrival, warpsPerQueue);
  }

  private static QueueCase shared(
      BenchKernel kernel,
      boolean vram,
      int queues,
      String variant,
      int lanes,
      Arrival arrival,
      int warpsPerQueue) {
    int warps = Math.min(queues * warpsPerQueue, vram ? MOST_WARPS_VRAM : MOST_WARPS_HOST);
    // Fewer lanes, and lanes that wait, do less in the same time.
    long total = total(vram, true, queues) * lanes / WARP / (arrival == Arrival.TOGETHER ? 1 : 2);
    String kind = kernel.served() ? "served" : "shared";
    return QueueCase.shared(
        prefix(vram) + kind + ".qp" + queues + variant,
        kernel,
        new QueueShape(vram, true, queues, DEPTH),
        warps,
        lanes,
        arrival,
        total);
  }

  /** Commands that take about {@link #SECONDS}. */
  static long total(boolean vram, boolean shared, int queues) {
    double[] seen = SEEN[(shared ? 2 : 0) + (vram ? 1 : 0)];
    int at = 0;
    while (at < QUEUES.length - 1 && QUEUES[at] < queues) {
      at++;
    }
    return (long) (seen[at] * 1e6 * SECONDS);
  }

  /** So many commands that an ordering error of one in a billion shows. */
  static QueueCase billion() {
    return QueueCase.exclusive(
        "queue.host.exclusive.billion", false, BILLION_QUEUES, DEPTH, BILLION);
  }

  /** One command at a time. */
  static QueueCase latency(boolean vram, BenchKernel kernel) {
    boolean shared = kernel.shared();
    String kind = kernel.served() ? ".served" : shared ? ".shared" : "";
    String id = "queue.qd1" + kind + (vram ? ".vram" : "");
    QueueShape shape = new QueueShape(vram, shared, 1, shared ? WARP : 1);
    return new QueueCase(id, kernel, shape, 1, 1, Arrival.TOGETHER, LATENCY_COMMANDS);
  }
}
