package io.gpunvme.models;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.device.Device;
import io.gpunvme.gpu.device.DeviceAddress;
import io.gpunvme.gpu.queue.FakeGpu;
import io.gpunvme.models.LoadRequest.Order;
import io.gpunvme.models.format.FormatException;
import io.gpunvme.models.format.SafetensorsWriter;
import io.gpunvme.storage.GpuStorage;
import io.gpunvme.storage.SetShape;
import io.gpunvme.storage.StorageAddress;
import io.gpunvme.storage.StorageOptions;
import io.gpunvme.storage.fs.FileAddress;
import io.gpunvme.storage.fs.partition.Disk;
import io.gpunvme.storage.path.StorageException;
import io.gpunvme.storage.path.StorageException.Kind;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Models written to raw devices and read from there. */
class RawModelWriterTest extends RawModels {
  private StorageAddress address(String kind) throws IOException {
    Path first = image();
    switch (kind) {
      case "namespace" -> {
        return StorageAddress.parse("sim:file=" + first);
      }
      case "long blocks" -> {
        return StorageAddress.parse("sim:lba=4096,file=" + first);
      }
      case "partition" -> {
        byte[] table = new Disk(512, 64).mbr(0, 0, 0x83, 100, 4000).bytes;
        return StorageAddress.parse("sim:file=" + image("parts.img", table) + "#1");
      }
      case "stripe" -> {
        return StorageAddress.parse(
            "stripe:sim:file=%s,sim:file=%s;unit=65536"
                .formatted(first, image("b.img", new byte[0])));
      }
      case "replica" -> {
        return StorageAddress.parse(
            "replica:sim:file=%s,sim:file=%s".formatted(first, image("b.img", new byte[0])));
      }
      case "partition of a file" -> {
        byte[] table = new Disk(512, 64).mbr(0, 0, 0x83, 100, 4000).bytes;
        return StorageAddress.on(FileAddress.parse(image("parts.img", table) + "#1"));
      }
      default -> {
        return StorageAddress.parse("file:" + first + "?path=" + kind);
      }
    }
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "namespace",
        "long blocks",
        "partition",
        "stripe",
        "replica",
        "partition of a file",
        "mmap",
        "pinned",
        "auto"
      })
  void whatIsWrittenIsLoadedBitForBit(String kind) throws IOException {
    StorageAddress address = address(kind);
    requireNoModel(address.file() == null ? address : StorageAddress.parse("sim:file=" + image()));
    RawWriteReport report = write(address, options().verify(true));
    assertThat(report.tensors()).isEqualTo(7);
    assertThat(report.verified()).isEqualTo(7);
    assertThat(report.bytes()).isEqualTo(content.values().stream().mapToInt(b -> b.length).sum());
    assertThat(report.path()).isNotBlank();
    requireModel(address);
    try (Weights raw = Weights.open(address, accelerator);
        Weights plain = source()) {
      assertThat(raw.storedManifest().orElseThrow().entries())
          .isEqualTo(plain.manifest(LoadListener.NONE).entries());
      assertThat(plain.storedManifest()).isEmpty();
      assertThat(raw.format()).contains("a model", "safetensors");
      assertThat(raw.tensors().keySet()).containsExactlyElementsOf(plain.tensors().keySet());
    }
  }

  @Test
  void memoryThatOnlyCopiesReachWillDo() throws IOException {
    accelerator.close();
    accelerator = new FakeGpu();
    StorageAddress address = StorageAddress.parse("file:" + image());
    write(address, options().verify(true));
    requireModel(address);
  }

  @Test
  void whatLiesBesideAPartitionStays() throws IOException {
    StorageAddress address = address("partition");
    byte[] before = Files.readAllBytes(folder.resolve("parts.img"));
    write(address, options());
    byte[] after = Files.readAllBytes(folder.resolve("parts.img"));
    assertThat(Arrays.mismatch(before, after)).isEqualTo(100 * 512);
    assertThat(Arrays.copyOfRange(after, 4100 * 512, IMAGE))
        .isEqualTo(Arrays.copyOfRange(before, 4100 * 512, IMAGE));
  }

  @ParameterizedTest
  @CsvSource({"FILE, 512", "LAYERS, 4096", "LAYERS, 1048576"})
  void orderAndAlignmentAreKept(Order order, long alignment) throws IOException {
    StorageAddress address =
        StorageAddress.parse(
            "sim:file=" + Files.write(folder.resolve("large.img"), new byte[12 << 20]));
    write(address, options().order(order).alignment(alignment));
    requireModel(address);
    try (Weights raw = Weights.open(address, accelerator)) {
      assertThat(raw.tensors().values()).allMatch(t -> t.offset() % alignment == 0);
      List<String> names = List.copyOf(raw.tensors().keySet());
      if (order == Order.LAYERS) {
        assertThat(names)
            .containsExactly(
                "four", "layers.2.b", "layers.2.w", "layers.10.w", "nothing", "odd", "scalar");
      }
    }
  }

  @Test
  void modelsWithoutTensorsAreWrittenToo() throws IOException {
    Path empty = folder.resolve("empty.safetensors");
    Files.write(empty, new SafetensorsWriter().layout(SafetensorsWriter.WORD).head());
    model = empty;
    StorageAddress address = StorageAddress.parse("sim:file=" + image());
    write(address, options().verify(true));
    try (Weights raw = Weights.open(address, accelerator)) {
      assertThat(raw.tensors()).isEmpty();
    }
  }

  // ---- refusals

  @Test
  void whatIsTooSmallIsSaid() throws IOException {
    Path small = Files.write(folder.resolve("small.img"), new byte[256 << 10]);
    byte[] before = Files.readAllBytes(small);
    assertThatExceptionOfType(StorageException.class)
        .isThrownBy(() -> write(StorageAddress.parse("sim:file=" + small), options()))
        .satisfies(e -> assertThat(e.kind()).isEqualTo(Kind.NO_SPACE))
        .withMessageMatching(".*the model needs \\d+ bytes here .*there are only 262144");
    assertThat(Files.readAllBytes(small)).isEqualTo(before);
  }

  private static byte[] start(String what) {
    ByteBuffer start = ByteBuffer.allocate(8192);
    switch (what) {
      case "ext4" -> start.put(1080, (byte) 0x53).put(1081, (byte) 0xEF);
      case "vfat" ->
          start
              .put(82, "FAT32   ".getBytes(StandardCharsets.US_ASCII))
              .put(510, (byte) 0x55)
              .put(511, (byte) 0xAA);
      case "NTFS" -> start.put(3, "NTFS    ".getBytes(StandardCharsets.US_ASCII));
      case "LVM2" -> start.put(536, "LVM2 001".getBytes(StandardCharsets.US_ASCII));
      case "MBR" -> {
        return new Disk(512, 64).mbr(0, 0, 0x83, 10, 20).bytes;
      }
      case "partition table" -> start.put(512, "EFI PART".getBytes(StandardCharsets.US_ASCII));
      default -> throw new AssertionError(what);
    }
    return start.array();
  }

  @ParameterizedTest
  @ValueSource(strings = {"ext4", "vfat", "NTFS", "LVM2", "MBR", "partition table"})
  void whatIsThereIsNotOverwritten(String what) throws IOException {
    Path disk = image("disk.img", start(what));
    byte[] before = Files.readAllBytes(disk);
    StorageAddress address = StorageAddress.parse("sim:file=" + disk);
    assertThatExceptionOfType(InvalidRequestException.class)
        .isThrownBy(() -> write(address, options()))
        .withMessageContaining(what)
        .withMessageContaining("--overwrite");
    assertThat(Files.readAllBytes(disk)).isEqualTo(before);
    write(address, options().overwrite(true));
    requireModel(address);
  }

  @Test
  void anotherModelIsNotOverwritten() throws IOException {
    StorageAddress address = StorageAddress.parse("sim:file=" + image());
    write(address, options());
    assertThatExceptionOfType(InvalidRequestException.class)
        .isThrownBy(() -> write(address, options()))
        .withMessageContaining("a raw model");
    write(address, options().overwrite(true));
    requireModel(address);
  }

  @Test
  void optionsThatMakeNoSenseAreRefused() throws IOException {
    StorageAddress address = StorageAddress.parse("sim:file=" + image());
    for (long alignment : new long[] {0, 256, 3000, 2 << 20, -4096}) {
      assertThatExceptionOfType(InvalidRequestException.class)
          .isThrownBy(() -> write(address, options().alignment(alignment)));
    }
    assertThatExceptionOfType(InvalidRequestException.class)
        .isThrownBy(() -> write(address, RawWriteOptions.named("x".repeat(256))));
    assertThatExceptionOfType(InvalidRequestException.class)
        .isThrownBy(() -> options().order(Order.GIVEN));
    try (Weights weights = source();
        GpuStorage readOnly = GpuStorage.open(address, accelerator, StorageOptions.defaults())) {
      assertThatExceptionOfType(StorageException.class)
          .isThrownBy(
              () ->
                  RawModelWriter.prepare(weights, readOnly, options(), BATCH)
                      .run(LoadListener.NONE))
          .satisfies(e -> assertThat(e.kind()).isEqualTo(Kind.PERMISSION));
    }
  }

  @Test
  void stripesInAnotherShapeAreRefused() throws IOException {
    String members =
        "stripe:sim:file=%s,sim:file=%s".formatted(image(), image("b.img", new byte[0]));
    write(StorageAddress.parse(members + ";unit=65536"), options());
    for (String other :
        List.of(members + ";unit=131072", "sim:file=" + folder.resolve("disk.img"))) {
      assertThatExceptionOfType(FormatException.class)
          .isThrownBy(() -> Weights.open(StorageAddress.parse(other), accelerator).close())
          .withMessageContaining("2 members in units of 65536");
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3})
  void stripesOnOpenControllersAreOpenedByTheirAddress(int count) throws IOException {
    List<String> members = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      members.add("sim:file=" + image("member" + i, new byte[0]));
    }
    List<Device> devices = new ArrayList<>();
    try (Weights weights = source()) {
      for (String m : members) {
        devices.add(Device.open(DeviceAddress.parse(m), WRITABLE, ""));
      }
      try (GpuStorage target =
          GpuStorage.over(
              devices.stream().map(Device::controller).toList(),
              SetShape.striped(65_536),
              accelerator,
              StorageOptions.defaults().withWrite(true))) {
        RawModelWriter.prepare(weights, target, options(), BATCH).run(LoadListener.NONE);
      }
    } finally {
      devices.forEach(Device::close);
    }
    requireModel(
        StorageAddress.parse(
            count == 1
                ? members.getFirst()
                : "stripe:" + String.join(",", members) + ";unit=64KiB"));
  }

  @Test
  void whatChangesOnTheDeviceIsFound() throws IOException {
    Path disk = image();
    StorageAddress address = StorageAddress.parse("sim:file=" + disk);
    write(address, options());
    try (Weights weights = Weights.open(address, accelerator);
        RandomAccessFile file = new RandomAccessFile(disk.toFile(), "rw")) {
      long at = weights.tensors().get("odd").offset() + 777;
      file.seek(at);
      int was = file.read();
      file.seek(at);
      file.write(was ^ 4);
    }
    assertThatExceptionOfType(StorageException.class)
        .isThrownBy(() -> requireModel(address))
        .withMessageContaining("'odd'");
  }
}
