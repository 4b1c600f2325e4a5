package io.gpunvme.cli;

import io.gpunvme.cli.output.Sizes;
import io.gpunvme.cli.output.Streams;
import io.gpunvme.cli.output.Table;
import io.gpunvme.core.device.Device;
import io.gpunvme.core.device.DeviceAddress;
import io.gpunvme.core.device.PciNvme;
import io.gpunvme.nvme.driver.Namespace;
import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.nvme.spec.IdentifyController;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** {@code gpunvme list [DEVICE…]}. */
@Command(
    name = "list",
    description = {
      "List the namespaces of devices, or what this machine has.",
      "Without a device: the NVMe functions on the PCI bus, which are looked at and not touched,"
          + " and",
      "the kinds of device this version can open."
    },
    footer = {"", "Examples:", "  gpunvme list", "  gpunvme list sim:size=1GiB sim:file=disk.img"})
final class ListCommand extends BaseCommand {
  private static final int INDENT = 2;

  @Parameters(paramLabel = "DEVICE", arity = "0..*", description = "sim:key=value,…")
  private List<String> devices = new ArrayList<>();

  @Option(names = "--sysfs", hidden = true, description = "Where the kernel lists PCI functions.")
  private Path sysfs = PciNvme.SYSFS;

  @Mixin private final DriverOptions driver = new DriverOptions();

  ListCommand(Streams streams) {
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
    List<PciNvme> functions = PciNvme.list(sysfs);
    print(
        () -> {
          printFunctions(functions);
          out().println();
          out().println("Devices that this version can open:");
          out().println("  sim:key=value,…  an embedded NVMe controller (gpunvme help sim)");
        },
        () -> machine(functions));
  }

  private void printFunctions(List<PciNvme> functions) {
    if (functions.isEmpty()) {
      out().println("No NVMe function on the PCI bus.");
      return;
    }
    out().println("NVMe functions on the PCI bus (this version does not drive them):");
    Table table = new Table(INDENT).row("ADDRESS", "ID", "DRIVER", "BLOCK DEVICES", "MODEL");
    for (PciNvme f : functions) {
      table.row(
          f.address(),
          id(f),
          f.driver().isEmpty() ? "none" : f.driver(),
          f.blockDevices().isEmpty() ? "-" : String.join(" ", f.blockDevices()),
          f.model());
    }
    table.print(out());
  }

  private static String id(PciNvme f) {
    return "%04x:%04x".formatted(f.vendor(), f.device());
  }

  private static Map<String, Object> machine(List<PciNvme> functions) {
    List<Object> pci = new ArrayList<>();
    for (PciNvme f : functions) {
      Map<String, Object> one = new LinkedHashMap<>();
      one.put("address", f.address());
      one.put("id", id(f));
      one.put("driver", f.driver().isEmpty() ? null : f.driver());
      one.put("model", f.model());
      one.put("block_devices", f.blockDevices());
      pci.add(one);
    }
    Map<String, Object> object = new LinkedHashMap<>();
    object.put("pci", pci);
    object.put("kinds", List.of(DeviceAddress.EMBEDDED));
    return object;
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
          identify.mn(),
          identify.sn(),
          identify.fr(),
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
