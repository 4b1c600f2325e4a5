package io.gpunvme.cli;

import com.google.gson.JsonObject;
import io.gpunvme.cli.output.OutputStreams;
import io.gpunvme.cli.output.Sizes;
import io.gpunvme.cli.output.Table;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.Accelerators;
import io.gpunvme.gpu.transfer.Direction;
import io.gpunvme.storage.Explanation;
import io.gpunvme.storage.GpuStorage;
import io.gpunvme.storage.StorageAddress;
import io.gpunvme.storage.StorageOptions;
import io.gpunvme.storage.path.MemberStats;
import io.gpunvme.storage.path.PathKind;
import io.gpunvme.storage.path.RequestShape;
import io.gpunvme.storage.path.StorageException;
import io.gpunvme.storage.path.Verdict;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Parameters;

/** {@code gpunvme explain ADDRESS}. */
@Command(
    name = "explain",
    description = {
      "Say which path would read a file or an SSD here, and why the others would not.",
      "Names the fixes, and reads no data. ADDRESS is a file, with options as in"
          + " file:model.bin?path=pinned",
      "(docs/paths.md), or a device. If ADDRESS asks for a path that is not possible, the command"
          + " fails."
    },
    footer = {
      "",
      "Examples:",
      "  gpunvme explain model.safetensors",
      "  gpunvme explain 'file:/data/model.bin?path=cufile' --accelerator gpu",
      "  gpunvme explain sim:size=64MiB --json"
    })
final class ExplainCommand extends BaseCommand {
  private static final long MANY = 1L << 30;
  private static final int BLOCK = 4096;

  /** The requests that are explained, by name. */
  private static final Map<String, RequestShape> REQUESTS = requests();

  private static Map<String, RequestShape> requests() {
    int blocks = (int) (MANY / BLOCK);
    Map<String, RequestShape> all = new LinkedHashMap<>();
    all.put("long_cold", new RequestShape(Direction.READ, 1, MANY, 0));
    all.put("long_warm", new RequestShape(Direction.READ, 1, MANY, 1));
    all.put("blocks_cold", new RequestShape(Direction.READ, blocks, MANY, 0));
    all.put("blocks_warm", new RequestShape(Direction.READ, blocks, MANY, 1));
    return all;
  }

  @Parameters(index = "0", paramLabel = "ADDRESS", description = "A file or a device.")
  private String address = "";

  @Mixin private final AcceleratorOption accelerator = new AcceleratorOption();

  ExplainCommand(OutputStreams streams) {
    super(streams);
  }

  /**
   * The result.
   *
   * @param refusal why the path that was asked for is not possible, or null
   * @param cuFile what a file becomes under {@code gpunvme cufile}, or null
   */
  private record Answer(
      long bytes,
      Accelerators.Choice accelerator,
      Explanation explanation,
      List<MemberStats> members,
      Map<String, PathKind> requests,
      @Nullable String refusal,
      @Nullable UnderCuFile cuFile) {}

  @Override
  int run() throws IOException {
    StorageAddress wanted = parse();
    Path file = wanted.file();
    if (file != null && !Files.exists(file)) {
      throw new NoSuchFileException(file.toString());
    }
    Accelerators.Choice choice = accelerator.open();
    try (Accelerator opened = choice.accelerator()) {
      Answer answer = answer(wanted, choice);
      print(() -> printText(wanted, answer), () -> object(wanted, answer));
      String refusal = answer.refusal();
      if (refusal != null) {
        streams().err().println("gpunvme explain: " + refusal);
      }
      return refusal == null ? ExitCode.OK : ExitCode.FAILURE;
    }
  }

  /** The name of a file is enough, unless it has a colon like an address. */
  private StorageAddress parse() {
    return StorageAddress.parse(address.contains(":") ? address : "file:" + address);
  }

