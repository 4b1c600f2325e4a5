package io.gpunvme.cli;

import io.gpunvme.gpu.device.Transport;
import io.gpunvme.nvme.pci.PciAddress;
import io.gpunvme.tools.machine.DriverBinding;
import io.gpunvme.tools.machine.DriverBinding.Plan;
import io.gpunvme.tools.machine.Machine;
import picocli.CommandLine.Option;

/** Who gets an SSD that the kernel has: vfio-pci, unless one of these options says otherwise. */
final class BindTarget {
  @Option(
      names = "--kmod",
      description = {
        "Give it to the kernel module gpunvme, which must be loaded: for GPU memory by dma-buf."
            + " For all else vfio-pci does."
      })
  private boolean kmod;

  @Option(
      names = "--no-driver",
      description = "Leave it without a driver, for sysfs:… on a machine without IOMMU.")
  private boolean noDriver;

  /** The writes to make. */
  Plan plan(DriverBinding binding, Machine machine, PciAddress address) {
    if (kmod) {
      return binding.bindToModule(machine, address);
    }
    return noDriver ? binding.release(machine, address) : binding.bind(machine, address);
  }

  /** How the SSD is opened then; where no IOMMU isolates it, by permission. */
  String device(PciAddress address, boolean isolated) {
    if (noDriver) {
      return Transport.SYSFS + ":" + address + ",unsafe=true";
    }
    return (kmod ? Transport.KMOD : Transport.VFIO)
        + ":"
        + address
        + (isolated ? "" : ",noiommu=true");
  }
}
