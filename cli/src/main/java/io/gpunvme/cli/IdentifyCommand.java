package io.gpunvme.cli;

import io.gpunvme.cli.output.Fields;
import io.gpunvme.cli.output.OutputStreams;
import io.gpunvme.cli.output.Sizes;
import io.gpunvme.gpu.device.Device;
import io.gpunvme.nvme.driver.Namespace;
import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.nvme.spec.IdentifyController;
import java.io.IOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** {@code gpunvme identify DEVICE}. */
@Command(
    name = "identify",
    description = "Print Identify Controller and Identify Namespace, every field with its meaning.",
    footer = {
      "",
      "Examples:",
      "  gpunvme identify sim:size=1GiB,lba=4096",
      "  gpunvme identify sim:file=disk.img --nsid 1 --json"
    })
final class IdentifyCommand extends DeviceCommand {
  @Option(
      names = "--nsid",
      paramLabel = "N",
      converter = Converters.Nsid.class,
      description = "Only this namespace, without the controller.")
  private @Nullable Integer nsid;

  IdentifyCommand(OutputStreams streams) {
    super(streams);
  }

  @Override
  int run() throws IOException {
    try (Device device = open()) {
      NvmeController controller = device.controller();
      Integer only = nsid;
      List<Namespace> namespaces =
          only == null ? controller.namespaces() : List.of(controller.namespace(only));
      print(
          () -> printText(controller, namespaces, only == null),
          () -> object(controller, namespaces, only == null));
    }
    return ExitCode.OK;
  }

  private void printText(
      NvmeController controller, List<Namespace> namespaces, boolean withController) {
    IdentifyController identify = controller.identify();
    out()
        .printf(
            "%s, serial %s, firmware %s, NVMe %s%n",
            identify.getText(IdentifyController.MN),
            identify.getText(IdentifyController.SN),
            identify.getText(IdentifyController.FR),
            controller.version());
    out()
        .printf(
            "%d I/O queue pairs of depth up to %d, %s a command%n",
            controller.maxQueuePairs(),
            controller.maxDepth(),
            Sizes.format(controller.maxTransferBytes()));
    out().println("placed: " + controller.function().home());
    if (withController) {
      out().println();
      Fields.print(out(), "Identify Controller", identify);
    }
    for (Namespace namespace : namespaces) {
      out().println();
      String size = namespace.usable() ? " (" + Sizes.format(namespace.bytes()) + ")" : "";
      Fields.print(out(), "Identify Namespace: " + namespace + size, namespace.identify());
    }
  }

  private Map<String, Object> object(
      NvmeController controller, List<Namespace> namespaces, boolean withController) {
    IdentifyController identify = controller.identify();
    Map<String, Object> object = new LinkedHashMap<>();
    object.put("device", device());
    object.put("model", identify.getText(IdentifyController.MN));
    object.put("serial", identify.getText(IdentifyController.SN));
    object.put("firmware", identify.getText(IdentifyController.FR));
    object.put("version", controller.version().toString());
    object.put("max_queue_pairs", controller.maxQueuePairs());
    object.put("max_depth", controller.maxDepth());
    object.put("max_transfer_bytes", controller.maxTransferBytes());
    object.put("numa", controller.function().home().toString());
    if (withController) {
      object.put("controller", Fields.json(identify));
    }
    List<Object> all = new ArrayList<>();
    for (Namespace namespace : namespaces) {
      Map<String, Object> one = Descriptions.namespace(namespace);
      one.put("fields", Fields.json(namespace.identify()));
      all.add(one);
    }
    object.put("namespaces", all);
    return object;
  }
}
