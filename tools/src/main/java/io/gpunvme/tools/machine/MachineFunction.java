package io.gpunvme.tools.machine;

import io.gpunvme.nvme.pci.PciAddress;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A function on the PCI bus. Only looked at, never touched.
 *
 * @param address where it sits
 * @param classCode base class, sub-class and programming interface, 24 bits
 * @param vendor PCI vendor identifier
 * @param device PCI device identifier
 * @param driver the kernel driver that has it, empty for none
 * @param driverOverride the only driver that may take it, empty for any
 * @param model what the kernel's NVMe driver or NVIDIA's says it is, empty when neither has it
 * @param uuid of a GPU, as NVIDIA's driver says: {@code GPU-…}; empty when it does not have it
 * @param group its IOMMU group, null without an IOMMU
 * @param link the link above it
 * @param numaNode -1 if the machine does not say
 * @param bars those with an address
 * @param hostBridge domain and bus of the bridge between it and the processor, {@code 0000:00};
 *     empty if the kernel does not say
 * @param parents the ports above it, the root port first; empty for a function of the root complex
 * @param accessControl what it does to traffic below it, if it is a port
 */
public record MachineFunction(
    PciAddress address,
    int classCode,
    int vendor,
    int device,
    String driver,
    String driverOverride,
    String model,
    String uuid,
    @Nullable IommuGroup group,
    PciLink link,
    int numaNode,
    List<PciBar> bars,
    String hostBridge,
    List<PciAddress> parents,
    AccessControl accessControl) {
  /** The driver that gives a function to a user-space driver behind an IOMMU. */
  public static final String VFIO_PCI = "vfio-pci";

  /** The driver of this project's kernel module. */
  public static final String KMOD = "gpunvme";

  private static final int NVME = 0x0108;
  private static final int DISPLAY = 0x03;
  private static final int BRIDGE = 0x06;
  private static final int NVIDIA_VENDOR = 0x10DE;

  /** Copies the lists. */
  public MachineFunction {
    bars = List.copyOf(bars);
    parents = List.copyOf(parents);
  }

  /** Class 01h, sub-class 08h: a non-volatile memory controller. */
  public boolean nvme() {
    return classCode >>> 8 == NVME;
  }

  /** Base class 03h: a display or 3D controller, of whatever vendor. */
  public boolean display() {
    return classCode >>> 16 == DISPLAY;
  }

  /** A GPU that CUDA may know. */
  public boolean nvidiaGpu() {
    return display() && vendor == NVIDIA_VENDOR;
  }

  /** Base class 06h. */
  public boolean bridge() {
    return classCode >>> 16 == BRIDGE;
  }

  /** Whether it is bound for a user-space driver behind an IOMMU. */
  public boolean vfio() {
    return driver.equals(VFIO_PCI);
  }

  /** Whether this project's kernel module has it. */
  public boolean kmod() {
    return driver.equals(KMOD);
  }

  /** Whether one of the drivers for user space has it. */
  public boolean userSpace() {
    return vfio() || kmod();
  }

  /** {@code vendor:device} in hexadecimal. */
  public String id() {
    return "%04x:%04x".formatted(vendor, device);
  }

  /** The largest memory BAR: of a GPU the window to its memory; 0 without one. */
  public long largestBar() {
    return bars.stream().filter(PciBar::memory).mapToLong(PciBar::bytes).max().orElse(0);
  }
}
