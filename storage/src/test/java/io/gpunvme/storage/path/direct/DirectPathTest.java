package io.gpunvme.storage.path.direct;

import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.device.Device;
import io.gpunvme.gpu.queue.FakeGpu;
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

/** Commands of our own to an embedded controller that serves the file, issued by the CPU. */
class DirectPathTest {
  abstract static class Direct extends DataPathContract {
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

    /** How the controller reaches the file; empty for its usual way. */
    String media() {
      return "";
    }

    DataPath open(Path file, Accelerator accelerator, int lba, Placement placement) {
      Device device =
          Device.open(
              "sim:file=" + file + media() + ",lba=" + lba,
              ControllerOptions.builder().allowWrite(true).build());
      InitiatorOptions options = InitiatorOptions.defaults().with(InitiatorKind.CPU, placement);
      return new ClosingPath(
          DirectPath.open(
              device.controller(), 1, accelerator, options, new ReentrantReadWriteLock(true)),
          device::close);
    }
  }

  @Nested
  class HostMemory extends Direct {
    @Override
    protected Accelerator accelerator() {
      return CpuAccelerator.open();
    }

    @Override
    protected DataPath open(Path file, Accelerator accelerator) {
      return open(file, accelerator, 512, Placement.HOST);
    }
  }

  @Nested
  class LongBlocks extends Direct {
    @Override
    protected Accelerator accelerator() {
      return CpuAccelerator.open();
    }

    @Override
    protected DataPath open(Path file, Accelerator accelerator) {
      return open(file, accelerator, 4096, Placement.HOST);
    }
  }

  @Nested
  class MappedImage extends HostMemory {
    @Override
    String media() {
      return ",media=mapped";
    }
  }

  /** The controller reaches the accelerator's memory. */
  @Nested
  class DeviceMemory extends Direct {
    @Override
    protected Accelerator accelerator() {
      return new FakeGpu();
    }

    @Override
    protected DataPath open(Path file, Accelerator accelerator) {
      return open(file, accelerator, 512, Placement.VRAM_DATA);
    }
  }

  /** It does not: everything for that memory goes by way of host memory. */
  @Nested
  class DeviceMemoryByHostMemory extends Direct {
    @Override
    protected Accelerator accelerator() {
      return new FakeGpu();
    }

    @Override
    protected DataPath open(Path file, Accelerator accelerator) {
      return open(file, accelerator, 512, Placement.HOST);
    }
  }
}
