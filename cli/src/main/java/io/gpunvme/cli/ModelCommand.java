package io.gpunvme.cli;

import io.gpunvme.cli.output.Streams;
import io.gpunvme.core.accel.Accelerator;
import io.gpunvme.core.accel.Accelerators;
import io.gpunvme.core.storage.StorageAddress;
import io.gpunvme.core.storage.StorageOptions;
import io.gpunvme.core.weights.Weights;
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

  ModelCommand(Streams streams) {
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
