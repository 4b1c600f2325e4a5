package io.gpunvme.cuda;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Assumptions;

/** NVIDIA's headers. */
public final class CudaHeaders {
  private CudaHeaders() {}

  /** The folder with cuda.h; skips the test where there is none. */
  public static Path folder() {
    List<Path> toolkits = new ArrayList<>();
    String home = System.getenv("CUDA_HOME");
    if (home != null) {
      toolkits.add(Path.of(home));
    }
    try (Stream<Path> installed = Files.list(Path.of("/usr/local"))) {
      installed.filter(p -> p.getFileName().toString().startsWith("cuda")).forEach(toolkits::add);
    } catch (IOException e) {
      // No such folder: no toolkit.
    }
    toolkits.add(Path.of("/usr"));
    for (Path toolkit : toolkits) {
      if (Files.exists(toolkit.resolve("include/cuda.h"))) {
        return toolkit.resolve("include");
      }
    }
    return Assumptions.abort("no cuda.h in CUDA_HOME, /usr/local/cuda* or /usr/include");
  }
}
