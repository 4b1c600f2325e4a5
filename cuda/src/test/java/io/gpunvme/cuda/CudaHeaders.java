package io.gpunvme.cuda;

import io.gpunvme.testing.PipPackages;
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

  /**
   * The folder that has a header; skips the test where there is none.
   *
   * @param pip the package of pip that has it
   */
  public static Path folder(String header, String pip) {
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
    PipPackages.toolkit().ifPresent(toolkits::add);
    for (Path toolkit : toolkits) {
      Path folder = toolkit.resolve("include");
      if (Files.exists(folder.resolve(header))) {
        return folder;
      }
    }
    return Assumptions.abort(
        "no "
            + header
            + " in CUDA_HOME, /usr/local/cuda* or /usr/include; "
            + PipPackages.why(pip));
  }

  /** The folder with cuda.h. */
  public static Path folder() {
    return folder("cuda.h", "nvidia-cuda-runtime");
  }
}
