package io.gpunvme.storage.path.pinned;

import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.TestGpu;
import io.gpunvme.storage.path.DataPath;
import io.gpunvme.storage.path.DataPathContract;
import java.nio.file.Path;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;

/** Into GPU memory. */
@Tag("gpu")
@Timeout(120)
class PinnedContractGpuTest {
  @Nested
  class PastThePageCacheByRing extends DataPathContract {
    @Override
    protected Accelerator accelerator() {
      return TestGpu.open();
    }

    @Override
    protected DataPath open(Path file, Accelerator accelerator) {
      PinnedOptions options =
          PinnedOptions.defaults().withEngine(Engine.URING).withDirect(DirectIo.TRUE);
      return PinnedContractTest.opened(file, accelerator, options);
    }
  }

  @Nested
  class PastThePageCacheByThreads extends DataPathContract {
    @Override
    protected Accelerator accelerator() {
      return TestGpu.open();
    }

    @Override
    protected DataPath open(Path file, Accelerator accelerator) {
      PinnedOptions options =
          PinnedOptions.defaults().withEngine(Engine.THREADS).withDirect(DirectIo.TRUE);
      return PinnedContractTest.opened(file, accelerator, options);
    }
  }

  @Nested
  class AsItComes extends DataPathContract {
    @Override
    protected Accelerator accelerator() {
      return TestGpu.open();
    }

    @Override
    protected DataPath open(Path file, Accelerator accelerator) {
      return PinnedContractTest.opened(file, accelerator, PinnedOptions.defaults());
    }
  }
}
