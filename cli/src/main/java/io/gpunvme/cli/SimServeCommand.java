package io.gpunvme.cli;

import io.gpunvme.cli.output.OutputStreams;
import io.gpunvme.cli.output.Sizes;
import io.gpunvme.gpu.device.DeviceAddress;
import io.gpunvme.gpu.device.Transport;
import io.gpunvme.gpu.watch.Watch;
import io.gpunvme.sim.NamespaceConfig;
import io.gpunvme.sim.SimConfig;
import io.gpunvme.sim.SimulatedController;
import io.gpunvme.sim.serve.VfioUserServer;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** {@code gpunvme sim serve}. */
@Command(
    name = "serve",
    description = {
      "Offer an embedded NVMe controller to other programs, over vfio-user.",
      "They see a PCI function: another gpunvme, QEMU 10.1 or newer, SPDK's initiator (which wants"
          + " --socket DIR/cntrl).",
      "One client at a time; the next one finds the controller as after power-on. Ctrl-C or SIGTERM"
          + " ends it and removes the socket."
    },
    footer = {
      "",
      "Examples:",
      "  gpunvme sim serve --socket /tmp/ssd.sock",
      "  gpunvme sim serve --socket /tmp/ssd.sock --namespace ram=4GiB,lba=4096 --workers 4",
      "  gpunvme sim serve --socket /tmp/ssd.sock --namespace file=disk.img --allow-write",
      "  gpunvme sim serve --socket /tmp/ssd.sock --set mdts=128KiB,latency=20us",
      "  gpunvme identify vfio-user:/tmp/ssd.sock         in another terminal",
      "  qemu-system-x86_64 … -object memory-backend-memfd,id=m,size=2G,share=on \\",
      "    -machine q35,memory-backend=m -device \\",
      "    '{\"driver\":\"vfio-user-pci\",\"socket\":{\"type\":\"unix\",\"path\":\"/tmp/ssd.sock\"}}'"
    })
final class SimServeCommand extends BaseCommand {
  private static final String RAM = "ram";
  private static final String FILE = "file";
  private static final String READ_ONLY = "readonly";
  private static final List<String> KEYS = List.of(RAM, FILE, "size", "lba", "media", READ_ONLY);

  @Option(
      names = "--socket",
      paramLabel = "PATH",
      required = true,
      description = "Socket to listen on; only this user may connect.")
  private Path socket = Path.of("");

  @Option(
      names = "--namespace",
      paramLabel = "WHAT",
      description =
          "ram=SIZE or file=PATH, and size=, lba=, readonly=on, media=mapped, with commas between"
              + " them. Repeat it for each further namespace (ram=64MiB).")
  private List<String> namespaces = new ArrayList<>();

  @Option(
      names = "--workers",
      paramLabel = "N",
      description = "Threads that do the controller's work (half of the processors, 4 at most).")
  private @Nullable Integer workers;

  @Option(
      names = "--set",
      paramLabel = "KEY=VALUE,…",
      description = "Other settings of the controller: the keys of gpunvme help sim.")
  private String settings = "";

  @Option(
      names = "--faults",
      paramLabel = "RULES",
      description = "Faults of the controller: rules separated by ';' (see gpunvme help faults).")
  private String faults = "";

  @Option(
      names = "--allow-write",
      description = "Let clients change files; without it namespaces in files are write-protected.")
  private boolean allowWrite;

  SimServeCommand(OutputStreams streams) {
    super(streams);
  }

  @Override
  int run() throws IOException {
    SimConfig config = config();
    if (config.workers() == 0) {
      throw new UsageException("without workers the controller cannot answer: give 1 or more");
    }
    try (SimulatedController controller = SimulatedController.create(config)) {
      controller.faults().add(faults);
      try (VfioUserServer server = VfioUserServer.start(controller, socket);
          Watch.Registration watched = Watch.served(address(), controller);
          CancelledAtExit exit = new CancelledAtExit()) {
        exit.now(
            () -> {
              watched.close();
              server.close();
              controller.close();
            });
        Ending.leaves("nobody serves at " + socket + " any more");
        print(() -> printText(config), () -> object(config));
        out().flush();
        server.await();
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      }
    }
    return ExitCode.OK;
  }

