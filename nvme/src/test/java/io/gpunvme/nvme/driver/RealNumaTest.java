package io.gpunvme.nvme.driver;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.ffi.NumaCalls;
import io.gpunvme.ffi.SharedMemory;
import io.gpunvme.nvme.memory.HostMemory;
import io.gpunvme.nvme.pci.NumaHome;
import io.gpunvme.nvme.pci.PciFunction;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.concurrent.FutureTask;
import java.util.function.Predicate;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/**
 * On a machine with two NUMA nodes, 0 and 1, of one processor each, and the SSD on the second. The
 * thread that allocates runs on node 0, so what lies on node 1 was placed there.
 */
@Tag("qemu")
class RealNumaTest {
  private static final long BYTES = 1 << 20;

  @BeforeEach
  void require() {
    RealDevice.require();
  }

  private static BitSet only(int processor) {
    BitSet set = new BitSet();
    set.set(processor);
    return set;
  }

  /** Runs on node 0. */
  private static void onTheFirstNode(Work work) throws Exception {
    FutureTask<Boolean> task =
        new FutureTask<>(
            () -> {
              NumaCalls.setAffinity(only(0));
              work.run();
              return true;
            });
    Thread.ofPlatform().start(task);
    task.get();
  }

  private interface Work {
    void run() throws Exception;
  }

  /** How many of its pages each node has, as the kernel says: {@code N1=256}. */
  private static List<String> nodes(MemorySegment memory) throws IOException {
    String start = "%x ".formatted(memory.address());
    return nodes(line -> line.startsWith(start));
  }

  private static List<String> nodes(Predicate<String> mapping) throws IOException {
    List<String> found = new ArrayList<>();
    for (String line : Files.readAllLines(Path.of("/proc/self/numa_maps"))) {
      if (mapping.test(line)) {
        for (String word : line.split(" ", -1)) {
          if (word.matches("N\\d+=\\d+")) {
            found.add(word);
          }
        }
      }
    }
    return found;
  }

  @Test
  void memoryOfTheSsdIsOnItsNode() throws Exception {
    onTheFirstNode(
        () -> {
          try (PciFunction function = RealDevice.open();
              HostMemory placed = function.allocate(BYTES);
              SharedMemory usual = SharedMemory.allocate("usual", BYTES)) {
            assertThat(function.home())
                .asString()
                .startsWith("NUMA node 1 (of 0000:")
                .doesNotContain("memory");
            assertThat(nodes(placed.segment())).containsExactly("N1=256");
            assertThat(nodes(usual.segment())).containsExactly("N0=256");
            assertThat(NumaCalls.hasUsualMemory()).isTrue();
          }
        });
  }

  @Test
  void queuesAreOnItsNode() throws Exception {
    onTheFirstNode(
        () -> {
          try (NvmeController controller =
                  NvmeController.open(
                      RealDevice.open(), RealDevice.limit(ControllerOptions.builder()).build());
              BlockDevice device =
                  BlockDevice.open(controller, controller.namespaces().getFirst(), 8)) {
            assertThat(device).isNotNull();
            List<String> pages = nodes(line -> line.contains("memfd:gpunvme-dma"));
            assertThat(pages).isNotEmpty().allMatch(word -> word.startsWith("N1="));
          }
        });
  }

  @Test
  void threadsThatServeItAreOnItsNode() throws Exception {
    NumaHome home;
    try (PciFunction function = RealDevice.open()) {
      home = function.home();
    }
    FutureTask<BitSet> seen = new FutureTask<>(NumaCalls::affinity);
    home.threads(Thread.ofPlatform().factory()).newThread(seen).start();
    assertThat(seen.get()).isEqualTo(only(1));
  }
}