  private static Answer answer(StorageAddress wanted, Accelerators.Choice choice)
      throws IOException {
    try {
      return answer(wanted, choice, null);
    } catch (StorageException e) {
      if (wanted.path() == null) {
        throw e;
      }
      // The other paths can still be explained.
      return answer(wanted.with(null), choice, String.valueOf(e.getMessage()));
    }
  }

  private static Answer answer(
      StorageAddress address, Accelerators.Choice choice, @Nullable String refusal)
      throws IOException {
    Path file = address.file();
    try (GpuStorage storage =
        GpuStorage.open(address, choice.accelerator(), StorageOptions.defaults())) {
      Map<String, PathKind> chosen = new LinkedHashMap<>();
      REQUESTS.forEach((name, shape) -> chosen.put(name, storage.pathFor(shape)));
      return new Answer(
          storage.size(),
          choice,
          storage.explain(),
          storage.members(),
          chosen,
          refusal,
          file == null ? null : UnderCuFile.of(file, System.getenv()));
    }
  }

  private void printText(StorageAddress wanted, Answer a) {
    out()
        .printf(
            "%s, %s, to %s%n(%s)%n",
            wanted,
            Sizes.format(a.bytes()),
            a.accelerator().accelerator().name(),
            a.accelerator().reason());
    out().println();
    Table verdicts = new Table(0);
    for (Verdict v : a.explanation().verdicts()) {
      verdicts.row(v.kind(), v.automatic() ? "yes" : v.possible() ? "by name" : "no", v.reason());
      if (!v.fix().isEmpty()) {
        verdicts.row("", "", "fix: " + v.fix());
      }
    }
    verdicts.print(out());
    out().println();
    out().println("path=" + a.explanation().asked() + ": " + a.explanation().reason());
    Table chosen = new Table(2);
    a.requests()
        .forEach(
            (name, path) ->
                chosen.row(
                    name.replace("long_", "long reads, ").replace("blocks_", "4 KiB blocks, "),
                    path));
    chosen.print(out());
    new TreeMap<>(a.explanation().modes())
        .forEach((path, mode) -> out().println(path + ": " + mode));
    new TreeMap<>(a.explanation().numa())
        .forEach((name, node) -> out().println("placed: " + name + ", " + node));
    if (a.cuFile() != null) {
      out().println("under gpunvme cufile: " + a.cuFile().text());
    }
  }

  private static Map<String, Object> object(StorageAddress wanted, Answer a) {
    List<Map<String, Object>> verdicts = new ArrayList<>();
    for (Verdict v : a.explanation().verdicts()) {
      Map<String, Object> one = new LinkedHashMap<>();
      one.put("path", v.kind().toString());
      one.put("possible", v.possible());
      one.put("automatic", v.automatic());
      one.put("reason", v.reason());
      one.put("fix", v.fix().isEmpty() ? null : v.fix());
      verdicts.add(one);
    }
    Map<String, Object> object = new LinkedHashMap<>();
    object.put("address", wanted.toString());
    object.put("bytes", a.bytes());
    object.put("accelerator", a.accelerator().accelerator().name());
    object.put("accelerator_reason", a.accelerator().reason());
    object.put("asked", wanted.path() == null ? "auto" : wanted.path().toString());
    object.put("refusal", a.refusal());
    object.put("reason", a.explanation().reason());
    object.put("chosen", a.requests());
    object.put("paths", verdicts);
    object.put("modes", new TreeMap<>(a.explanation().modes()));
    object.put("numa", new TreeMap<>(a.explanation().numa()));
    JsonObject members = new JsonObject();
    MemberStats.addTo(members, a.members());
    members.asMap().forEach((name, one) -> object.put(name, one.isJsonNull() ? null : one));
    UnderCuFile cuFile = a.cuFile();
    Map<String, Object> under = new LinkedHashMap<>();
    if (cuFile != null) {
      under.put("kind", cuFile.kind().toString().toLowerCase(Locale.ROOT));
      under.put("address", cuFile.address());
    }
    object.put("under_cufile", cuFile == null ? null : under);
    return object;
  }
}
