package io.gpunvme.storage;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.nvme.driver.ControllerOptions;
import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.nvme.spec.IoOpcode;
import io.gpunvme.sim.SimConfig;
import io.gpunvme.sim.SimulatedController;
import io.gpunvme.storage.fs.FileExtent;
import io.gpunvme.storage.path.StorageException;
import io.gpunvme.storage.path.StorageException.Kind;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What is written is made durable. */
class FlushTest {
  private static final StorageOptions WRITE = StorageOptions.defaults().withWrite(true);

  @TempDir Path folder;

  private final Accelerator accelerator = CpuAccelerator.open();

  @AfterEach
  void close() {
    accelerator.close();
  }

  /** A controller of our own, whose counters can be looked at. */
  private record Ssd(SimulatedController function, NvmeController controller)
      implements AutoCloseable {
    static Ssd open(String config) {
      SimulatedController function = SimulatedController.create(SimConfig.parse(config));
      return new Ssd(
          function,
          NvmeController.open(function, ControllerOptions.builder().allowWrite(true).build()));
    }

    long flushes() {
      return function.stats().ioCommands(IoOpcode.FLUSH);
    }

    @Override
    public void close() {
      controller.close();
    }
  }

  private static void write(GpuStorage storage) {
    try (DeviceBuffer buffer = storage.accelerator().allocate(4096)) {
      storage.write(0, buffer, 0, 4096);
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"size=1MiB", "size=1MiB,queues=1", "size=1MiB,queues=4,lba=4096"})
  void aControllerIsSentAFlush(String config) {
    try (Ssd ssd = Ssd.open(config);
        GpuStorage storage = GpuStorage.over(ssd.controller, accelerator, WRITE)) {
      storage.flush();
      assertThat(ssd.flushes()).isEqualTo(1);
      write(storage);
      assertThat(ssd.flushes()).isEqualTo(1);
      storage.flush();
      assertThat(ssd.flushes()).isEqualTo(2);
      // Where there are few queue pairs, transfers had to give theirs away.
      write(storage);
      storage.flush();
      assertThat(ssd.flushes()).isEqualTo(3);
      assertThat(ssd.function.stats().failed()).isZero();
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 4, 5})
  void flushesOneAfterTheOtherLeaveTransfersTheirQueues(int queues) {
    try (Ssd ssd = Ssd.open("size=1MiB,queues=" + queues);
        GpuStorage storage = GpuStorage.over(ssd.controller, accelerator, WRITE)) {
      for (int i = 1; i <= 3; i++) {
        write(storage);
        storage.flush();
        storage.flush();
        assertThat(ssd.flushes()).isEqualTo(2L * i);
      }
    }
  }

  @Test
  void aFlushThatFailsIsSaid() {
    try (Ssd ssd = Ssd.open("size=1MiB");
        GpuStorage storage = GpuStorage.over(ssd.controller, accelerator, WRITE)) {
      ssd.function.faults().add("status=generic/internal-error dnr on flush");
      assertThatExceptionOfType(StorageException.class)
          .isThrownBy(storage::flush)
          .satisfies(e -> assertThat(e.kind()).isEqualTo(Kind.IO))
          .withMessageContaining("Flush");
    }
  }

  @Test
  void allMembersOfASetAreFlushed() {
    try (Ssd a = Ssd.open("size=1MiB");
        Ssd b = Ssd.open("size=1MiB");
        GpuStorage set =
            new GpuStorage(
                StorageAddress.parse("stripe:sim:,sim:"),
                accelerator,
                WRITE,
                new SetSource(
                    List.of(
                        new DeviceSource(a.controller, accelerator, WRITE),
                        new DeviceSource(b.controller, accelerator, WRITE)),
                    SetShape.striped(4096)))) {
      write(set);
      set.flush();
      assertThat(a.flushes()).isEqualTo(1);
      assertThat(b.flushes()).isEqualTo(1);
      a.function.faults().add("status=generic/internal-error dnr on flush");
      assertThatExceptionOfType(StorageException.class)
          .isThrownBy(set::flush)
          .satisfies(e -> assertThat(e.source()).isEqualTo(a.controller.name()));
      // One that fails keeps no other from it.
      assertThat(b.flushes()).isEqualTo(2);
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"?path=pinned", "?path=mmap", ""})
  void aFileIsFlushed(String how) throws IOException {
    Path file = Files.write(folder.resolve("data"), new byte[1 << 20]);
    StorageAddress address = StorageAddress.parse("file:" + file + how);
    GpuStorage storage = GpuStorage.open(address, accelerator, WRITE);
    write(storage);
    storage.flush();
    storage.close();
    assertThatIllegalStateException().isThrownBy(storage::flush);
  }

  @Test
  void whatIsReadOnlyIsNotFlushed() throws IOException {
    Path file = Files.write(folder.resolve("data"), new byte[1 << 20]);
    try (GpuStorage storage = GpuStorage.open("file:" + file, accelerator)) {
      assertThatExceptionOfType(StorageException.class)
          .isThrownBy(storage::flush)
          .satisfies(e -> assertThat(e.kind()).isEqualTo(Kind.PERMISSION));
    }
    try (GpuStorage device =
            GpuStorage.open(StorageAddress.parse("file:" + file), accelerator, WRITE);
        GpuStorage inside =
            new GpuStorage(
                StorageAddress.parse("file:" + file),
                accelerator,
                WRITE,
                new ExtentSource(
                    device, "inside", List.of(new FileExtent(0, 4096, 4096)), () -> {}))) {
      assertThatExceptionOfType(StorageException.class)
          .isThrownBy(inside::flush)
          .satisfies(e -> assertThat(e.kind()).isEqualTo(Kind.UNSUPPORTED));
    }
  }
}
