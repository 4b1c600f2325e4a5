package io.gpunvme.storage.path.cufile;

import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.storage.path.DataPath;
import io.gpunvme.storage.path.DataPathContract;
import java.nio.file.Path;
import org.junit.jupiter.api.Nested;

/** What every path does, with stand-ins for the GPU and cuFile. */
final class CuFilePathContractTest {
  private abstract static class OnStandIns extends DataPathContract {
    private final FakeGpuDirect fake = FakeGpuDirect.fresh();

    abstract CuFileOptions options();

    @Override
    protected Accelerator accelerator() {
      return fake.accelerator();
    }

    @Override
    protected DataPath open(Path file, Accelerator accelerator) {
      return fake.open(file, true, (GpuAccelerator) accelerator, options());
    }
  }

  private static final CuFileOptions SMALL = CuFileOptions.defaults().withChunk(64 << 10);

  @Nested
  class OneThread extends OnStandIns {
    @Override
    CuFileOptions options() {
      return SMALL.withThreads(1);
    }
  }

  @Nested
  class SeveralThreads extends OnStandIns {
    @Override
    CuFileOptions options() {
      return SMALL.withThreads(4);
    }
  }

  @Nested
  class Batches extends OnStandIns {
    @Override
    CuFileOptions options() {
      return SMALL.withThreads(3).withBatch(5);
    }
  }
}
