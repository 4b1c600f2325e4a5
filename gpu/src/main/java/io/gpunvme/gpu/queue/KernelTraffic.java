package io.gpunvme.gpu.queue;

import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.nvme.driver.QueueTraffic;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * Tells those who watch what kernels do with the shared queues of one SSD. Only a thread that waits
 * for a kernel looks at the kernel's counters, by one copy now and then: nobody else may use the
 * accelerator for that. Safe for all threads.
 */
final class KernelTraffic {
  private static final System.Logger LOG = System.getLogger("io.gpunvme.gpu.queue");
  private static final long EVERY_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

  private final DeviceQueues queues;
  private final List<QueueTraffic> traffic = new ArrayList<>();

  // Of each queue; guarded by this.
  private final List<QueueCounters> seen;
  private final long[] lost;

  private long looked = System.nanoTime();

  KernelTraffic(NvmeController controller, DeviceQueues queues) {
    this.queues = queues;
    for (DeviceQueue queue : queues.queues()) {
      traffic.add(controller.traffic().ofKernels(List.of(queue.pair()), QueueTraffic.Kind.KERNELS));
    }
    seen = new ArrayList<>(Collections.nCopies(traffic.size(), QueueCounters.NONE));
    lost = new long[traffic.size()];
  }

  /** Looks if the last look was a while ago. */
  synchronized void lookNowAndThen(long nowNanos) {
    if (nowNanos - looked >= EVERY_NANOS) {
      look();
    }
  }

  synchronized void look() {
    looked = System.nanoTime();
    List<QueueCounters> now;
    try {
      now = queues.countersOfEach();
    } catch (RuntimeException e) {
      // Whoever needs the accelerator for their work meets the same, and is told.
      LOG.log(System.Logger.Level.DEBUG, "the counters of queues for kernels", e);
      return;
    }
    for (int i = 0; i < traffic.size(); i++) {
      QueueCounters news = now.get(i).minus(seen.get(i));
      long outstanding = Math.clamp(open(now.get(i)) - lost[i], 0, queues.depth());
      traffic.get(i).submitted(news.submitted(), outstanding);
      traffic.get(i).ended(news.completed() + news.late() + news.recovered(), outstanding);
      seen.set(i, now.get(i));
    }
  }

  private static long open(QueueCounters counters) {
    return counters.submitted() - counters.completed() - counters.late() - counters.recovered();
  }

  /** The queues were recovered: what had been outstanding is over, and nobody counted it. */
  synchronized void recovered() {
    look();
    for (int i = 0; i < lost.length; i++) {
      lost[i] = open(seen.get(i));
    }
    look();
  }

  /** The queue pairs are gone. */
  void close() {
    traffic.forEach(QueueTraffic::close);
  }
}
