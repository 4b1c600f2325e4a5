package io.gpunvme.cuda;

import io.gpunvme.testing.PipPackages;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Assumptions;

/** NVIDIA's run-time compiler: the system's, or else pip's. It needs no GPU. */
public final class TestNvrtc {
  private TestNvrtc() {}

  /** Loads it; skips the test where there is none. */
  public static Nvrtc load() {
    try {
      return Nvrtc.load();
    } catch (CudaNotFoundException e) {
      Path pip = PipPackages.toolkit().map(t -> t.resolve("lib/libnvrtc.so.13")).orElse(null);
      if (pip == null || !Files.exists(pip)) {
        return Assumptions.abort("no NVRTC; " + PipPackages.why("nvidia-cuda-nvrtc"));
      }
      return Nvrtc.load(pip);
    }
  }
}
