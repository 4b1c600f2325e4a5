package io.gpunvme.tools.ssd;

import io.gpunvme.gpu.device.Transport;
import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.nvme.pci.PciAddress;
import io.gpunvme.nvme.spec.IdentifyController;
import io.gpunvme.tools.machine.Machine;
import io.gpunvme.tools.machine.MachineFunction;
import io.gpunvme.tools.machine.PciLink;
import java.util.Optional;
import java.util.stream.Stream;

/**
 * What bounds an SSD, and what it counted while something was done with it.
 *
 * @param name its address
 * @param model what it says it is
 * @param maxTransferBytes longest transfer of one command: MDTS, or the driver's own limit
 * @param link what its PCIe link was trained to; {@link PciLink#UNKNOWN} if it has none
 * @param before its counters before
 * @param after its counters afterwards
 */
public record SsdFacts(
    String name,
    String model,
    long maxTransferBytes,
    PciLink link,
    SsdState before,
    SsdState after) {
  /** Those of an SSD that is open. */
  public static SsdFacts of(NvmeController controller, Machine machine, SsdState before) {
    return new SsdFacts(
        controller.name(),
        controller.identify().getText(IdentifyController.MN).strip(),
        controller.maxTransferBytes(),
        pciAddress(controller.name())
            .flatMap(machine::find)
            .map(MachineFunction::link)
            .orElse(PciLink.UNKNOWN),
        before,
        SsdState.read(controller));
  }

  /** Where an SSD sits on this machine's PCI bus; empty if it is in a process. */
  private static Optional<PciAddress> pciAddress(String name) {
    return Stream.of(Transport.VFIO, Transport.KMOD, Transport.SYSFS)
        .map(transport -> transport + ":")
        .filter(name::startsWith)
        .findFirst()
        .flatMap(scheme -> PciAddress.find(name.substring(scheme.length())));
  }
}
