package io.gpunvme.storage;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.cuda.cufile.CuFile;
import io.gpunvme.gpu.accel.TestGpu;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** NVIDIA's own library is there, and who does not use it does not load it. */
@Tag("gpu")
class NoCuFileGpuTest {
  @TempDir Path folder;

  @Test
  void otherPathsAndRefusalsLeaveLibcufileAlone() throws Exception {
    TestGpu.require();
    Assumptions.assumeTrue(
        CuFile.find(System.getenv(), Path.of("/")).isPresent(), "no libcufile on this machine");
    Assumptions.assumeTrue(Files.isWritable(Path.of("/dev/shm")), "no /dev/shm");
    assertThat(NoCuFileProbe.run("gpu", folder, Map.of()))
        .containsExactly(
            "unseen: accelerator",
            "unseen: pinned",
            "unseen: mmap",
            "unseen: auto",
            "unseen: refused",
            "seen: loaded");
  }
}
