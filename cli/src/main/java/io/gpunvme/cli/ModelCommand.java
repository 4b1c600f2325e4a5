package io.gpunvme.cli;

import io.gpunvme.cli.output.OutputStreams;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.Accelerators;
import io.gpunvme.models.Weights;
import io.gpunvme.storage.StorageAddress;
import io.gpunvme.storage.StorageOptions;
import java.io.IOException;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Parameters;

/** A subcommand about one model. */
abstract class ModelCommand extends BaseCommand {
  @Parameters(index = "0", arity = "0..1", paramLabel = "MODEL", description = ModelPlace.MODEL)
  private @Nullable String model;

  @Mixin private final ModelPlace place = new ModelPlace();
  @Mixin private final AcceleratorOption accelerator = new AcceleratorOption();

  ModelCommand(OutputStreams streams) {
    super(streams);
  }

  /** Does the work on an open model. */
  abstract int run(Weights weights, StorageAddress address) throws IOException;

  @Override
  int run() throws IOException {
    StorageAddress wanted = place.address(model);
    Accelerators.Choice choice = accelerator.open();
    try (Accelerator opened = choice.accelerator();
        Weights weights = Weights.open(wanted, opened, StorageOptions.defaults())) {
      return run(weights, wanted);
    }
  }
}
