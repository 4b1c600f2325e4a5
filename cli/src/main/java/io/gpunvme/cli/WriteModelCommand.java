package io.gpunvme.cli;

import io.gpunvme.cli.output.Counts;
import io.gpunvme.cli.output.OutputStreams;
import io.gpunvme.cli.output.Progress;
import io.gpunvme.cli.output.Sizes;
import io.gpunvme.cli.output.Table;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.models.LoadRequest.Order;
import io.gpunvme.models.RawModelWriter;
import io.gpunvme.models.RawWriteOptions;
import io.gpunvme.models.RawWriteReport;
import io.gpunvme.models.Weights;
import io.gpunvme.models.raw.Superblock;
import io.gpunvme.storage.GpuStorage;
import io.gpunvme.storage.StorageAddress;
import io.gpunvme.storage.StorageOptions;
import io.gpunvme.storage.fs.FileAddress;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.TypeConversionException;

/** {@code gpunvme write-model MODEL --device DEVICE}. */
@Command(
    name = "write-model",
    description = {
      "Write a model to a namespace, partition or set, without a file system.",
      "There it has its tensors, aligned, and an index with their checksums (docs/raw-models.md).",
      "'load --device DEVICE' loads it.",
      "The model becomes valid at the end. An interrupted write leaves no model, not even the old"
          + " one."
    },
    footer = {
      "",
      "Examples:",
      "  gpunvme write-model /models/llama --device vfio:0000:01:00.0 --allow-write",
      "  gpunvme write-model a.gguf --device 'vfio:0000:01:00.0#2' --allow-write --verify",
      "  gpunvme write-model a.gguf --device 'stripe:sim:file=a.img,sim:file=b.img' --allow-write",
      "  gpunvme load --device 'vfio:0000:01:00.0#2' --verify"
    })
final class WriteModelCommand extends BaseCommand {
  @Parameters(index = "0", paramLabel = "MODEL", description = ModelPlace.MODEL)
  private String model = "";

  @Option(
      names = "--device",
      paramLabel = "DEVICE",
      required = true,
      description = "Target: DEVICE or DEVICE#PARTITION; an image file, stripe:… or replica:….")
  private String device = "";

  @Option(
      names = "--allow-write",
      description = "Required, because write-model overwrites data on the device.")
  private boolean allowWrite;

  @Option(
      names = "--overwrite",
      description =
          "Write even if the device begins with a file system, a partition table, or another raw"
              + " model.")
  private boolean overwrite;

  @Option(
      names = "--name",
      paramLabel = "NAME",
      description = "Name of the model on the device (the name of MODEL's file or folder).")
  private @Nullable String name;

  @Option(
      names = "--order",
      paramLabel = "ORDER",
      converter = OrderConverter.class,
      description = "Order of the tensors. file: as in the files; layers: by name (file).")
  private Order order = Order.FILE;

  @Option(
      names = "--align",
      paramLabel = "SIZE",
      converter = Converters.Size.class,
      description = "Tensors begin at multiples of this power of two, 512 to 1MiB (4096).")
  private long align = 4096;

  @Option(names = "--verify", description = "Read everything back before the model becomes valid.")
  private boolean verify;

  @Mixin private final AcceleratorOption accelerator = new AcceleratorOption();

  WriteModelCommand(OutputStreams streams) {
    super(streams);
  }

  /** {@code file} or {@code layers}. */
  static final class OrderConverter implements ITypeConverter<Order> {
    @Override
    public Order convert(String text) {
      return switch (text) {
        case "file" -> Order.FILE;
        case "layers" -> Order.LAYERS;
        default -> throw new TypeConversionException("'" + text + "' is neither file nor layers");
      };
    }
  }

