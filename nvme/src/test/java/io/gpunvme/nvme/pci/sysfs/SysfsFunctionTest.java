package io.gpunvme.nvme.pci.sysfs;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.nvme.DeviceGoneException;
import io.gpunvme.nvme.DmaMappingException;
import io.gpunvme.nvme.memory.DmaBuffer;
import io.gpunvme.nvme.pci.ConfigSpace;
import io.gpunvme.nvme.pci.NumaOption;
import io.gpunvme.nvme.pci.host.FakeFunctionTree;
import io.gpunvme.nvme.pci.host.PciResources;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.stream.Stream;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What is refused, and what is done to the files of a function that is not. */
class SysfsFunctionTest {
  @TempDir Path folder;
  private FakeFunctionTree machine;

  @BeforeEach
  void build() throws IOException {
    machine = new FakeFunctionTree(folder);
    machine.resources();
  }

  private SysfsFunction open() {
    return SysfsFunction.open(
        FakeFunctionTree.ADDRESS, new SysfsOptions(true, NumaOption.AUTO, machine.paths()));
  }

  private void assertRefused(String... parts) {
    assertThatThrownBy(this::open)
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContainingAll(parts);
    assertThat(folder.resolve("run/lock")).isEmptyDirectory();
  }

  @Test
  void wantsConsent() {
    assertThatThrownBy(
            () ->
                SysfsFunction.open(
                    FakeFunctionTree.ADDRESS,
                    new SysfsOptions(false, NumaOption.AUTO, machine.paths())))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContainingAll("unsafe=true", "vfio:0000:01:00.0");
  }

  @Test
  void wantsRoot() throws IOException {
    machine.user(1000);
    assertRefused("needs root", "user 1000");
  }

  @Test
  void leavesOtherDevicesAlone() throws IOException {
    Files.writeString(machine.function().resolve("class"), "0x030200\n");
    assertRefused("0000:01:00.0 is no NVMe controller", "PCI class 0x030200", "gpunvme list");
  }

  @Test
  void leavesAFunctionToItsDriver() throws IOException {
    machine.driver("nvme");
    assertRefused("bound to the driver nvme", "gpunvme bind 0000:01:00.0 --no-driver");
  }

  @Test
  void pointsToVfioWhereThatHasIt() throws IOException {
    machine.driver("vfio-pci");
    assertRefused("bound to vfio-pci", "use vfio:0000:01:00.0");
  }

  @Test
  void isRefusedWhereAnIommuTranslates() throws IOException {
    machine.group(7, "DMA-FQ", FakeFunctionTree.ADDRESS);
    assertRefused("an IOMMU translates", "group 7", "DMA-FQ", "gpunvme bind 0000:01:00.0");
  }

  @Test
  void identityIsNoTranslation() throws IOException {
    machine.group(7, "identity", FakeFunctionTree.ADDRESS);
    open().close();
  }

  @Test
  void saysThatThereIsNoSuchFunction() throws IOException {
    delete(machine.function());
    assertRefused("there is no PCI function 0000:01:00.0", "gpunvme list");
  }

  @Test
  void saysWhichFileIsMissing() throws IOException {
    Files.delete(machine.function().resolve("resource0"));
    assertThatThrownBy(this::open)
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContainingAll("sysfs:0000:01:00.0", "resource0", "ENOENT");
    machine.resources();
    open().close();
  }

  @Test
  void aSecondUserIsRefused() {
    try (SysfsFunction first = open()) {
      assertThatThrownBy(this::open)
          .isInstanceOf(InvalidRequestException.class)
          .hasMessageContaining("in use by another gpunvme");
      assertThat(first.name()).isEqualTo("sysfs:0000:01:00.0");
    }
    open().close();
  }

