package io.gpunvme.cli;

import io.gpunvme.cli.output.OutputStreams;
import io.gpunvme.cli.output.Sizes;
import io.gpunvme.cli.output.Table;
import io.gpunvme.gpu.device.Device;
import io.gpunvme.gpu.device.DeviceAddress;
import io.gpunvme.gpu.device.Transport;
import io.gpunvme.nvme.driver.Namespace;
import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.nvme.spec.IdentifyController;
import java.io.IOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Parameters;

/** {@code gpunvme list [DEVICE…]}. */
@Command(
    name = "list",
    description = {
      "List the namespaces of devices, or the devices of this machine.",
      "Without DEVICE: the SSDs and GPUs on the PCI bus, who uses them, the links between them,"
          + " and",
      "the kinds of device that this version can open. This only looks, and opens no device."
    },
    footer = {
      "",
      "Examples:",
      "  gpunvme list",
      "  gpunvme list --json",
      "  gpunvme list sim:size=1GiB sim:file=disk.img"
    })
final class ListCommand extends BaseCommand {
  @Parameters(
      paramLabel = "DEVICE",
      arity = "0..*",
      description = "sim:…, vfio:…, kmod:… or sysfs:….")
  private List<String> devices = new ArrayList<>();

  @Mixin private final MachineOption machine = new MachineOption();

  @Mixin private final DriverOptions driver = new DriverOptions();

  ListCommand(OutputStreams streams) {
    super(streams);
  }

  @Override
  int run() throws IOException {
    if (devices.isEmpty()) {
      listMachine();
    } else {
      listDevices();
    }
    return ExitCode.OK;
  }

  // ---- the machine

  private void listMachine() {
    MachineListing listing = new MachineListing(machine.read());
    print(
        () -> {
          listing.print(out());
          out().println();
          out().println("Devices that this version can open:");
          for (Transport transport : Transport.values()) {
            out().println("  %-20s%s".formatted(transport.form(), transport.summary()));
          }
        },
        () -> {
          Map<String, Object> object = new LinkedHashMap<>();
          object.put("pci", listing.functionsJson());
          object.put("pairs", listing.pairsJson());
          object.put("kinds", Stream.of(Transport.values()).map(Transport::toString).toList());
          return object;
        });
  }

  // ---- devices

  /** A device as it was found; it is closed by the time it is printed. */
  private record Listed(
      String device,
      String model,
      String serial,
      String firmware,
      String version,
      List<Namespace> namespaces) {
    static Listed of(String device, NvmeController controller) {
      IdentifyController identify = controller.identify();
      return new Listed(
          device,
          identify.getText(IdentifyController.MN),
          identify.getText(IdentifyController.SN),
          identify.getText(IdentifyController.FR),
          controller.version().toString(),
          controller.namespaces());
    }

    Map<String, Object> json() {
      Map<String, Object> one = new LinkedHashMap<>();
      one.put("device", device);
      one.put("model", model);
      one.put("serial", serial);
      one.put("firmware", firmware);
      one.put("version", version);
      one.put("namespaces", namespaces.stream().map(Descriptions::namespace).toList());
      return one;
    }

    void rows(Table table) {
      if (namespaces.isEmpty()) {
        row(table, "-", "-", "-");
      }
      for (Namespace n : namespaces) {
        row(
            table,
            Integer.toUnsignedString(n.nsid()),
            n.usable() ? Sizes.format(n.bytes()) : "unusable",
            n.usable() ? Integer.toString(n.blockSize()) : "-");
      }
    }

    private void row(Table table, String nsid, String size, String block) {
      table.row(device, nsid, size, block, model, serial, firmware);
    }
  }

  private void listDevices() throws IOException {
    List<Listed> all = new ArrayList<>();
    for (String device : devices) {
      DeviceAddress address = DeviceAddress.parse(device);
      try (Device open = Device.open(address, driver.controller(false), driver.faults())) {
        all.add(Listed.of(device, open.controller()));
      }
    }
    print(
        () -> {
          Table table =
              new Table(0).row("DEVICE", "NSID", "SIZE", "BLOCK", "MODEL", "SERIAL", "FIRMWARE");
          all.forEach(one -> one.rows(table));
          table.print(out());
        },
        () -> Map.of("devices", all.stream().map(Listed::json).toList()));
  }
}
