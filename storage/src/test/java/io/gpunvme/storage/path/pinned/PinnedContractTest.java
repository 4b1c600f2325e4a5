package io.gpunvme.storage.path.pinned;

import io.gpunvme.ffi.IoUring;
import io.gpunvme.ffi.IoUringUnavailableException;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.storage.path.DataPath;
import io.gpunvme.storage.path.DataPathContract;
import io.gpunvme.storage.path.file.SourceFile;
import java.nio.file.Path;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Nested;

/** Each way to do I/O, into host memory and into memory that only copies reach. */
class PinnedContractTest {
  private static final PinnedOptions OPTIONS =
      PinnedOptions.defaults().withMemory(256 << 10, 4 << 20);

  @Nested
  class PastThePageCacheByRing extends DataPathContract {
    @Override
    protected Accelerator accelerator() {
      return new RemoteAccelerator();
    }

    @Override
    protected DataPath open(Path file, Accelerator accelerator) {
      return opened(file, accelerator, OPTIONS.withEngine(Engine.URING).withDirect(DirectIo.TRUE));
    }
  }

  @Nested
  class PastThePageCacheByThreads extends DataPathContract {
    @Override
    protected Accelerator accelerator() {
      return new RemoteAccelerator();
    }

    @Override
    protected DataPath open(Path file, Accelerator accelerator) {
      return opened(
          file, accelerator, OPTIONS.withEngine(Engine.THREADS).withDirect(DirectIo.TRUE));
    }
  }

  @Nested
  class ThroughThePageCache extends DataPathContract {
    @Override
    protected Accelerator accelerator() {
      return new RemoteAccelerator();
    }

    @Override
    protected DataPath open(Path file, Accelerator accelerator) {
      return opened(file, accelerator, OPTIONS.withDirect(DirectIo.FALSE));
    }
  }

  @Nested
  class StraightIntoHostMemory extends DataPathContract {
    @Override
    protected Accelerator accelerator() {
      return CpuAccelerator.open();
    }

    @Override
    protected DataPath open(Path file, Accelerator accelerator) {
      return opened(file, accelerator, OPTIONS.withDirect(DirectIo.TRUE));
    }
  }

  @Nested
  class AsItComes extends DataPathContract {
    @Override
    protected Accelerator accelerator() {
      return new RemoteAccelerator();
    }

    @Override
    protected DataPath open(Path file, Accelerator accelerator) {
      return opened(file, accelerator, PinnedOptions.defaults());
    }
  }

  /** Skips what this machine or its temporary folder has not. */
  static DataPath opened(Path file, Accelerator accelerator, PinnedOptions options) {
    if (options.engine() == Engine.URING) {
      try {
        IoUring.open(1).close();
      } catch (IoUringUnavailableException e) {
        Assumptions.abort(e.getMessage());
      }
    }
    try (SourceFile probe = SourceFile.open(file.toString(), false)) {
      Assumptions.assumeTrue(
          options.direct() != DirectIo.TRUE || probe.hasDirect(), probe::directRefusal);
    }
    return PinnedPath.open(file.toString(), true, accelerator, options);
  }
}
