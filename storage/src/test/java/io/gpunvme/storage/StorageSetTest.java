package io.gpunvme.storage;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.storage.path.MemberStats;
import io.gpunvme.storage.path.PathKind;
import io.gpunvme.storage.path.StorageException;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Several SSDs or files behind one address. */
class StorageSetTest {
  @TempDir Path folder;

  private final Accelerator accelerator = CpuAccelerator.open();

  @AfterEach
  void close() {
    accelerator.close();
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "stripe:sim:size=1MiB,lba=512,sim:size=1MiB;unit=4096",
        "stripe:vfio:0000:01:00.0,vfio:0000:02:00.0,iommufd=false;unit=1048576",
        "stripe:file:/a?path=mmap,file:/b?path=mmap;unit=65536",
        "replica:file:/a,b?path=mmap,file:/c?path=mmap",
        "replica:sim:file=/a,media=mapped,sim:file=/b,media=mapped"
      })
  void setsAreNoFilesOnDevices(String text) {
    assertThat(StorageAddress.parse(text).inside()).isNull();
    StorageAddress inside = StorageAddress.parse(text + ":/models/a");
    assertThat(inside.inside()).isNotNull();
    assertThat(inside).hasToString(text + ":/models/a");
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "stripe:sim:size=1MiB,lba=512,sim:size=1MiB;unit=4096",
        "replica:sim:file=/a,media=mapped,sim:file=/b,media=mapped"
      })
  void addressesAreWrittenAsTheyAreRead(String text) {
    StorageAddress address = StorageAddress.parse(text);
    assertThat(address.members()).hasSize(2);
    assertThat(address).hasToString(text);
    assertThat(StorageAddress.parse(address.toString())).hasToString(text);
  }

  @Test
  void aBackslashKeepsASlashInAFilesName() {
    StorageAddress address = StorageAddress.parse("file:/a\\:/b");
    assertThat(address.inside()).isNull();
    assertThat(address.file()).isEqualTo(Path.of("/a:/b"));
    assertThat(StorageAddress.parse("file:/a#3").file()).isEqualTo(Path.of("/a#3"));
  }

  @Test
  void unitsHaveSizesAndADefault() {
    SetShape shape = StorageAddress.parse("stripe:/a,/b,./c;unit=64KiB").shape();
    assertThat(shape).isEqualTo(SetShape.striped(64 << 10));
    assertThat(StorageAddress.parse("stripe:/a,../b").shape()).isEqualTo(SetShape.striped());
    assertThat(StorageAddress.parse("replica:/a,/b,/c").members()).hasSize(3);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "stripe:",
        "stripe:/a",
        "stripe:/a,/b;unit=0",
        "stripe:/a,/b;unit=3000",
        "stripe:/a,/b;unit=",
        "replica:/a,/b;unit=4096",
        "stripe:stripe:/a,/b",
        "stripe:/a?path=mmap,/b"
      })
  void addressesThatMakeNoSenseAreRefused(String text) {
    assertThatExceptionOfType(InvalidRequestException.class)
        .isThrownBy(() -> StorageAddress.parse(text));
  }

  private byte[] write(GpuStorage storage, long seed) {
    byte[] data = new byte[(int) storage.size()];
    new Random(seed).nextBytes(data);
    try (DeviceBuffer buffer = accelerator.allocate(data.length)) {
      buffer.copyFromHost(MemorySegment.ofArray(data), 0);
      storage.write(0, buffer, 0, data.length);
    }
    return data;
  }

  private void check(GpuStorage storage, byte[] data) {
    Random random = new Random(3);
    try (DeviceBuffer buffer = accelerator.allocate(data.length)) {
      byte[] seen = new byte[data.length];
      for (int i = 0; i < 50; i++) {
        int offset = random.nextInt(data.length);
        int length = random.nextInt(data.length - offset + 1);
        storage.read(offset, buffer, 0, length);
        buffer.copyToHost(0, MemorySegment.ofArray(seen));
        assertThat(Arrays.mismatch(seen, 0, length, data, offset, offset + length)).isEqualTo(-1);
      }
    }
  }

  private StorageAddress ssds(String kind, int count, String end) throws IOException {
    StringBuilder text = new StringBuilder(kind);
    for (int i = 0; i < count; i++) {
      Path image = folder.resolve("ssd" + i);
      if (!Files.exists(image)) {
        Files.write(image, new byte[1 << 20]);
      }
      text.append(i == 0 ? "" : ",").append("sim:file=").append(image).append(",media=mapped");
    }
    return StorageAddress.parse(text + end);
  }

  @Test
  void stripesOverSsds() throws IOException {
    StorageAddress address = ssds("stripe:", 4, ";unit=16KiB");
    StorageOptions options = StorageOptions.defaults().withWrite(true);
    byte[] data;
    try (GpuStorage storage = GpuStorage.open(address, accelerator, options)) {
      assertThat(storage.size()).isEqualTo(4 << 20);
      assertThat(storage.blockSize()).isEqualTo(512);
      data = write(storage, 1);
      check(storage, data);
      assertThat(storage.members()).extracting(MemberStats::bytes).allMatch(b -> b > 1 << 20);
      assertThat(storage.explain().modes().get(PathKind.DIRECT)).contains("4 stripes of 16 KiB");
    }
    byte[] second = Files.readAllBytes(folder.resolve("ssd1"));
    assertThat(Arrays.mismatch(second, 0, 16 << 10, data, 16 << 10, 32 << 10)).isEqualTo(-1);
  }

  @Test
  void copiesOnSsdsAndFiles() throws IOException {
    StorageAddress address = ssds("replica:", 2, "");
    StorageOptions options = StorageOptions.defaults().withWrite(true);
    byte[] data;
    try (GpuStorage storage = GpuStorage.open(address, accelerator, options)) {
      data = write(storage, 2);
      check(storage, data);
    }
    assertThat(folder.resolve("ssd1")).hasBinaryContent(data);
    String files = "replica:" + folder.resolve("ssd0") + "," + folder.resolve("ssd1");
    try (GpuStorage storage = GpuStorage.open(files, accelerator)) {
      check(storage, data);
      assertThat(storage.explain().modes()).hasSizeGreaterThan(1);
    }
  }

  @Test
  void aMissingMemberIsNamed() throws IOException {
    Path there = Files.write(folder.resolve("there"), new byte[8192]);
    String text = "stripe:" + there + "," + folder.resolve("missing") + ";unit=4096";
    assertThatExceptionOfType(StorageException.class)
        .isThrownBy(() -> GpuStorage.open(text, accelerator))
        .withMessageContaining("missing");
  }
}
