package io.gpunvme.cli;

import io.gpunvme.cli.output.Streams;
import io.gpunvme.core.accel.Accelerator;
import io.gpunvme.core.accel.Accelerators;
import io.gpunvme.core.fs.FileAddress;
import io.gpunvme.core.storage.StorageAddress;
import io.gpunvme.core.storage.StorageOptions;
import io.gpunvme.core.weights.Weights;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** A subcommand about a model. */
abstract class ModelCommand extends BaseCommand {
  @Parameters(
      index = "0",
      paramLabel = "MODEL",
      description =
          "A safetensors file, an index of shards, a GGUF file (of a split one, any part), or the"
              + " folder of a model; with options as in file:/models/x?path=pinned.")
  private String model = "";

  @Option(
      names = "--device",
      paramLabel = "DEVICE",
      description =
          "The SSD (or image, or stripe:…) with the file system that MODEL is in; read without the"
              + " kernel (docs/file-systems.md).")
  private @Nullable String device;

  @Mixin private final AcceleratorOption accelerator = new AcceleratorOption();

  ModelCommand(Streams streams) {
    super(streams);
  }

  /** Does the work on an open model. */
  abstract int run(Weights weights, Accelerators.Choice choice) throws IOException;

  @Override
  int run() throws IOException {
    StorageAddress wanted = parse();
    Path file = wanted.file();
    if (file != null && !Files.exists(file)) {
      throw new NoSuchFileException(file.toString());
    }
    Accelerators.Choice choice = accelerator.open();
    try (Accelerator opened = choice.accelerator();
        Weights weights = Weights.open(wanted, opened, StorageOptions.defaults())) {
      return run(weights, choice);
    }
  }

  /** The name of a file will do, as long as it looks like nothing else. */
  private StorageAddress parse() {
    String on = device;
    if (on != null) {
      String path = model.startsWith("/") ? model : "/" + model;
      FileAddress place = FileAddress.parse(on).with(path);
      return StorageAddress.parse(place.toString());
    }
    return StorageAddress.parse(model.contains(":") ? model : "file:" + model);
  }
}
