package io.gpunvme.models;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.models.format.ElementType;
import io.gpunvme.models.format.FormatException;
import io.gpunvme.models.format.GgufBytes;
import io.gpunvme.models.format.SafetensorsWriter;
import io.gpunvme.models.format.TensorInfo;
import io.gpunvme.storage.StorageAddress;
import io.gpunvme.storage.StorageOptions;
import io.gpunvme.storage.Volume;
import io.gpunvme.storage.fs.BlockReader;
import io.gpunvme.storage.fs.FileAddress;
import io.gpunvme.storage.fs.FileSystemException;
import io.gpunvme.testing.Images;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Models in file systems of devices: the same as in the folder that the images were made of. */
class DeviceWeightsTest {
  private static final String INDEX = "model.safetensors.index.json";
  private static final String ONE = "model-00001-of-00002.safetensors";
  private static final String TWO = "model-00002-of-00002.safetensors";
  private static final int UNIT = 64 << 10;
  private static final int BLOCK = 4096;
  private static final int FAT_KIBIBYTES = 36_000;

  @TempDir static Path folder;
  private static final Random RANDOM = new Random(5);
  private static Path source;

  private final Accelerator accelerator = CpuAccelerator.open();

  @BeforeAll
  static void make() throws IOException {
    source = Files.createDirectory(folder.resolve("source"));
    Path sharded = Files.createDirectories(source.resolve("models/x"));
    Files.createDirectory(sharded.resolve("runs"));
    safetensors(sharded.resolve(ONE), "layers.0.w", "layers.1.w");
    safetensors(sharded.resolve(TWO), "head", "odd");
    index(sharded, "layers.0.w", ONE, "layers.1.w", ONE, "head", TWO, "odd", TWO);
    Path split = Files.createDirectories(source.resolve("models/split"));
    gguf(split, 1);
    gguf(split, 2, "a", "b");
    gguf(split, 3, "c");
    Path broken = Files.createDirectories(source.resolve("models/broken"));
    safetensors(broken.resolve(ONE), "here");
    index(broken, "here", ONE, "gone", TWO);
    safetensors(source.resolve("root.safetensors"), "root");
    Images.fat32(folder.resolve("fat"), FAT_KIBIBYTES, source);
    Images.stripe(folder.resolve("fat"), UNIT, folder.resolve("f0"), folder.resolve("f1"));
    // A folder of links into a store, as huggingface_hub makes it.
    Path hub = Files.createDirectories(source.resolve("hub/snapshots/1"));
    Path blobs = Files.createDirectories(source.resolve("hub/blobs"));
    for (String name : List.of(INDEX, ONE, TWO)) {
      Files.copy(sharded.resolve(name), blobs.resolve("blob-" + name));
      Files.createSymbolicLink(hub.resolve(name), Path.of("../../blobs/blob-" + name));
    }
    Files.createSymbolicLink(source.resolve("latest"), Path.of("hub/snapshots/1"));
    Files.createSymbolicLink(broken.resolve(TWO), Path.of("nowhere"));
    Images.ext4(folder.resolve("ext4"), "24M", source);
    Images.partition(folder.resolve("disk"), folder.resolve("ext4"));
    Images.stripe(folder.resolve("ext4"), UNIT, folder.resolve("e0"), folder.resolve("e1"));
  }

  private static void safetensors(Path file, String... names) throws IOException {
    SafetensorsWriter writer = new SafetensorsWriter();
    for (String name : names) {
      writer.tensor(name, ElementType.BF16, 320 + 8 * name.length(), 512);
    }
    writer.tensor("bytes of " + names[0], ElementType.U8, 12_347);
    SafetensorsWriter.Layout layout = writer.layout(SafetensorsWriter.WORD);
    byte[] bytes = new byte[(int) layout.fileBytes()];
    RANDOM.nextBytes(bytes);
    System.arraycopy(layout.head(), 0, bytes, 0, layout.head().length);
    Files.write(file, bytes);
  }

