package io.gpunvme.gpu.device;

import io.gpunvme.base.CloseAll;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.watch.Watch;
import io.gpunvme.nvme.driver.ControllerOptions;
import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.nvme.pci.PciFunction;
import io.gpunvme.sim.SimulatedController;
import java.lang.foreign.MemorySegment;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;

/** An open device: a running controller and its address. Safe for all threads. */
public final class Device implements AutoCloseable {
  private static final Map<NvmeController, DeviceAddress> OPEN = new ConcurrentHashMap<>();

  private final DeviceAddress address;
  private final NvmeController controller;

  private Device(DeviceAddress address, NvmeController controller) {
    this.address = address;
    this.controller = controller;
  }

  /**
   * Opens a device and starts its controller.
   *
   * @param address text as {@link DeviceAddress#parse} reads it
   * @throws InvalidRequestException if the address makes no sense or there is no such device
   * @throws io.gpunvme.nvme.NvmeException if the controller does not come up
   */
  public static Device open(String address, ControllerOptions options) {
    return open(DeviceAddress.parse(address), options, "");
  }

  /**
   * Opens a device with faults.
   *
   * @param faults rules as {@link io.gpunvme.sim.FaultSyntax} reads them, in force from before the
   *     controller is enabled; empty for none, as it must be for a real controller
   */
  public static Device open(DeviceAddress address, ControllerOptions options, String faults) {
    PciFunction function = address.transport().open(address, faults);
    NvmeController controller = NvmeController.open(function, options);
    return CloseAll.orClose(
        () -> {
          DeviceAddress absolute = address.absolute();
          OPEN.put(controller, absolute);
          controller.onClose(() -> OPEN.remove(controller));
          Watch.driven(absolute.toString(), controller);
          return new Device(address, controller);
        },
        controller::close);
  }

  /**
   * By which address an open controller was opened, whoever did it; with absolute paths. Empty if
   * it was not opened by an address.
   */
  public static Optional<DeviceAddress> addressOf(NvmeController controller) {
    return Optional.ofNullable(OPEN.get(controller));
  }

  /**
   * Opens only a device's PCI function, without starting its controller, for users of bus addresses
   * or registers.
   *
   * @throws InvalidRequestException if there is no such device
   */
  public static PciFunction function(DeviceAddress address) {
    return address.transport().open(address, "");
  }

  /** The address that was opened. */
  public DeviceAddress address() {
    return address;
  }

  /** How its controller gets memory of a GPU. */
  public GpuBusAddresses gpuBusAddresses() {
    return GpuBusAddresses.of(address);
  }

  /** The controller; closed with this device. */
  public NvmeController controller() {
    return controller;
  }

  /**
   * The bytes of a namespace of an embedded controller, for pinning. Valid until {@link #close}.
   *
   * @return empty if the controller is real, or the namespace not in memory
   */
  public Optional<MemorySegment> memory(int nsid) {
    return controller.function() instanceof SimulatedController sim
        ? sim.mediaMemory(nsid)
        : Optional.empty();
  }

  /** Shuts the controller down and gives the device back. Idempotent. */
  @Override
  public void close() {
    controller.close();
  }
}
