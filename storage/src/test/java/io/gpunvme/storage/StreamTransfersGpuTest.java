package io.gpunvme.storage;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.cuda.CudaEvent;
import io.gpunvme.cuda.CudaStream;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.accel.TestGpu;
import io.gpunvme.storage.path.StorageException;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** What streams see of transfers in their order. */
@Tag("gpu")
@Timeout(120)
class StreamTransfersGpuTest {
  private static final int SIZE = 24 << 20;
  private static final int STREAMS = 64;

  @TempDir Path folder;

  private final GpuAccelerator gpu = TestGpu.open();
  private final byte[] content = new byte[SIZE];
  private Path file;

  @BeforeEach
  void prepare() throws IOException {
    new Random(3).nextBytes(content);
    file = folder.resolve("data.bin");
    Files.write(file, content);
  }

  @AfterEach
  void close() {
    gpu.close();
  }

  private static byte[] bytes(DeviceBuffer buffer) {
    byte[] all = new byte[(int) buffer.size()];
    buffer.copyToHost(0, MemorySegment.ofArray(all));
    return all;
  }

  private static void await(CompletableFuture<Void> future)
      throws ExecutionException, InterruptedException, TimeoutException {
    future.get(60, TimeUnit.SECONDS);
  }

  /** More streams than the GPU has hardware queues, all of them waiting at once. */
  @Test
  void workBehindAReadSeesItsData() throws Exception {
    int each = 300_001;
    try (GpuStorage storage = GpuStorage.open(file.toString(), gpu);
        DeviceBuffer buffer = gpu.allocate((long) STREAMS * each);
        DeviceBuffer copy = gpu.allocate((long) STREAMS * each)) {
      List<CudaStream> streams = new ArrayList<>();
      List<CompletableFuture<Void>> reads = new ArrayList<>();
      for (int i = 0; i < STREAMS; i++) {
        CudaStream stream = gpu.context().stream();
        streams.add(stream);
        long at = (long) i * each;
        reads.add(storage.streams().read(at + 11, buffer, at, each, stream));
        stream.copyOnDeviceAsync(copy.deviceAddress() + at, buffer.deviceAddress() + at, each);
      }
      for (CudaStream stream : streams) {
        stream.synchronize();
        stream.close();
      }
      for (CompletableFuture<Void> read : reads) {
        await(read);
      }
      byte[] seen = bytes(copy);
      assertThat(Arrays.mismatch(seen, 0, STREAMS * each, content, 11, 11 + STREAMS * each))
          .isEqualTo(-1);
    }
  }

  @Test
  void aLongReadHasSeveralPieces() throws Exception {
    try (GpuStorage storage = GpuStorage.open(file.toString(), gpu);
        DeviceBuffer buffer = gpu.allocate(SIZE);
        CudaStream stream = gpu.context().stream()) {
      for (int i = 0; i < 8; i++) {
        await(storage.streams().read(5, buffer, 1, SIZE - 5, stream));
        stream.synchronize();
        assertThat(Arrays.mismatch(bytes(buffer), 1, SIZE - 4, content, 5, SIZE)).isEqualTo(-1);
        stream.fillAsync(buffer.deviceAddress(), (byte) 0, SIZE);
      }
    }
  }

  @Test
  void aWriteTakesWhatTheStreamHasMade() throws Exception {
    StorageOptions options = StorageOptions.defaults().withWrite(true);
    try (GpuStorage storage =
            GpuStorage.open(StorageAddress.parse(file + "?path=mmap"), gpu, options);
        DeviceBuffer buffer = gpu.allocate(SIZE);
        CudaStream stream = gpu.context().stream()) {
      int n = 9_000_001;
      stream.fillAsync(buffer.deviceAddress(), (byte) 1, n);
      CompletableFuture<Void> first = storage.streams().write(3, buffer, 0, n, stream);
      stream.fillAsync(buffer.deviceAddress(), (byte) 2, n);
      CompletableFuture<Void> second = storage.streams().write(10_000_000, buffer, 0, n, stream);
      await(first);
      await(second);
      Arrays.fill(content, 3, 3 + n, (byte) 1);
      Arrays.fill(content, 10_000_000, 10_000_000 + n, (byte) 2);
      assertThat(Arrays.mismatch(Files.readAllBytes(file), content)).isEqualTo(-1);
    }
  }

