package io.gpunvme.nvme.driver;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.gpunvme.nvme.driver.BarBuffer.Addresses;
import java.nio.file.Path;
import org.junit.jupiter.api.Nested;

/**
 * The same with memory that is not RAM, but another function's BAR, as a GPU's is: {@code
 * gpunvme.exporter} is the file of the module that shares it, {@code gpunvme.peer-bar} the BAR's in
 * sysfs.
 */
class RealPeerMemoryTest {
  private static final String EXPORTER = System.getProperty("gpunvme.exporter", "");
  private static final String BAR = System.getProperty("gpunvme.peer-bar", "");

  /** What both ways to give addresses away have in common. */
  abstract static class Shared extends RealDmaBufTest {
    private final Addresses addresses;
    private long taken;

    Shared(Addresses addresses) {
      this.addresses = addresses;
    }

    @Override
    void requireExporter() {
      assumeTrue(
          !EXPORTER.isEmpty(),
          "no module shares a BAR: none is named by -Dgpunvme.exporter=/dev/bar_exporter");
    }

    @Override
    SharedBuffer share(long whole, long offset, long size) {
      long base = taken;
      taken += whole;
      return new BarBuffer(Path.of(EXPORTER), addresses, Path.of(BAR), base, whole, offset, size);
    }
  }

  /** As the kernel's rules want it. */
  @Nested
  class MappedForTheImporter extends Shared {
    MappedForTheImporter() {
      super(Addresses.MAPPED);
    }
  }

  /** As NVIDIA's driver does also where an IOMMU translates. */
  @Nested
  class PhysicalAddresses extends Shared {
    PhysicalAddresses() {
      super(Addresses.RAW);
    }
  }
}
