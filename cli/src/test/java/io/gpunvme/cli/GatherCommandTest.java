package io.gpunvme.cli;

import io.gpunvme.cuda.Cuda;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;

class GatherCommandTest {
  @Test
  void withoutAGpuItSaysWhatIsMissing() {
    Assumptions.assumeFalse(Cuda.isAvailable(), "there is a GPU");

    Cli.run("gather").failed(ExitCode.FAILURE, "CUDA");
  }

  @Test
  void numbersThatMakeNoSenseAreWrongUsage() {
    Cli.run("gather", "--rows", "0").failed(ExitCode.USAGE, "rows 0 is outside 1..");
    Cli.run("gather", "--threads", "-1").failed(ExitCode.USAGE, "threads -1 is outside 1..");
    Cli.run("gather", "--row-bytes", "1MiB").failed(ExitCode.USAGE, "row bytes");
  }
}