  @Override
  int run() throws IOException {
    if (!allowWrite) {
      throw new UsageException(
          "write-model overwrites data on the device; add --allow-write to allow it");
    }
    StorageAddress source = ModelPlace.existing(ModelPlace.parse(model));
    StorageAddress target = target(source);
    RawWriteOptions options =
        RawWriteOptions.named(name())
            .withOrder(order)
            .withAlignment(align)
            .withOverwrite(overwrite)
            .withVerify(verify);
    try (Accelerator opened = accelerator.open().accelerator();
        Weights weights = Weights.open(source, opened, StorageOptions.defaults());
        GpuStorage storage =
            GpuStorage.open(target, opened, StorageOptions.defaults().withWrite(true))) {
      RawModelWriter writer = RawModelWriter.prepare(weights, storage, options);
      RawWriteReport report;
      try (Progress progress = Progress.on(streams());
          CancelledAtExit stop = new CancelledAtExit()) {
        progress.begin(verify ? "write, verify" : "write", writer.listenedBytes());
        stop.now(writer::cancel);
        Ending.leaves(device + " has no model unless it is whole");
        report = writer.run(progress::moved);
      }
      Ending.leaves("the model is written");
      print(() -> printText(weights, report), () -> object(weights, report));
    }
    return ExitCode.OK;
  }

  private StorageAddress target(StorageAddress source) throws IOException {
    FileAddress place = FileAddress.parse(device);
    if (place.explicit()) {
      throw new UsageException(
          device + ": a raw model goes to a device or partition, not to a file in a file system");
    }
    FileAddress inside = source.inside() == null ? source.partition() : source.inside();
    if (inside != null && inside.device().equals(place.device())) {
      throw new UsageException(model + " is on the device that it would overwrite");
    }
    StorageAddress target = ModelPlace.existing(StorageAddress.on(place));
    if (target.toString().equals(source.toString())) {
      throw new UsageException(model + " would overwrite itself");
    }
    for (Path to : BackingFiles.of(target)) {
      for (Path from : BackingFiles.of(source)) {
        if (BackingFiles.overlap(from, to)) {
          throw new UsageException("%s would overwrite itself: it is in %s".formatted(model, to));
        }
      }
    }
    return target;
  }

  /** The name, cut to the room in the superblock, in whole characters. */
  private String name() {
    String given = name;
    if (given != null) {
      return given;
    }
    Path file = ModelPlace.parse(model).file();
    Path last = file == null ? null : file.toAbsolutePath().normalize().getFileName();
    String text = last == null ? model : last.toString();
    while (text.getBytes(StandardCharsets.UTF_8).length > Superblock.LONGEST_NAME) {
      text = text.substring(0, text.offsetByCodePoints(text.length(), -1));
    }
    return text;
  }

  private void printText(Weights weights, RawWriteReport r) {
    out().printf("%s written to %s and flushed%n", weights.name(), device);
    Table table = new Table(0);
    table.row("tensors", r.tensors());
    table.row("bytes", Sizes.format(r.bytes()));
    table.row("on the device", Sizes.format(r.totalBytes()));
    table.row("time", "%.3f s".formatted(r.nanos() / 1e9));
    table.row("rate", "%.2f GB/s".formatted(r.gigabytesPerSecond()));
    table.row(
        "of writing",
        "%.2f GB/s, %.3f s".formatted(r.writeGigabytesPerSecond(), r.writeNanos() / 1e9));
    table.row("of reading", "%.3f s".formatted(r.readNanos() / 1e9));
    table.row("path", r.path() + ": " + r.mode());
    table.row("verified", r.verified() + " of " + Counts.of(r.tensors(), "tensor"));
    table.row("UUID", r.uuid());
    table.print(out());
  }

  private Map<String, Object> object(Weights weights, RawWriteReport report) {
    Map<String, Object> all = new LinkedHashMap<>();
    all.put("model", weights.name());
    all.put("format", weights.format());
    all.put("device", device);
    all.put("name", name());
    report.toJson().asMap().forEach(all::put);
    return all;
  }
}
