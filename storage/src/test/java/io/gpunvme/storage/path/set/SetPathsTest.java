package io.gpunvme.storage.path.set;

import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.device.Device;
import io.gpunvme.gpu.queue.FakeGpu;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.gpu.transfer.InitiatorKind;
import io.gpunvme.gpu.transfer.InitiatorOptions;
import io.gpunvme.nvme.driver.ControllerOptions;
import io.gpunvme.nvme.pci.NumaHome;
import io.gpunvme.storage.path.ClosingPath;
import io.gpunvme.storage.path.DataPath;
import io.gpunvme.storage.path.DataPathContract;
import io.gpunvme.storage.path.direct.DirectPath;
import io.gpunvme.storage.path.mmap.MmapPath;
import io.gpunvme.storage.plan.Stripes;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import org.junit.jupiter.api.Nested;

/** Sets do what every path does, over SSDs and over files. */
class SetPathsTest {
  private static final int UNIT = 64 << 10;

  abstract static class Sets extends DataPathContract {
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
      return 200;
    }

    static Path member(Path file, int number) {
      return file.resolveSibling("member" + number);
    }

    /** Writes a file's bytes to files that hold them in turns. */
    static void spread(Path file, int members, int unit) {
      try {
        byte[] all = Files.readAllBytes(file);
        Stripes stripes = new Stripes(members, unit);
        for (int m = 0; m < members; m++) {
          byte[] own = new byte[(int) stripes.memberSize(m, all.length)];
          for (int at = 0; at < own.length; at += unit) {
            System.arraycopy(all, (int) stripes.offset(m, at), own, at, unit);
          }
          Files.write(member(file, m), own);
        }
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }

    static byte[] gathered(Path file, int members, int unit) throws IOException {
      byte[] all = new byte[(int) Files.size(file)];
      Stripes stripes = new Stripes(members, unit);
      for (int m = 0; m < members; m++) {
        byte[] own = Files.readAllBytes(member(file, m));
        for (int at = 0; at < own.length; at += unit) {
          System.arraycopy(own, at, all, (int) stripes.offset(m, at), unit);
        }
      }
      return all;
    }

    static Member ssd(Path image, Accelerator accelerator, Placement placement) {
      Device device =
          Device.open(
              "sim:file=" + image + ",lba=512",
              ControllerOptions.builder().allowWrite(true).build());
      InitiatorOptions options = InitiatorOptions.defaults().with(InitiatorKind.CPU, placement);
      DataPath path =
          DirectPath.open(
              device.controller(), 1, accelerator, options, new ReentrantReadWriteLock(true));
      return new Member(
          image.getFileName().toString(), new ClosingPath(path, device::close), NumaHome.NONE);
    }
  }

  /** Three SSDs whose data the controller writes to host memory. */
  @Nested
  class Striped extends Sets {
    private static final int MEMBERS = 3;

    Placement placement() {
      return Placement.HOST;
    }

    @Override
    protected Accelerator accelerator() {
      return CpuAccelerator.open();
    }

    @Override
    protected DataPath open(Path file, Accelerator accelerator) {
      spread(file, MEMBERS, UNIT);
      List<Member> members = new ArrayList<>();
      for (int m = 0; m < MEMBERS; m++) {
        members.add(ssd(member(file, m), accelerator, placement()));
      }
      return new StripedPath(members, UNIT);
    }

    @Override
    protected byte[] written(Path source) throws IOException {
      return gathered(source, MEMBERS, UNIT);
    }
  }

  /** And to the accelerator's. */
  @Nested
  class StripedDeviceMemory extends Striped {
    @Override
    Placement placement() {
      return Placement.VRAM_DATA;
    }

    @Override
    protected Accelerator accelerator() {
      return new FakeGpu();
    }
  }

  @Nested
  class StripedFiles extends Sets {
    @Override
    protected Accelerator accelerator() {
      return CpuAccelerator.open();
    }

    @Override
    protected DataPath open(Path file, Accelerator accelerator) {
      spread(file, 2, UNIT);
      return new StripedPath(
          List.of(
              new Member("a", MmapPath.open(member(file, 0), true, accelerator), NumaHome.NONE),
              new Member("b", MmapPath.open(member(file, 1), true, accelerator), NumaHome.NONE)),
          UNIT);
    }

    @Override
    protected byte[] written(Path source) throws IOException {
      return gathered(source, 2, UNIT);
    }
  }

  @Nested
  class Replicated extends Sets {
    @Override
    protected Accelerator accelerator() {
      return CpuAccelerator.open();
    }

    @Override
    protected DataPath open(Path file, Accelerator accelerator) {
      try {
        Files.copy(file, member(file, 1));
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
      return new ReplicatedPath(
          List.of(
              ssd(file, accelerator, Placement.HOST),
              ssd(member(file, 1), accelerator, Placement.HOST)));
    }
  }
}
