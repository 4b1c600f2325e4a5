package io.gpunvme.storage;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.storage.path.cufile.FakeGpuDirect;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A library that stands in for libcufile is where everybody would find it, and is left alone. */
class NoCuFileTest {
  @TempDir Path folder;

  @ParameterizedTest
  @ValueSource(strings = {"cpu", "gpu"})
  void otherPathsAndRefusalsLeaveLibcufileAlone(String who) throws Exception {
    Assumptions.assumeTrue(Files.isWritable(Path.of("/dev/shm")), "no /dev/shm");
    String library = FakeGpuDirect.cuFileLibrary().toString();
    String accelerator = who.equals("cpu") ? who : FakeGpuDirect.cudaLibrary().toString();
    assertThat(NoCuFileProbe.run(accelerator, folder, Map.of("GPUNVME_LIBCUFILE", library)))
        .containsExactly(
            "unseen: accelerator",
            "unseen: pinned",
            "unseen: mmap",
            "unseen: auto",
            "unseen: refused",
            "seen: loaded");
  }
}
