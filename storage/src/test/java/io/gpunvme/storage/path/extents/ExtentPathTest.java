package io.gpunvme.storage.path.extents;

import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.queue.FakeGpu;
import io.gpunvme.storage.fs.FileExtent;
import io.gpunvme.storage.path.ClosingPath;
import io.gpunvme.storage.path.DataPath;
import io.gpunvme.storage.path.DataPathContract;
import io.gpunvme.storage.path.mmap.MmapPath;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Nested;

/** A file in pieces all over an image, with holes, is read like any other. */
class ExtentPathTest {
  abstract static class Extents extends DataPathContract {
    private final Random random = new Random(7);

    @Override
    protected boolean writes() {
      return false;
    }

    @Override
    protected boolean shrinks() {
      return false;
    }

    /** A third of it is holes. */
    @Override
    protected void shape(byte[] bytes) {
      for (int at = 0; at + 30_000 < bytes.length; at += 90_000) {
        Arrays.fill(bytes, at, at + 30_000, (byte) 0);
      }
    }

    @Override
    protected DataPath open(Path file, Accelerator accelerator) {
      try {
        byte[] content = Files.readAllBytes(file);
        List<FileExtent> wanted = new ArrayList<>();
        for (int at = 0; at < content.length; ) {
          boolean hole = at % 90_000 == 0 && at + 30_000 < content.length;
          int end = Math.min(content.length, at / 90_000 * 90_000 + (hole ? 30_000 : 90_000));
          int n = hole ? 30_000 : Math.min(end - at, 1 + random.nextInt(40_000));
          wanted.add(new FileExtent(at, n, hole ? FileExtent.ZEROS : 0));
          at += n;
        }
        return scattered(file, content, wanted, accelerator);
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }

    private DataPath scattered(
        Path file, byte[] content, List<FileExtent> wanted, Accelerator accelerator)
        throws IOException {
      Path image = file.resolveSibling("image");
      byte[] bytes = new byte[2 * content.length];
      random.nextBytes(bytes);
      List<Integer> order = new ArrayList<>();
      for (int i = 0; i < wanted.size(); i++) {
        order.add(i);
      }
      Collections.shuffle(order, random);
      FileExtent[] placed = wanted.toArray(FileExtent[]::new);
      int at = 0;
      for (int i : order) {
        FileExtent e = placed[i];
        if (!e.isZeros()) {
          at += random.nextInt(3);
          System.arraycopy(content, (int) e.fileOffset(), bytes, at, (int) e.length());
          placed[i] = new FileExtent(e.fileOffset(), e.length(), at);
          at += (int) e.length();
        }
      }
      Files.write(image, bytes);
      DataPath device = MmapPath.open(image, false, accelerator);
      return new ClosingPath(new ExtentPath(device, List.of(placed), accelerator), device::close);
    }
  }

  @Nested
  class HostMemory extends Extents {
    @Override
    protected Accelerator accelerator() {
      return CpuAccelerator.open();
    }
  }

  @Nested
  class DeviceMemory extends Extents {
    @Override
    protected Accelerator accelerator() {
      return new FakeGpu();
    }
  }
}