  private static void index(Path in, String... places) throws IOException {
    List<String> map = new ArrayList<>();
    for (int i = 0; i < places.length; i += 2) {
      map.add("\"%s\":\"%s\"".formatted(places[i], places[i + 1]));
    }
    Files.writeString(
        in.resolve(INDEX),
        "{\"metadata\":{},\"weight_map\":{%s}}".formatted(String.join(",", map)));
  }

  private static String part(int number) {
    return "m-%05d-of-00003.gguf".formatted(number);
  }

  private static void gguf(Path in, int number, String... names) throws IOException {
    GgufBytes file =
        GgufBytes.start(names.length, 3)
            .key("split.no", GgufBytes.U16)
            .i16(number - 1)
            .key("split.count", GgufBytes.U16)
            .i16(3)
            .key("split.tensors.count", GgufBytes.I32)
            .i32(3);
    for (int i = 0; i < names.length; i++) {
      file.tensor(names[i], /* I8 */ 24, 8192L * i, 8192);
    }
    if (names.length > 0) {
      byte[] data = new byte[8192 * names.length];
      RANDOM.nextBytes(data);
      file.pad(32).raw(data);
    }
    Files.write(in.resolve(part(number)), file.bytes());
  }

  @AfterEach
  void close() {
    accelerator.close();
  }

  private static String address(String device) {
    return device.replaceAll("file(=|:)(?=[a-z])", "file$1" + folder + "/");
  }

  private Weights open(String device, String path) {
    return Weights.open(StorageAddress.parse(address(device) + ":" + path), accelerator);
  }

  /** Devices with all of it; FAT32 knows no links. */
  static Stream<String> devices() {
    return Stream.of(
        "sim:lba=512,file=ext4",
        "sim:lba=4096,media=mapped,file=ext4",
        "file:ext4?path=pinned",
        "file:ext4",
        "sim:file=disk#2",
        "sim:file=disk",
        "stripe:sim:file=e0,sim:file=e1;unit=64KiB",
        "sim:file=fat",
        "file:fat?path=mmap",
        "stripe:sim:file=f0,sim:file=f1;unit=64KiB");
  }

  /** The same tensors, types, shapes and bytes as the model in the running system has. */
  private void same(String device, String path, Path plain) {
    try (Weights ours = open(device, path);
        Weights theirs =
            Weights.open(StorageAddress.parse("file:" + plain + "?path=mmap"), accelerator);
        LoadedWeights loaded = ours.load(LoadRequest.all());
        LoadedWeights expected = theirs.load(LoadRequest.all())) {
      assertThat(ours.tensors().keySet()).isEqualTo(theirs.tensors().keySet());
      assertThat(ours.files()).isEqualTo(theirs.files());
      assertThat(ours.format()).isEqualTo(theirs.format());
      assertThat(ours.bytes()).isEqualTo(theirs.bytes());
      // Whole blocks are read of a device: at both ends of what is read at once.
      assertThat(loaded.report().readBytes())
          .isBetween(ours.bytes(), ours.bytes() + 2L * BLOCK * ours.tensors().size());
      for (String name : theirs.tensors().keySet()) {
        TensorInfo ourInfo = ours.tensors().get(name);
        TensorInfo theirInfo = theirs.tensors().get(name);
        assertThat(ourInfo.shape()).isEqualTo(theirInfo.shape());
        assertThat(ourInfo.type()).isEqualTo(theirInfo.type());
        assertThat(ours.file(name)).isEqualTo(theirs.file(name));
        assertThat(Arrays.mismatch(bytes(loaded.tensor(name)), bytes(expected.tensor(name))))
            .as("%s:%s, %s", device, path, name)
            .isEqualTo(-1);
      }
    }
  }

  private static byte[] bytes(LoadedTensor t) {
    byte[] bytes = new byte[(int) t.bytes()];
    t.buffer().copyToHost(t.offset(), MemorySegment.ofArray(bytes));
    return bytes;
  }

  @ParameterizedTest
  @MethodSource("devices")
  void modelsAreFoundByFolderIndexAndFile(String device) {
    Path x = source.resolve("models/x");
    same(device, "/models/x", x);
    same(device, "/models/x/", x);
    same(device, "/models/x/" + INDEX, x);
    same(device, "/models/x/" + TWO, x.resolve(TWO));
    same(device, "/root.safetensors", source.resolve("root.safetensors"));
    same(device, "/", source.resolve("root.safetensors"));
  }

