package io.gpunvme.storage;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** One storage that several accelerators use. */
@Timeout(120)
class SeveralAcceleratorsTest {
  private static final int BYTES = 1 << 20;

  @TempDir Path folder;

  private final byte[] data = new byte[BYTES];

  private Path file() throws IOException {
    new Random(1).nextBytes(data);
    return Files.write(folder.resolve("file"), data);
  }

  private static byte[] read(GpuStorage storage, Accelerator accelerator, int offset, int length) {
    try (DeviceBuffer buffer = accelerator.allocate(length)) {
      storage.read(offset, buffer, 0, length);
      byte[] got = new byte[length];
      buffer.copyToHost(0, MemorySegment.ofArray(got));
      return got;
    }
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "file:%s",
        "sim:latency=0,file=%s",
        "stripe:sim:latency=0,file=%s,sim:size=1MiB,latency=0;unit=1MiB",
      })
  void eachReadsTheSameBytes(String address) throws IOException {
    String name = address.formatted(file());
    try (Accelerator one = CpuAccelerator.open();
        Accelerator other = CpuAccelerator.open();
        GpuStorage storage = GpuStorage.open(name, one)) {
      byte[] first = read(storage, one, 1234, 100_000);
      GpuStorage theirs = storage.on(other);
      assertThat(theirs.accelerator()).isSameAs(other);
      assertThat(theirs.address()).isEqualTo(storage.address());
      assertThat(read(theirs, other, 1234, 100_000)).isEqualTo(first);
      assertThat(first).isEqualTo(Arrays.copyOfRange(data, 1234, 101_234));
      // Each counts its own.
      assertThat(theirs.stats().values()).allMatch(s -> s.readBytes() == 100_000);
      theirs.close();
      theirs.close();
      assertThatThrownBy(() -> read(theirs, other, 0, 1))
          .isInstanceOf(StorageClosedException.class);
      assertThat(read(storage, one, 0, 10)).hasSize(10);
    }
  }

  @Test
  void whoClosesTheStorageClosesItForAll() throws IOException {
    try (Accelerator one = CpuAccelerator.open();
        Accelerator other = CpuAccelerator.open()) {
      GpuStorage storage = GpuStorage.open("sim:latency=0,file=" + file(), one);
      GpuStorage theirs = storage.on(other);
      GpuStorage again = theirs.on(one);
      assertThat(read(again, one, 7, 100)).isEqualTo(Arrays.copyOfRange(data, 7, 107));
      storage.close();
      assertThatThrownBy(() -> read(theirs, other, 0, 1))
          .isInstanceOf(StorageClosedException.class);
      assertThatThrownBy(() -> read(again, one, 0, 1)).isInstanceOf(StorageClosedException.class);
      assertThatThrownBy(() -> storage.on(other)).isInstanceOf(StorageClosedException.class);
    }
  }

  @Test
  void writesOfPartsOfOneBlockDoNotLoseEachOther() throws Exception {
    try (Accelerator one = CpuAccelerator.open();
        Accelerator other = CpuAccelerator.open();
        GpuStorage storage =
            GpuStorage.open(
                StorageAddress.parse("sim:latency=0,size=1MiB,lba=4096"),
                one,
                StorageOptions.defaults().withWrite(true));
        GpuStorage theirs = storage.on(other)) {
      Thread even = writer(storage, one, 0);
      Thread odd = writer(theirs, other, 1);
      even.join();
      odd.join();
      byte[] expected = new byte[4096];
      for (int i = 0; i < expected.length; i++) {
        expected[i] = (byte) (i / 16 + 1);
      }
      assertThat(read(storage, one, 0, 4096)).isEqualTo(expected);
    }
  }

  /** Writes every other 16 bytes of the first block, each time anew. */
  private static Thread writer(GpuStorage storage, Accelerator accelerator, int first) {
    return Thread.ofPlatform()
        .start(
            () -> {
              try (DeviceBuffer buffer = accelerator.allocate(16)) {
                for (int i = first; i < 256; i += 2) {
                  byte[] part = new byte[16];
                  Arrays.fill(part, (byte) (i + 1));
                  buffer.copyFromHost(MemorySegment.ofArray(part), 0);
                  storage.write(16L * i, buffer, 0, 16);
                }
              }
            });
  }
}
