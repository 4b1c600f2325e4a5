package io.gpunvme.storage.path.direct;

import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.TestGpu;
import io.gpunvme.gpu.device.Device;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.gpu.transfer.InitiatorKind;
import io.gpunvme.gpu.transfer.InitiatorOptions;
import io.gpunvme.nvme.driver.ControllerOptions;
import io.gpunvme.storage.path.ClosingPath;
import io.gpunvme.storage.path.DataPath;
import io.gpunvme.storage.path.DataPathContract;
import java.nio.file.Path;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;

/** Commands that kernels issue to an embedded controller that serves the file. */
@Tag("gpu")
@Timeout(120)
class DirectPathGpuTest {
  abstract static class Direct extends DataPathContract {
    private final Placement placement;
    private final InitiatorKind initiator;

    Direct(InitiatorKind initiator, Placement placement) {
      this.initiator = initiator;
      this.placement = placement;
    }

    @Override
    protected int tail() {
      return 0;
    }

    @Override
    protected boolean shrinks() {
      return false;
    }

    @Override
    protected int requests() {
      return 300;
    }

    @Override
    protected Accelerator accelerator() {
      return TestGpu.open();
    }

    @Override
    protected DataPath open(Path file, Accelerator accelerator) {
      Device device =
          Device.open(
              "sim:lba=512,workers=4,file=" + file,
              ControllerOptions.builder().allowWrite(true).build());
      InitiatorOptions options = InitiatorOptions.defaults().with(initiator, placement);
      return new ClosingPath(
          DirectPath.open(
              device.controller(), 1, accelerator, options, new ReentrantReadWriteLock(true)),
          device::close);
    }
  }

  @Nested
  class ByTheGpuInHostMemory extends Direct {
    ByTheGpuInHostMemory() {
      super(InitiatorKind.GPU, Placement.HOST);
    }
  }

  @Nested
  class ByTheGpuWithDataInItsMemory extends Direct {
    ByTheGpuWithDataInItsMemory() {
      super(InitiatorKind.GPU, Placement.VRAM_DATA);
    }
  }

  @Nested
  class ByTheGpuInItsMemory extends Direct {
    ByTheGpuInItsMemory() {
      super(InitiatorKind.GPU, Placement.VRAM);
    }
  }

  @Nested
  class ByTheCpuWithDataInGpuMemory extends Direct {
    ByTheCpuWithDataInGpuMemory() {
      super(InitiatorKind.CPU, Placement.VRAM_DATA);
    }
  }
}
