package io.gpunvme.storage;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.storage.fs.FileAddress;
import io.gpunvme.storage.fs.FileSystemException;
import io.gpunvme.storage.fs.partition.Disk;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A partition as storage of its own. */
class PartitionStorageTest {
  private static final int SECTOR = 512;
  private static final int FIRST = 100;
  private static final int SECTORS = 1000;

  @TempDir Path folder;

  private final Accelerator accelerator = CpuAccelerator.open();
  private byte[] disk;
  private Path image;

  @BeforeEach
  void write() throws IOException {
    Disk made = new Disk(SECTOR, 4096).mbr(0, 0, 0x83, FIRST, SECTORS);
    disk = made.bytes;
    byte[] noise = new byte[disk.length - 4096];
    new Random(3).nextBytes(noise);
    System.arraycopy(noise, 0, disk, 4096, noise.length);
    image = Files.write(folder.resolve("disk.img"), disk);
  }

  @AfterEach
  void close() {
    accelerator.close();
  }

  private StorageAddress[] addresses() {
    return new StorageAddress[] {
      StorageAddress.parse("sim:file=" + image + "#1"),
      StorageAddress.parse("sim:file=" + image + ",queues=2#1"),
      StorageAddress.on(FileAddress.parse("file:" + image + "?path=pinned#1")),
    };
  }

  @Test
  void itTakesTheMemoryThatItsDeviceTakes() {
    try (GpuStorage part =
            GpuStorage.open(
                StorageAddress.parse("sim:file=" + image + "#1"),
                accelerator,
                StorageOptions.defaults());
        GpuStorage device =
            GpuStorage.open(
                StorageAddress.parse("sim:size=1MiB"), accelerator, StorageOptions.defaults())) {
      assertThat(part.gpuBytes()).isPositive().isEqualTo(device.gpuBytes());
    }
  }

  @Test
  void readsAndWritesStayInIt() throws IOException {
    for (StorageAddress address : addresses()) {
      int start = FIRST * SECTOR;
      int size = SECTORS * SECTOR;
      byte[] part = new byte[size];
      byte[] patch = "a patch of odd length".getBytes(java.nio.charset.StandardCharsets.UTF_8);
      try (GpuStorage storage =
              GpuStorage.open(address, accelerator, StorageOptions.defaults().withWrite(true));
          DeviceBuffer buffer = accelerator.allocate(size)) {
        assertThat(storage.size()).isEqualTo(size);
        assertThat(storage.blockSize()).isEqualTo(SECTOR);
        storage.read(0, buffer, 0, size);
        buffer.copyToHost(0, MemorySegment.ofArray(part));
        assertThat(part).isEqualTo(Arrays.copyOfRange(disk, start, start + size));
        buffer.copyFromHost(MemorySegment.ofArray(patch), 7);
        storage.write(12_345, buffer, 7, patch.length);
        storage.flush();
        assertThatExceptionOfType(InvalidRequestException.class)
            .isThrownBy(() -> storage.read(size - 1, buffer, 0, 2));
      }
      System.arraycopy(patch, 0, disk, start + 12_345, patch.length);
      assertThat(Files.readAllBytes(image)).isEqualTo(disk);
    }
  }

  @Test
  void addressesNameDevicesAndTheirPartitions() {
    StorageAddress address = addresses()[0];
    assertThat(address).hasToString("sim:file=" + image + "#1");
    assertThat(address.partition()).isNotNull();
    assertThat(address.inside()).isNull();
    assertThat(StorageAddress.parse("sim:file=" + image + "\\#1").partition()).isNull();
    assertThat(StorageAddress.parse("stripe:sim:,sim:;unit=4096#2").partition().partition())
        .isEqualTo(2);
    assertThat(StorageAddress.parse("sim:#1:/models/x").partition()).isNull();
    // A file's name may end so.
    assertThat(StorageAddress.parse("/images/disk#1").file()).isEqualTo(Path.of("/images/disk#1"));
  }

  @Test
  void oneThatIsNotThereIsAnError() {
    assertThatExceptionOfType(FileSystemException.class)
        .isThrownBy(() -> GpuStorage.open("sim:file=" + image + "#2", accelerator))
        .withMessageContaining("#1");
    assertThatExceptionOfType(FileSystemException.class)
        .isThrownBy(() -> GpuStorage.open("sim:size=1MiB#1", accelerator))
        .withMessageContaining("no partition table");
  }
}