  private SimConfig config() {
    DeviceAddress all = DeviceAddress.embedded();
    if (workers != null) {
      all = all.with("workers", Integer.toString(workers));
    }
    int nsid = 1;
    for (String text : namespaces.isEmpty() ? List.of(RAM + "=64MiB") : namespaces) {
      DeviceAddress given = DeviceAddress.parse(Transport.SIM + ":" + text);
      DeviceAddress rest = given;
      String prefix = nsid == 1 ? "" : "ns" + nsid + ".";
      for (String key : KEYS) {
        String value = given.option(key);
        if (value != null) {
          all = all.with(prefix + (key.equals(RAM) ? "size" : key), value);
          rest = rest.without(key);
        }
      }
      check(text, given, rest);
      if (given.has(FILE) && !allowWrite) {
        all = all.with(prefix + READ_ONLY, "on");
      }
      nsid++;
    }
    String text = all.optionText();
    SimConfig config = SimConfig.parse(settings.isBlank() ? text : text + "," + settings);
    boolean writable =
        config.namespaces().stream().anyMatch(ns -> ns.file() != null && !ns.readOnly());
    if (writable && !allowWrite) {
      throw new UsageException(
          "--set " + settings + ": a file that clients may change needs --allow-write");
    }
    return config;
  }

  private static void check(String text, DeviceAddress given, DeviceAddress rest) {
    if (!rest.optionText().isEmpty()) {
      throw new UsageException(
          "--namespace %s: '%s' is not one of %s"
              .formatted(text, rest.optionText(), String.join(", ", KEYS)));
    }
    if (given.has(RAM) == given.has(FILE)) {
      throw new UsageException("--namespace " + text + ": give either ram=SIZE or file=PATH");
    }
    if (given.has(RAM) && given.has("size")) {
      throw new UsageException(
          "--namespace " + text + ": ram= is the size already; leave out size=");
    }
  }

  private void printText(SimConfig config) {
    out().println("serving at " + socket + "; Ctrl-C ends it");
    int nsid = 1;
    for (NamespaceConfig ns : config.namespaces()) {
      out()
          .printf(
              "  namespace %d: %s in blocks of %d bytes, %s%s%n",
              nsid++,
              Sizes.format(bytes(ns)),
              ns.lbaSize(),
              ns.file() == null ? "in memory" : ns.file(),
              ns.readOnly() ? ", write-protected" : "");
    }
    out().println("use it: gpunvme identify " + address());
  }

  /** By which clients open it. */
  private String address() {
    return DeviceAddress.servedAt(socket).toString();
  }

  /** The size given, or else the file's own. */
  private static long bytes(NamespaceConfig ns) {
    Path file = ns.file();
    try {
      return ns.size() > 0 || file == null ? ns.size() : Files.size(file);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private Map<String, Object> object(SimConfig config) {
    List<Object> all = new ArrayList<>();
    for (NamespaceConfig ns : config.namespaces()) {
      Map<String, Object> one = new LinkedHashMap<>();
      Path file = ns.file();
      one.put("bytes", bytes(ns));
      one.put("block_size", ns.lbaSize());
      one.put("file", file == null ? null : file.toString());
      one.put("read_only", ns.readOnly());
      all.add(one);
    }
    Map<String, @Nullable Object> object = new LinkedHashMap<>();
    object.put("socket", socket.toAbsolutePath().toString());
    object.put("address", address());
    object.put("pid", ProcessHandle.current().pid());
    object.put("workers", config.workers());
    object.put("namespaces", all);
    return object;
  }
}