  @Test
  void whatIsReadBehindAWriteIsWhatWasWritten() throws Exception {
    int n = 5_000_001;
    try (GpuStorage storage =
            GpuStorage.open(
                StorageAddress.parse("sim:size=16MiB"),
                gpu,
                StorageOptions.defaults().withWrite(true));
        DeviceBuffer buffer = gpu.allocate(n);
        DeviceBuffer copy = gpu.allocate(n);
        CudaStream stream = gpu.context().stream();
        CudaStream other = gpu.context().stream();
        CudaEvent written = gpu.context().event()) {
      StreamTransfers streams = storage.streams();
      for (byte round = 1; round <= 20; round++) {
        byte first = round;
        byte last = (byte) -round;
        stream.fillAsync(buffer.deviceAddress(), first, n);
        streams.write(100, buffer, 0, n, stream);
        stream.fillAsync(buffer.deviceAddress(), last, n);
        // Over the first one, and not beside it.
        CompletableFuture<Void> write = streams.write(100, buffer, 0, n, stream);
        CudaStream reader = round % 2 == 0 ? stream : other;
        stream.record(written);
        reader.await(written);
        reader.fillAsync(copy.deviceAddress(), (byte) 99, n);
        await(streams.read(100, copy, 0, n, reader));
        reader.synchronize();
        byte[] expected = new byte[n];
        Arrays.fill(expected, last);
        assertThat(Arrays.mismatch(bytes(copy), 0, n, expected, 0, n))
            .as("round %d", round)
            .isEqualTo(-1);
        await(write);
      }
    }
  }

  /** The stream waits for a word; what is in it of a transfer comes after that. */
  @Test
  void whatIsCancelledIsOverWhenTheStreamIsPastIt() throws Exception {
    StorageOptions options = StorageOptions.defaults().withWrite(true);
    int n = 5_000_001;
    try (GpuStorage storage =
            GpuStorage.open(StorageAddress.parse(file + "?path=mmap"), gpu, options);
        DeviceBuffer buffer = gpu.allocate(n);
        DeviceBuffer word = gpu.allocatePinned(StreamGate.BYTES);
        CudaStream stream = gpu.context().stream()) {
      StreamTransfers streams = storage.streams();
      StreamGate gate = new StreamGate(word, 0);
      gate.await(stream, 1);
      CompletableFuture<Void> write;
      CompletableFuture<Void> read;
      try {
        write = streams.write(3, buffer, 0, n, stream);
        read = streams.read(3, buffer, 0, n, stream);
        assertThat(write.cancel(true)).isTrue();
        // Its data may have been in pinned memory before.
        read.cancel(true);
        assertThat(write).isNotDone();
      } finally {
        gate.open(1);
      }
      assertThatThrownBy(() -> await(write))
          .cause()
          .isInstanceOfSatisfying(
              StorageException.class,
              e -> assertThat(e.kind()).isEqualTo(StorageException.Kind.CANCELLED));
      await(read.handle((_, _) -> null));
      await(streams.read(7, buffer, 0, n, stream));
      stream.synchronize();
      assertThat(Arrays.mismatch(bytes(buffer), 0, n, content, 7, 7 + n)).isEqualTo(-1);
      assertThat(Arrays.mismatch(Files.readAllBytes(file), content)).isEqualTo(-1);
    }
  }

  @Test
  void aFailedReadLetsTheStreamGoOn() throws Exception {
    try (GpuStorage storage = GpuStorage.open(file + "?path=mmap", gpu);
        DeviceBuffer buffer = gpu.allocate(1 << 20);
        CudaStream stream = gpu.context().stream()) {
      try (FileChannel channel = FileChannel.open(file, StandardOpenOption.WRITE)) {
        // Still mapped, and still its size when it was opened, but not there any more.
        channel.truncate(1 << 20);
        channel.write(java.nio.ByteBuffer.allocate(1), SIZE - 1);
        channel.truncate(1 << 20);
      }
      CompletableFuture<Void> read = storage.streams().read((1 << 20) - 10, buffer, 0, 10, stream);
      await(read);
      stream.synchronize();
      assertThatThrownBy(() -> storage.streams().read(1 << 20, buffer, 0, 10, stream))
          .isInstanceOf(RuntimeException.class);
      stream.synchronize();
    }
  }

  @Test
  void closingWaitsForTheStreams() {
    DeviceBuffer buffer = gpu.allocate(SIZE);
    CudaStream stream = gpu.context().stream();
    GpuStorage storage = GpuStorage.open(file.toString(), gpu);
    CompletableFuture<Void> read = storage.streams().read(0, buffer, 0, SIZE, stream);
    storage.close();
    stream.synchronize();
    assertThat(read).isDone();
    if (read.isCompletedExceptionally()) {
      assertThat(read.exceptionNow())
          .isInstanceOfAny(StorageException.class, IllegalStateException.class);
    }
    assertThatThrownBy(() -> storage.streams().read(0, buffer, 0, 1, stream))
        .isInstanceOf(IllegalStateException.class);
  }
}
