package io.gpunvme.nvme.pci.vfio;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.ffi.Errno;
import io.gpunvme.ffi.PosixException;
import io.gpunvme.nvme.pci.PciAddress;
import io.gpunvme.nvme.pci.host.FakeFunctionTree;
import io.gpunvme.nvme.pci.host.FunctionLock;
import io.gpunvme.nvme.pci.host.PciSysfs;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Every way in which a function is not as VFIO needs it, and what the user is told. */
class VfioRefusalTest {
  private static final PciAddress BRIDGE = new PciAddress(0, 0, 1, 0);
  private static final PciAddress SOUND = new PciAddress(0, 1, 0, 1);

  @TempDir Path folder;
  private FakeFunctionTree machine;
  private VfioOptions options;

  @BeforeEach
  void build() throws IOException {
    machine = new FakeFunctionTree(folder);
    options = VfioOptions.defaults().withPaths(machine.paths());
  }

  private void assertRefused(String... parts) {
    assertThatThrownBy(() -> VfioFunction.open(FakeFunctionTree.ADDRESS, options))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("0000:01:00.0")
        .hasMessageContainingAll(parts);
    // Whatever failed, the function is free for the next attempt.
    FunctionLock.take(machine.paths(), FakeFunctionTree.ADDRESS).close();
  }

  private void grouped() throws IOException {
    machine.driver("vfio-pci");
    machine.group(7, "DMA", FakeFunctionTree.ADDRESS);
  }

  @Test
  void noSuchFunction() {
    assertThatThrownBy(() -> VfioFunction.open(SOUND, options))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContainingAll("there is no PCI function 0000:01:00.1", "gpunvme list");
  }

  @Test
  void aKernelDriverHasIt() throws IOException {
    machine.driver("nvme");
    assertRefused("bound to the driver nvme", "gpunvme bind 0000:01:00.0");
  }

  @Test
  void nobodyHasIt() {
    assertRefused("bound to no driver", "gpunvme bind 0000:01:00.0", "modprobe vfio-pci");
  }

  @Test
  void anotherProcessHasIt() throws IOException {
    grouped();
    try (FunctionLock lock = FunctionLock.take(machine.paths(), FakeFunctionTree.ADDRESS)) {
      assertThatThrownBy(() -> VfioFunction.open(FakeFunctionTree.ADDRESS, options))
          .isInstanceOf(InvalidRequestException.class)
          .hasMessageContaining(lock.path().toString());
    }
  }

  @Test
  void noIommu() throws IOException {
    machine.driver("vfio-pci");
    assertRefused("in no IOMMU group", "VT-d", "intel_iommu=on", "noiommu=true");
  }

  @Test
  void noIommuWithConsentButSwitchedOff() throws IOException {
    machine.driver("vfio-pci");
    options = options.withNoIommu(true);
    assertRefused("enable_unsafe_noiommu_mode", "echo Y");
  }

  @Test
  void noIommuWithoutConsent() throws IOException {
    grouped();
    machine.groupName(7, "vfio-noiommu");
    assertRefused("without an IOMMU", "vfio:0000:01:00.0,noiommu=true");
  }

  @Test
  void consentWhereThereIsAnIommu() throws IOException {
    grouped();
    options = options.withNoIommu(true);
    assertRefused("behind an IOMMU (group 7)", "leave it out");
  }

  @Test
  void noVfioAtAll() throws IOException {
    grouped();
    assertRefused(machine.paths().dev() + "/vfio/vfio", "ENOENT", "modprobe vfio-pci");
  }

  @Test
  void whatIsThereIsNotVfio() throws IOException {
    grouped();
    machine.node("vfio/vfio");
    assertRefused("asking for VFIO's version", "ENOTTY");
  }

  @Test
  void iommufdIsNotThere() throws IOException {
    grouped();
    options = options.withIommufd(VfioOptions.Iommufd.TRUE);
    assertRefused("Linux 6.6", "leave iommufd=true out");
    Files.createDirectories(machine.function().resolve("vfio-dev/vfio3"));
    assertRefused(machine.paths().dev() + "/iommu", "ENOENT");
    machine.node("iommu");
    assertRefused(machine.paths().dev() + "/vfio/devices/vfio3", "ENOENT");
    machine.node("vfio/devices/vfio3");
    assertRefused("opening through iommufd", "ENOTTY");
    options = options.withNoIommu(true);
    assertRefused("noiommu=true needs the way by groups");
  }

  @Test
  void theKernelsOnlyWayIsTaken() throws IOException {
    grouped();
    Files.createDirectories(machine.function().resolve("vfio-dev/vfio3"));
    assertRefused(machine.paths().dev() + "/iommu");
    machine.node("vfio/vfio"); // now there are two, and groups come first
    assertRefused("asking for VFIO's version");
    options = options.withIommufd(VfioOptions.Iommufd.FALSE);
    assertRefused("asking for VFIO's version");
  }

  @Test
  void aGroupIsNotViable() throws IOException {
    machine.driver("vfio-pci");
    machine.driver(BRIDGE, "pcieport");
    machine.driver(SOUND, "snd_hda_intel");
    machine.group(7, "DMA", FakeFunctionTree.ADDRESS, BRIDGE, SOUND);

    PciSysfs function = PciSysfs.of(machine.paths(), FakeFunctionTree.ADDRESS);
    assertThat(Refusals.notViable(FakeFunctionTree.ADDRESS, "7", function.groupNeighbours()))
        .hasMessageContaining("IOMMU group 7 of 0000:01:00.0 is not viable")
        .hasMessageContaining("0000:00:01.0 (pcieport), 0000:01:00.1 (snd_hda_intel)")
        .hasMessageContaining("(`gpunvme bind 0000:01:00.1`)");
  }

  @Test
  void interruptsAreNotRemapped() {
    PosixException e = new PosixException("ioctl", "fd 5", Errno.EPERM);
    assertThat(Refusals.noInterruptRemapping(FakeFunctionTree.ADDRESS, e))
        .hasMessageContaining("0000:01:00.0: ")
        .hasMessageContaining("allow_unsafe_interrupts")
        .hasCause(e);
  }

  @Test
  void aNodeCannotBeOpened() {
    Path node = Path.of("/dev/vfio/7");
    assertThat(refusal(node, Errno.EACCES))
        .hasMessageContaining("chown")
        .hasCauseInstanceOf(PosixException.class);
    assertThat(refusal(node, Errno.EBUSY)).hasMessageContaining("fuser /dev/vfio/7");
    assertThat(refusal(node, Errno.EIO)).hasMessageContaining("open /dev/vfio/7: EIO");
  }

  private static InvalidRequestException refusal(Path node, int errno) {
    return Refusals.node(
        FakeFunctionTree.ADDRESS, node, new PosixException("open", node.toString(), errno));
  }

  @Test
  void iommufdIsOneOfThree() {
    assertThat(VfioOptions.Iommufd.parse("auto")).isEqualTo(VfioOptions.Iommufd.AUTO);
    assertThat(VfioOptions.Iommufd.parse("true")).isEqualTo(VfioOptions.Iommufd.TRUE);
    assertThatThrownBy(() -> VfioOptions.Iommufd.parse("TRUE"))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("auto, true or false");
  }
}
