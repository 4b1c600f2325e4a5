package io.gpunvme.nvme.driver;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.gpunvme.ffi.SharedMemory;
import io.gpunvme.nvme.memory.DmaBuffer;
import io.gpunvme.nvme.spec.Cap;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/**
 * On a machine with huge pages, as many as {@code gpunvme.hugepages} says, and nobody else who uses
 * them: the driver's own memory is of them while a controller is open, and they are given back.
 */
@Tag("qemu")
class RealHugePagesTest {
  private static final int PAGES = Integer.getInteger("gpunvme.hugepages", 0);

  @Test
  void queuesAndBuffersAreOfHugePages() throws IOException {
    RealDevice.require();
    assumeTrue(PAGES > 0, "no huge pages are set aside: -Dgpunvme.hugepages says how many are");
    assertThat(count("HugePages_Total")).isEqualTo(PAGES);
    assertThat(count("HugePages_Free")).isEqualTo(PAGES);
    ControllerOptions options = RealDevice.limit(ControllerOptions.builder()).build();
    try (NvmeController controller = NvmeController.open(RealDevice.open(), options)) {
      long admin = taken();
      assertThat(admin).as("pages of the controller alone").isPositive();
      int longest = controller.cap().get(Cap.MQES) + 1;
      QueuePair queue = controller.createQueuePair(longest - 1, longest, longest);
      // A page of PRPs for each command, beside the rings.
      assertThat(taken()).isGreaterThan(admin);
      long before = taken();
      try (DmaBuffer b = DmaBuffer.allocate(controller.function(), 3 * SharedMemory.HUGE_PAGE)) {
        assertThat(taken()).isEqualTo(before + 3);
        assertThat(b.memory().address() % SharedMemory.HUGE_PAGE).isZero();
        BlockDevice device =
            BlockDevice.over(controller, controller.namespaces().getFirst(), queue);
        device.read(0, 8, b.range(), 2 * SharedMemory.HUGE_PAGE);
      }
      assertThat(taken()).isEqualTo(before);
    }
    assertThat(taken()).isZero();
  }

  private static long taken() throws IOException {
    return PAGES - count("HugePages_Free");
  }

  private static long count(String name) throws IOException {
    return Files.readAllLines(Path.of("/proc/meminfo")).stream()
        .filter(line -> line.startsWith(name + ":"))
        .mapToLong(line -> Long.parseLong(line.substring(name.length() + 1).strip()))
        .findFirst()
        .orElse(0);
  }
}
