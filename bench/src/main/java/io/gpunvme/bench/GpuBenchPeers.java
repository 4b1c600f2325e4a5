package io.gpunvme.bench;

import io.gpunvme.tools.bench.Measurement;
import java.util.Optional;

/**
 * What others have published for the nearest thing, in the unit of our result. Their numbers come
 * from real SSDs, which bound them; ours from an embedded controller, so they tell what an
 * initiator can do, not what an SSD does.
 *
 * @param name who, on what
 * @param value in the unit of the result beside it
 */
record GpuBenchPeers(String name, double value) {
  private static final GpuBenchPeers XNVME_512 =
      new GpuBenchPeers("xNVMe, H100, 16 Gen5 SSDs, 512 B random reads", 61.5e6);

  /** 44.5 GB/s of 4096-byte blocks. */
  private static final GpuBenchPeers XNVME_4K =
      new GpuBenchPeers("xNVMe, H100, 16 Gen5 SSDs, 4 KiB random reads", 10.9e6);

  private static final GpuBenchPeers TUTTI =
      new GpuBenchPeers("Tutti, 4 SSDs, 512 KiB reads", 25.0);

  /** A result beside its peer, if there is one. */
  static Measurement beside(Measurement m) {
    return of(m.id()).map(peer -> m.besides(peer.name(), peer.value())).orElse(m);
  }

  private static Optional<GpuBenchPeers> of(String id) {
    if (id.startsWith("random.4k.")) {
      return Optional.of(XNVME_4K);
    }
    if (id.startsWith("stream.")) {
      return Optional.of(TUTTI);
    }
    boolean rate = id.startsWith("queue.host.") || id.startsWith("queue.vram.");
    return rate || id.startsWith("random.512.") ? Optional.of(XNVME_512) : Optional.empty();
  }
}
