package io.gpunvme.tools.doctor;

import io.gpunvme.tools.machine.KernelFacts;
import io.gpunvme.tools.machine.KernelFacts.HugePages;
import io.gpunvme.tools.machine.Machine;
import io.gpunvme.tools.machine.SoftwareFacts;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalLong;

/** The kernel and its settings. */
final class SystemChecks {
  private static final String KERNEL = "kernel";
  private static final long MIB = 1 << 20;

  /** Less is not enough for the queues and buffers of one SSD at usual sizes. */
  private static final long ENOUGH_MEMLOCK = 1024 * MIB;

  private final KernelFacts kernel;
  private final SoftwareFacts software;
  private final boolean ssds;
  private final List<Finding> found = new ArrayList<>();

  private SystemChecks(Machine machine) {
    kernel = machine.kernel();
    software = machine.software();
    ssds = !machine.ssds().isEmpty();
  }

  static List<Finding> of(Machine machine) {
    SystemChecks checks = new SystemChecks(machine);
    checks.kernel();
    checks.iommu();
    checks.vfio();
    checks.lockdown();
    checks.hugePages();
    checks.memlock();
    checks.kernelModule();
    return checks.found;
  }

  /** Missing pieces are a problem only where there is an SSD that needs them. */
  private Finding missing(String id, String subject, String cause, String effect, String fix) {
    return ssds
        ? Finding.problem(id, subject, cause, effect, fix)
        : Finding.note(id, subject, cause, effect, fix);
  }

  private void kernel() {
    if (!kernel.release().isEmpty()) {
      found.add(Finding.ok("kernel", KERNEL, "Linux " + kernel.release()));
    }
    if (!kernel.root()) {
      found.add(
          Finding.note(
              "not-root",
              "process",
              "this process does not run as root",
              "facts that only root may read are missing: ACS, mounts and open devices of others",
              "sudo gpunvme doctor"));
    }
  }

  private void iommu() {
    if (software.iommu()) {
      found.add(
          Finding.ok("iommu-on", "iommu", "the kernel drives an IOMMU; VFIO can protect memory"));
      return;
    }
    String cause =
        "no IOMMU: it is off in the firmware or on the kernel command line, or the machine has"
            + " none";
    if (software.noIommu()) {
      found.add(
          Finding.note(
              "iommu-off",
              "iommu",
              cause,
              "VFIO works without it here (enable_unsafe_noiommu_mode), for root and without"
                  + " protection: vfio:…,noiommu=true",
              ""));
      return;
    }
    found.add(
        missing(
                "iommu-off",
                "iommu",
                cause,
                "VFIO gives no device to user space; only sysfs: (root, no protection) remains",
                "turn on VT-d or AMD-Vi in the firmware set-up; on Intel add intel_iommu=on to the"
                    + " kernel command line and reboot; a virtual machine needs a virtual IOMMU")
            .blocking(Way.of("vfio:")));
  }

  private void vfio() {
    if (software.vfioPci()) {
      found.add(Finding.ok("vfio-loaded", "vfio", "the driver vfio-pci is loaded"));
      return;
    }
    found.add(
        missing(
                "vfio-missing",
                "vfio",
                "the driver vfio-pci is not loaded",
                "no device can be opened as vfio:…",
                software.vfioModule()
                    ? "modprobe vfio-pci"
                    : "this kernel's modules do not include it: install the package with the rest"
                          + " of them, or a kernel with CONFIG_VFIO_PCI")
            .blocking(Way.of("vfio:")));
  }

  private void lockdown() {
    if (!kernel.lockdown().isEmpty() && !kernel.lockdown().equals("none")) {
      found.add(
          missing(
                  "lockdown",
                  KERNEL,
                  "kernel lockdown is '" + kernel.lockdown() + "'",
                  "BARs cannot be mapped through sysfs, so sysfs:… does not work; vfio:… does",
                  "use vfio:…, or turn Secure Boot off in the firmware set-up")
              .blocking(Way.of("sysfs:")));
    }
    if (kernel.secureBoot() == KernelFacts.SecureBoot.ON) {
      found.add(
          Finding.note(
              "secure-boot",
              "firmware",
              "Secure Boot is on",
              "the kernel refuses modules that the distribution did not sign, such as a patched"
                  + " NVIDIA driver",
              "sign them and enrol the key (mokutil --import KEY.der), or turn Secure Boot off"));
    }
  }

  private void hugePages() {
    for (HugePages pool : kernel.hugePages()) {
      if (pool.total() > 0) {
        found.add(
            Finding.ok(
                "hugepages-" + pool.bytes() / MIB + "M",
                "memory",
                "%d huge pages of %d MiB, %d of them free"
                    .formatted(pool.total(), pool.bytes() / MIB, pool.free())));
      }
    }
    if (kernel.hugePages().stream().noneMatch(pool -> pool.total() > 0)) {
      boolean possible = kernel.hugePages().stream().anyMatch(pool -> pool.bytes() == 2 * MIB);
      found.add(
          Finding.note(
              "hugepages-none",
              "memory",
              possible ? "no huge pages are reserved" : "this kernel has no huge pages of 2 MiB",
              "sysfs:… gets contiguous memory one small page at a time; vfio:… works and uses more"
                  + " IOMMU entries",
              possible ? "echo 64 > /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages" : ""));
    }
  }

  private void memlock() {
    OptionalLong limit = kernel.memlockBytes();
    if (limit.isPresent() && limit.getAsLong() < ENOUGH_MEMLOCK && !kernel.root()) {
      found.add(
          Finding.note(
              "memlock",
              "process",
              "this user may lock %d KiB of memory".formatted(limit.getAsLong() / 1024),
              "VFIO counts all memory that an SSD may reach as locked, and refuses more than that",
              "add '* - memlock unlimited' to /etc/security/limits.d/gpunvme.conf and log in again,"
                  + " or run it as root"));
    }
  }

  /** Nothing is wrong without it: it is one way of several. */
  private void kernelModule() {
    String subject = "kernel module";
    if (software.gpunvmeModule()) {
      found.add(Finding.ok("kernel-module", subject, "the kernel module gpunvme is loaded"));
      return;
    }
    found.add(
        Finding.note(
                "kernel-module-none",
                subject,
                "the kernel module gpunvme is not loaded",
                "no device can be opened as kmod:…, and an SSD cannot get the bus addresses of GPU"
                    + " memory (placements vram-data and vram work with the embedded controller"
                    + " only); without an IOMMU, the bus addresses of RAM come from"
                    + " /proc/self/pagemap, for root only (sysfs:…, or vfio:… with noiommu=true)",
                "scripts/kmod-build and scripts/kmod-load (docs/kernel-module.md); for RAM alone,"
                    + " turn the IOMMU on and use vfio:…")
            .blocking(Way.of("kmod:")));
  }
}
