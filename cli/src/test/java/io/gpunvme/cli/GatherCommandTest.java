package io.gpunvme.cli;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.gson.JsonObject;
import io.gpunvme.cuda.Cuda;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Random;
import java.util.stream.Stream;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class GatherCommandTest {
  @TempDir Path folder;

  @Test
  void withoutAGpuItSaysWhatIsMissing() {
    Assumptions.assumeFalse(Cuda.isAvailable(), "there is a GPU");

    Cli.run("gather", "--initiator", "gpu").failed(ExitCode.FAILURE, "CUDA");
    assertThat(Cli.run("gather", "--threads", 8, "--hops", 2).succeeded().out())
        .startsWith("8 walks of the CPU to CPU stand-in")
        .endsWith("checked\n");
  }

  @Test
  void somebodysSsdIsOnlyRead() throws IOException {
    byte[] bytes = new byte[1 << 20];
    new Random(1).nextBytes(bytes);
    Path image = Files.write(folder.resolve("ssd.img"), bytes);
    Object[] gather = {
      "gather", "--device", "sim:file=" + image, "--initiator", "cpu", "--threads", 8, "--hops", 3
    };
    Cli.run(gather).failed(ExitCode.USAGE, "at most --rows 256");
    Object[] fewer = Stream.concat(Stream.of(gather), Stream.of("--rows", 256, "--json")).toArray();
    JsonObject json = Cli.run(fewer).succeeded().json();
    assertThat(json.get("verified").getAsBoolean()).isTrue();
    assertThat(json.get("initiator").getAsString()).isEqualTo("CPU");
    assertThat(json.get("reads").getAsLong()).isEqualTo(24);
    assertThat(image).hasBinaryContent(bytes);
  }

  @Test
  void numbersThatMakeNoSenseAreWrongUsage() {
    Cli.run("gather", "--rows", "0").failed(ExitCode.USAGE, "rows 0 is outside 1..");
    Cli.run("gather", "--threads", "-1").failed(ExitCode.USAGE, "threads -1 is outside 1..");
    Cli.run("gather", "--row-bytes", "1MiB").failed(ExitCode.USAGE, "row bytes");
  }
}