  @ParameterizedTest
  @MethodSource("devices")
  void anyPartOfASplitFileStandsForAll(String device) {
    Path first = source.resolve("models/split").resolve(part(1));
    same(device, "/models/split", first);
    for (int i = 1; i <= 3; i++) {
      same(device, "/models/split/" + part(i), first);
    }
  }

  @ParameterizedTest
  @MethodSource("devices")
  void linksLeadToTheFiles(String device) {
    if (device.contains("fat") || device.contains("f0")) {
      assertThatExceptionOfType(FileSystemException.class)
          .isThrownBy(() -> open(device, "/latest"))
          .satisfies(e -> assertThat(e.kind()).isEqualTo(FileSystemException.Kind.NOT_FOUND));
      return;
    }
    Path x = source.resolve("models/x");
    same(device, "/latest", x);
    same(device, "/latest/" + INDEX, x);
    same(device, "/hub/snapshots/1/" + ONE, x.resolve(ONE));
  }

  @ParameterizedTest
  @MethodSource("devices")
  void whatIsMissingIsNamed(String device) {
    assertThatExceptionOfType(FormatException.class)
        .isThrownBy(() -> open(device, "/models/broken"))
        .withMessageContaining(TWO)
        .satisfies(e -> assertThat(e.kind()).isEqualTo(FormatException.Kind.MISSING));
    assertThatExceptionOfType(FormatException.class)
        .isThrownBy(() -> open(device, "/models"))
        .withMessageContaining("/models")
        .satisfies(e -> assertThat(e.kind()).isEqualTo(FormatException.Kind.MISSING));
    assertThatExceptionOfType(FileSystemException.class)
        .isThrownBy(() -> open(device, "/models/none"))
        .withMessageContaining("/models/none")
        .satisfies(e -> assertThat(e.kind()).isEqualTo(FileSystemException.Kind.NOT_FOUND));
  }

  @ParameterizedTest
  @MethodSource("devices")
  void foldersListFilesAndOpenThem(String device) throws IOException {
    FileAddress address = FileAddress.parse(address(device) + ":/models/x");
    try (Volume volume = Volume.open(address, accelerator, StorageOptions.defaults(), false)) {
      VolumeFolder x = new VolumeFolder(volume, "/models/x");
      assertThat(x.files()).containsExactlyInAnyOrder(INDEX, ONE, TWO); // and not "runs"
      assertThat(x.child(ONE)).isEqualTo("/models/x/" + ONE);
      assertThat(new VolumeFolder(volume, "/").child("a")).isEqualTo("/a");
      assertThat(x.open("none")).isEmpty();
      assertThat(x.open("runs")).isEmpty();
      byte[] theirs = Files.readAllBytes(source.resolve("models/x").resolve(TWO));
      try (BlockReader file = x.open(TWO).orElseThrow()) {
        assertThat(file.size()).isEqualTo(theirs.length);
        byte[] part = new byte[100_003];
        file.read(theirs.length - part.length, MemorySegment.ofArray(part));
        assertThat(part)
            .isEqualTo(Arrays.copyOfRange(theirs, theirs.length - part.length, theirs.length));
      }
    }
  }

  @Test
  void aRankReadsOnlyItsPart() {
    LoadRequest quarter =
        LoadRequest.all()
            .names(List.of("layers.1.w"))
            .rank(1, 4, ShardRules.parse(List.of("rows")));
    try (Weights weights = open("sim:file=ext4", "/models/x");
        LoadedWeights whole = weights.load(LoadRequest.all());
        LoadedWeights part = weights.load(quarter)) {
      byte[] all = bytes(whole.tensor("layers.1.w"));
      int bytes = all.length / 4;
      assertThat(bytes(part.tensor("layers.1.w")))
          .isEqualTo(Arrays.copyOfRange(all, bytes, 2 * bytes));
      assertThat(part.report().readBytes()).isBetween((long) bytes, bytes + 2L * BLOCK);
    }
  }
}