  @Test
  void itsNodeIsTheKernelsOrTheOptions() throws IOException {
    machine.numaNodes();
    try (SysfsFunction function = open()) {
      assertThat(function.home().node()).isEqualTo(1);
      function.allocate(1).close();
    }
    SysfsOptions first = new SysfsOptions(true, NumaOption.parse("0"), machine.paths());
    try (SysfsFunction function = SysfsFunction.open(FakeFunctionTree.ADDRESS, first)) {
      assertThat(function.home().node()).isZero();
    }
    SysfsOptions third = new SysfsOptions(true, NumaOption.parse("2"), machine.paths());
    assertThatThrownBy(() -> SysfsFunction.open(FakeFunctionTree.ADDRESS, third))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessage("numa=2: there is no such NUMA node; there are 0, 1");
    open().close();
  }

  @Test
  void enablesMapsAndGivesBack() throws IOException {
    SysfsFunction function = open();
    assertThat(Files.readString(machine.function().resolve("enable"))).startsWith("1");
    int command = function.config().read(ConfigSpace.COMMAND, 2);
    assertThat(command).isEqualTo(ConfigSpace.COMMAND_MEMORY | ConfigSpace.COMMAND_INTX_DISABLE);
    assertThat(function.bar(0).size()).isEqualTo(0x4000);
    function.bar(0).write32(0x14, 0x460001);
    assertThat(function.bar(0).read32(0x14)).isEqualTo(0x460001);
    assertThat(function.bar(0).memory(0x1000, 8).byteSize()).isEqualTo(8);
    assertThatThrownBy(() -> function.bar(1)).hasMessageContaining("has no BAR 1");
    assertThatThrownBy(() -> function.bar(2)).hasMessageContaining("has no BAR 2"); // ports
    function.config().write(ConfigSpace.COMMAND, 2, command | ConfigSpace.COMMAND_BUS_MASTER);

    function.close();
    function.close();

    assertThat(Files.readString(machine.function().resolve("enable"))).startsWith("0");
    byte[] config = Files.readAllBytes(machine.function().resolve("config"));
    assertThat(config[ConfigSpace.COMMAND] & ConfigSpace.COMMAND_BUS_MASTER).isZero();
    assertThat(function.bar(0).read32(0x14)).isEqualTo(-1);
    assertThat(function.config().read(0, 4)).isEqualTo(-1);
    try (var memory = function.allocate(4096)) {
      assertThatThrownBy(() -> function.map(memory.segment()))
          .isInstanceOf(DmaMappingException.class)
          .hasMessageContaining("closed");
    }
  }

  @Test
  void resetsByItsFile() throws IOException {
    try (SysfsFunction function = open()) {
      function.reset();
      assertThat(Files.readString(machine.function().resolve("reset"))).startsWith("1");
      Files.delete(machine.function().resolve("reset"));
      assertThatThrownBy(function::reset)
          .isInstanceOf(InvalidRequestException.class)
          .hasMessageContaining("no function level reset");
      delete(machine.function());
      assertThatThrownBy(function::reset).isInstanceOf(DeviceGoneException.class);
    }
  }

  @Test
  void buffersHavePhysicalAddresses() {
    try (SysfsFunction function = open()) {
      DmaBuffer buffer;
      try {
        buffer = DmaBuffer.allocate(function, 4 * 4096);
      } catch (DmaMappingException e) {
        Assumptions.abort(e.getMessage());
        return;
      }
      assertThat(buffer.busAddress(8)).isEqualTo(buffer.busAddress(0) + 8);
      assertThat(function.addressBits()).isEqualTo(64);
      function.close(); // in any order
      buffer.close();
    }
  }

  @Test
  void refusesWhatIsNoDescriptionOfABar() {
    assertThatThrownBy(() -> PciResources.parse("0x0 0x1\n"))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("0x0 0x1");
    assertThatThrownBy(() -> PciResources.parse("0x0 0x1 q\n"))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("'q'");
  }

  private static void delete(Path folder) throws IOException {
    try (Stream<Path> all = Files.walk(folder)) {
      for (Path p : all.sorted(Comparator.reverseOrder()).toList()) {
        Files.delete(p);
      }
    }
  }
}
