package io.gpunvme.sim;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.nvme.memory.DmaBuffer;
import io.gpunvme.nvme.spec.IoOpcode;
import io.gpunvme.nvme.spec.Sqe;
import io.gpunvme.sim.media.RamMedia;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A namespace's memory in the hands of somebody who pins it. */
class MediaMemoryTest {
  private static final long SIZE = 1 << 20;
  private static final int PAGE = 4096;
  private static final int DEAC = 1 << 25;

  @TempDir Path folder;

  @Test
  void onlyNamespacesInMemoryHaveMemory() {
    SimConfig config =
        SimConfig.builder()
            .workers(0)
            .latencyNanos(0)
            .namespace(NamespaceConfig.ram(SIZE, 512))
            .namespace(NamespaceConfig.file(folder.resolve("disk"), SIZE, 512))
            .namespace(NamespaceConfig.discarding(SIZE, 512))
            .maxNamespaces(5)
            .build();
    try (RawHost host = RawHost.start(config)) {
      MemorySegment memory = host.controller.mediaMemory(1).orElseThrow();
      assertThat(memory.byteSize()).isEqualTo(SIZE);
      assertThat(memory.address() % 4096).isZero();
      for (int nsid : new int[] {0, 2, 3, 4, 6, -1}) {
        assertThat(host.controller.mediaMemory(nsid)).as("namespace " + nsid).isEmpty();
      }
      RawQueue q = host.createQueue(1, 8, 8);
      DmaBuffer data = host.buffer(4096);
      data.memory().fill((byte) 3);
      host.execute(q, RawHost.io(IoOpcode.WRITE, 1, 8, 8, data.busAddress(0), 0));
      assertThat(memory.get(ValueLayout.JAVA_BYTE, 8191)).isEqualTo((byte) 3);
      memory.set(ValueLayout.JAVA_BYTE, 4096, (byte) 4);
      host.execute(q, RawHost.io(IoOpcode.READ, 1, 8, 8, data.busAddress(0), 0));
      assertThat(data.memory().get(ValueLayout.JAVA_BYTE, 0)).isEqualTo((byte) 4);
    }
  }

  @Test
  void pagesThatMayBePinnedAreZeroedWhenDeallocated() throws IOException {
    SimConfig config =
        SimConfig.builder()
            .workers(0)
            .latencyNanos(0)
            .namespace(NamespaceConfig.ram(SIZE, 512))
            .build();
    try (RawHost host = RawHost.start(config)) {
      RawQueue q = host.createQueue(1, 8, 8);
      MemorySegment memory = host.controller.mediaMemory(1).orElseThrow();
      memory.fill((byte) 3);
      MemorySegment deallocate = RawHost.io(IoOpcode.WRITE_ZEROES, 1, 0, 2048, 0, 0);
      Sqe.cdw12(deallocate, 0, 2047 | DEAC);
      assertThat(host.execute(q, deallocate).status()).isZero();
      assertThat(residentBytes(memory)).isEqualTo(SIZE);
      assertThat(memory.mismatch(MemorySegment.ofArray(new byte[(int) SIZE]))).isEqualTo(-1);
    }
  }

  @Test
  void otherwiseTheyAreGivenBack() throws IOException {
    try (RamMedia media = new RamMedia(SIZE)) {
      MemorySegment memory = media.view(0, SIZE);
      memory.fill((byte) 3);
      assertThat(residentBytes(memory)).isEqualTo(SIZE);
      media.trim(0, SIZE);
      assertThat(residentBytes(memory)).isZero();
    }
  }

  /** How much of it is in memory: bit 63 of each page's word in {@code /proc/self/pagemap}. */
  private static long residentBytes(MemorySegment memory) throws IOException {
    long resident = 0;
    try (RandomAccessFile map = new RandomAccessFile("/proc/self/pagemap", "r")) {
      map.seek(memory.address() / PAGE * Long.BYTES);
      for (long at = 0; at < memory.byteSize(); at += PAGE) {
        resident += Long.reverseBytes(map.readLong()) < 0 ? PAGE : 0;
      }
    }
    return resident;
  }
}
