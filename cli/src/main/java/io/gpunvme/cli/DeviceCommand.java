package io.gpunvme.cli;

import io.gpunvme.cli.output.OutputStreams;
import io.gpunvme.gpu.device.Device;
import io.gpunvme.gpu.device.DeviceAddress;
import io.gpunvme.nvme.driver.ControllerOptions;
import java.io.IOException;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Parameters;

/** A subcommand about one device. */
abstract class DeviceCommand extends BaseCommand {
  @Parameters(
      index = "0",
      paramLabel = "DEVICE",
      description =
          "sim:key=value,… (see gpunvme help sim), vfio:DDDD:BB:DD.F, kmod:DDDD:BB:DD.F or"
              + " vfio-user:SOCKET.")
  private String device = "";

  @Mixin private final DriverOptions driver = new DriverOptions();

  DeviceCommand(OutputStreams streams) {
    super(streams);
  }

  /** Opens the device without permission to change its data. */
  final Device open() throws IOException {
    return open(false);
  }

  final Device open(boolean allowWrite) throws IOException {
    ControllerOptions options = driver.controller(allowWrite);
    return Device.open(DeviceAddress.parse(device), options, driver.faults());
  }

  /** The device as it was given. */
  final String device() {
    return device;
  }
}
