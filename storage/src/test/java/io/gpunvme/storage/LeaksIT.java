package io.gpunvme.storage;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.gpu.transfer.InitiatorKind;
import io.gpunvme.gpu.transfer.InitiatorOptions;
import io.gpunvme.storage.injection.OwnProcess;
import io.gpunvme.storage.path.DataPath;
import io.gpunvme.storage.path.PathKind;
import io.gpunvme.storage.path.Range;
import io.gpunvme.storage.path.StorageException;
import io.gpunvme.storage.path.Verdict;
import io.gpunvme.storage.path.cufile.FakeGpuDirect;
import io.gpunvme.storage.plan.Ranges;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Storages that are opened, used in every way, used badly and closed leave nothing: no descriptors,
 * no mappings, no memory, no threads.
 */
@Timeout(300)
class LeaksIT {
  private static final int SIZE = 1 << 20;
  private static final int TIMES = 60;

  /** What is made once and stays: classes, their files, what the process keeps. */
  private static final int FIRST = 3;

  @TempDir Path folder;

  private final byte[] content = new byte[SIZE];

  /**
   * A source that says how long it was, however long it is: a file that is shorter is found out by
   * its path.
   */
  private record OfThatTime(Source source, long size) implements Source {
    @Override
    public Source on(Accelerator other) {
      throw new UnsupportedOperationException();
    }

    @Override
    public String name() {
      return source.name();
    }

    @Override
    public int blockSize() {
      return source.blockSize();
    }

    @Override
    public List<Verdict> verdicts() {
      return source.verdicts();
    }

    @Override
    public DataPath open(PathKind kind) {
      return source.open(kind);
    }

    @Override
    public double resident(List<Range> ranges) {
      return source.resident(ranges);
    }

    @Override
    public void flush() {
      source.flush();
    }

    @Override
    public void close() {
      source.close();
    }
  }

  private static GpuStorage open(String path, Path file, Accelerator accelerator) {
    StorageAddress address =
        StorageAddress.parse(
            path.startsWith("sim:") ? path + ",lba=512,file=" + file : file + "?path=" + path);
    Source source = Sources.open(address, accelerator, options());
    return new GpuStorage(address, accelerator, options(), new OfThatTime(source, SIZE));
  }

  private static StorageOptions options() {
    return StorageOptions.defaults()
        .withWrite(true)
        .with(InitiatorOptions.defaults().with(InitiatorKind.CPU, Placement.HOST));
  }

  @ParameterizedTest
  @ValueSource(strings = {"sim:media=file", "sim:media=mapped", "mmap", "pinned", "auto"})
  void inHostMemory(String path) throws Exception {
    Path file = Files.write(folder.resolve("data.bin"), content);
    try (Accelerator cpu = CpuAccelerator.open()) {
      repeat(FIRST, path, file, cpu);
      OwnProcess before = OwnProcess.now(file);
      repeat(TIMES, path, file, cpu);
      before.assertUnchanged(file);
    }
  }

  /** Of a GPU whose driver is a stand-in that counts what it has given out. */
  @ParameterizedTest
  @ValueSource(strings = {"sim:media=file", "mmap", "pinned"})
  void inMemoryOfAGpu(String path) throws Exception {
    Path file = Files.write(folder.resolve("data.bin"), content);
    FakeGpuDirect fake = FakeGpuDirect.fresh();
    try (Accelerator gpu = fake.accelerator()) {
      repeat(FIRST, path, file, gpu);
      gpu.cuda().ifPresent(GpuAccelerator::freeKept);
      OwnProcess before = OwnProcess.now(file);
      int live = fake.liveCuda();
      repeat(TIMES, path, file, gpu);
      gpu.cuda().ifPresent(GpuAccelerator::freeKept);
      assertThat(fake.liveCuda()).as("memory, streams, events").isEqualTo(live);
      before.assertUnchanged(file);
    }
    fake.assertClean();
  }

  private void repeat(int times, String path, Path file, Accelerator accelerator)
      throws IOException {
    for (int i = 0; i < times; i++) {
      GpuStorage storage = open(path, file, accelerator);
      DeviceBuffer buffer = accelerator.allocate(SIZE);
      storage.register(buffer);
      work(storage, buffer);
      fail(storage, buffer, file);
      List<CompletableFuture<TransferResult>> all = cancel(storage, buffer);
      if (i % 2 == 0) {
        // While transfers are under way.
        storage.close();
        buffer.close();
      } else {
        all.forEach(one -> one.exceptionally(_ -> null).join());
        buffer.close();
        storage.close();
      }
    }
  }

  private static void work(GpuStorage storage, DeviceBuffer buffer) {
    storage.write(513, buffer, 5, 5000);
    storage.read(777, buffer, 3, 300_001);
    Ranges.Builder near = Ranges.builder();
    for (int i = 0; i < 100; i++) {
      near.add(100 + i * 1000L, 500);
    }
    assertThat(storage.read(near.build(), List.of(buffer)).bytes()).isEqualTo(50_000);
  }

  /** The file's end goes away and comes back. */
  private void fail(GpuStorage storage, DeviceBuffer buffer, Path file) throws IOException {
    try (RandomAccessFile shorter = new RandomAccessFile(file.toFile(), "rw")) {
      shorter.setLength(SIZE / 2);
      assertThatExceptionOfType(StorageException.class)
          .isThrownBy(() -> storage.read(SIZE - 8192, buffer, 0, 8192));
    } finally {
      Files.write(file, content);
    }
  }

  private static List<CompletableFuture<TransferResult>> cancel(
      GpuStorage storage, DeviceBuffer buffer) {
    List<CompletableFuture<TransferResult>> all = new ArrayList<>();
    for (int i = 0; i < 4; i++) {
      all.add(storage.readAsync(0, buffer, 0, SIZE));
    }
    all.get(0).cancel(true);
    all.get(2).cancel(true);
    try (Batch batch = storage.batch()) {
      batch.read(0, buffer, 0, SIZE);
      batch.cancel();
    }
    return all;
  }
}
