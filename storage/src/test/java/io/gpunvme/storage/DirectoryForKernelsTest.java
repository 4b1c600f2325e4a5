package io.gpunvme.storage;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.queue.DeviceDirectory;
import io.gpunvme.gpu.queue.DeviceSources;
import io.gpunvme.gpu.queue.FakeGpu;
import io.gpunvme.gpu.queue.KernelStorage;
import io.gpunvme.gpu.queue.KernelStorageOptions;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.gpu.transfer.InitiatorKind;
import io.gpunvme.gpu.transfer.InitiatorOptions;
import io.gpunvme.storage.fs.FileSystemException;
import io.gpunvme.storage.path.StorageException;
import io.gpunvme.testing.CLibrary;
import io.gpunvme.testing.Images;
import io.gpunvme.testing.NativeCompiler;
import io.gpunvme.testing.Programs;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.SplittableRandom;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * {@link GpuStorage#directoryForKernels}: images that other people's programs made, looked up and
 * read by the device library, which is compiled for the CPU.
 */
class DirectoryForKernelsTest {
  private static final String KERNELS =
      """
      #include "gpunvme/gpunvme.cuh"
      using namespace gpunvme;

      extern "C" unsigned find_file(const DeviceDirectory* d, const char* path, u64 bytes) {
        const DeviceFile* file = d->find(path, bytes);
        return file == nullptr ? ~0u : static_cast<unsigned>(file - d->files);
      }

      extern "C" u64 file_bytes(const DeviceDirectory* d, unsigned number) { return d->files[number].size; }

      extern "C" unsigned file_path(const DeviceDirectory* d, unsigned number, char* to) {
        unsigned bytes;
        const char* path = d->path(number, bytes);
        for (unsigned i = 0; i < bytes; i++) {
          to[i] = path[i];
        }
        return bytes;
      }

      extern "C" unsigned read_found(const Storage* s, const DeviceDirectory* d, unsigned number, u64 offset, u64 bytes) {
        return read_file(s->queues(0), d->files[number], offset, bytes, {0, 0}, {1, 0});
      }
      """;

  private static final int NONE = -1;
  private static final int BUFFER = 1 << 20;
  private static final int UNIT = 16 << 10;
  private static final int FAT_KIBIBYTES = 36_000;
  private static final String LONGEST = "y".repeat(251) + ".bin";

  @TempDir static Path folder;

  /** By their paths in {@code /set}: what ext4 and FAT32 have alike. */
  private static final TreeMap<String, byte[]> FILES = new TreeMap<>();

  private static CLibrary library;
  private static MethodHandle find;
  private static MethodHandle bytes;
  private static MethodHandle path;
  private static MethodHandle read;

  private final SplittableRandom random =
      new SplittableRandom(Long.getLong("gpunvme.seed", System.nanoTime()));

  private final FakeGpu gpu = new FakeGpu();

  @BeforeAll
  static void make() throws IOException {
    library =
        new CLibrary(
            NativeCompiler.CPP.library("directory", KERNELS, "-O1", DeviceSources.INCLUDE));
    find = library.function("find_file", int.class, long.class, MemorySegment.class, long.class);
    bytes = library.function("file_bytes", long.class, long.class, int.class);
    path = library.function("file_path", int.class, long.class, int.class, MemorySegment.class);
    read =
        library.function(
            "read_found", int.class, long.class, long.class, int.class, long.class, long.class);
    SplittableRandom content = new SplittableRandom(3);
    List<String> names =
        new ArrayList<>(
            List.of(
                "a.bin",
                "a.bin.old",
                "train/0001.bin",
                "train/0001",
                "train/deep/er/0001.bin",
                "größe/日本語.bin",
                "With Space.TXT",
                "empty",
                LONGEST));
    for (int i = 0; i < 60; i++) {
      names.add("many/%d.jpg".formatted(i * i));
    }
    Path source = folder.resolve("source");
    for (String name : names) {
      byte[] one = new byte[name.equals("empty") ? 0 : content.nextInt(1, 40_000)];
      content.nextBytes(one);
      FILES.put(name, one);
      Path file = source.resolve("set").resolve(name);
      Files.createDirectories(file.getParent());
      Files.write(file, one);
    }
    Files.createDirectories(source.resolve("set/nothing/here"));
    Files.write(source.resolve("outside"), new byte[] {1});
    Path ext4 = Images.ext4(folder.resolve("ext4"), "16M", source);
    Path fat = Images.fat32(folder.resolve("fat"), FAT_KIBIBYTES, source);
    Images.partition(folder.resolve("disk"), ext4);
    Images.stripe(ext4, UNIT, folder.resolve("e0"), folder.resolve("e1"), folder.resolve("e2"));
    Images.stripe(fat, UNIT, folder.resolve("f0"), folder.resolve("f1"));
    Path outer = Files.createDirectory(folder.resolve("outside"));
    Files.copy(fat, outer.resolve("inner"));
    Images.ext4(folder.resolve("outer"), "64M", outer);
  }

  @AfterEach
  void close() {
    gpu.close();
  }

  private GpuStorage open(String address) {
    return GpuStorage.open(
        StorageAddress.parse(address.replaceAll("file=", "file=" + folder + "/")),
        gpu,
        StorageOptions.defaults()
            .with(InitiatorOptions.defaults().with(InitiatorKind.CPU, Placement.HOST)));
  }

  private static KernelStorage kernels(GpuStorage storage) {
    return storage.forKernels(KernelStorageOptions.in(Placement.HOST).with(1, 32));
  }

  private static int find(DeviceDirectory directory, String wanted) {
    byte[] text = wanted.getBytes(StandardCharsets.UTF_8);
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment at = arena.allocate(text.length + 1L);
      MemorySegment.copy(text, 0, at, ValueLayout.JAVA_BYTE, 0, text.length);
      return (int) find.invokeExact(directory.deviceAddress(), at, (long) text.length);
    } catch (Throwable e) {
      throw new AssertionError(e);
    }
  }

  private static String path(DeviceDirectory directory, int number) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment at = arena.allocate(4096);
      int length = (int) path.invokeExact(directory.deviceAddress(), number, at);
      byte[] text = at.asSlice(0, length).toArray(ValueLayout.JAVA_BYTE);
      return new String(text, StandardCharsets.UTF_8);
    } catch (Throwable e) {
      throw new AssertionError(e);
    }
  }

  private static long bytes(DeviceDirectory directory, int number) {
    try {
      return (long) bytes.invokeExact(directory.deviceAddress(), number);
    } catch (Throwable e) {
      throw new AssertionError(e);
    }
  }

  private static int read(
      KernelStorage kernels, DeviceDirectory directory, int number, long offset, long length) {
    try {
      return (int)
          read.invokeExact(
              kernels.deviceHandle(), directory.deviceAddress(), number, offset, length);
    } catch (Throwable e) {
      throw new AssertionError(e);
    }
  }

  /** All files are there, by path and by number, with their bytes; and no others. */
  private void check(
      KernelStorage kernels, DeviceDirectory directory, TreeMap<String, byte[]> all) {
    assertThat(directory.count()).isEqualTo(all.size());
    List<String> paths = new ArrayList<>();
    for (int i = 0; i < directory.count(); i++) {
      paths.add(path(directory, i));
    }
    assertThat(paths)
        .containsExactlyInAnyOrderElementsOf(all.keySet())
        .isSortedAccordingTo(
            (a, b) ->
                Arrays.compareUnsigned(
                    a.getBytes(StandardCharsets.UTF_8), b.getBytes(StandardCharsets.UTF_8)));
    try (DeviceBuffer buffer = gpu.allocate(BUFFER);
        DeviceBuffer scratch = gpu.allocate(4096)) {
      int first = kernels.register(buffer);
      int second = kernels.register(scratch);
      all.forEach(
          (name, content) -> {
            int number = find(directory, name);
            assertThat(number).as(name).isEqualTo(paths.indexOf(name));
            assertThat(find(directory, "/" + name)).isEqualTo(number);
            assertThat(bytes(directory, number)).isEqualTo(content.length);
            int length = random.nextInt(content.length + 1);
            int offset = random.nextInt(content.length - length + 1);
            assertThat(read(kernels, directory, number, offset, length)).as(name).isZero();
            byte[] seen = new byte[length];
            if (length > 0) {
              buffer.copyToHost(0, MemorySegment.ofArray(seen));
            }
            assertThat(seen)
                .as("%s, %d bytes at %d", name, length, offset)
                .isEqualTo(Arrays.copyOfRange(content, offset, offset + length));
            List<String> others =
                Stream.of(name + "/", "//" + name, "./" + name, name.toUpperCase(Locale.ROOT))
                    .filter(other -> !all.containsKey(other))
                    .toList();
            assertThat(others).allMatch(other -> find(directory, other) == NONE);
          });
      kernels.unregister(second);
      kernels.unregister(first);
    }
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "sim:lba=512,file=ext4",
        "sim:lba=512,file=disk#2",
        "sim:lba=512,file=disk",
        "sim:lba=512,file=fat",
        "sim:lba=512,file=outer:/inner",
        "stripe:sim:lba=512,file=e0,sim:lba=512,file=e1,sim:lba=512,file=e2;unit=16KiB",
        "stripe:sim:lba=512,file=f0,sim:lba=512,file=f1;unit=16KiB"
      })
  void kernelsFindTheFilesBelowADirectoryAndReadThem(String address) {
    try (GpuStorage storage = open(address);
        KernelStorage kernels = kernels(storage);
        DeviceDirectory directory = storage.directoryForKernels(kernels, "/set");
        DeviceDirectory same = storage.directoryForKernels(kernels, "set/");
        DeviceDirectory part = storage.directoryForKernels(kernels, "/set/train");
        DeviceDirectory empty = storage.directoryForKernels(kernels, "/set/nothing");
        DeviceDirectory all = storage.directoryForKernels(kernels, "/")) {
      check(kernels, directory, FILES);
      check(kernels, same, FILES);
      TreeMap<String, byte[]> train = new TreeMap<>();
      FILES.forEach(
          (name, content) -> {
            if (name.startsWith("train/")) {
              train.put(name.substring("train/".length()), content);
            }
          });
      assertThat(train).hasSize(3);
      check(kernels, part, train);
      assertThat(empty.count()).isZero();
      assertThat(find(empty, "here")).isEqualTo(NONE);
      assertThat(all.count()).isEqualTo(FILES.size() + 1);
      assertThat(find(all, "set/" + LONGEST)).isNotEqualTo(NONE);
      assertThat(find(all, "set/nothing")).isEqualTo(NONE);
      assertThat(find(all, "outside")).isNotEqualTo(NONE);
      assertThat(directory.memoryBytes()).isBetween(90L * FILES.size(), 200L * FILES.size());
    }
  }

  @Test
  void whatKernelsCannotBeToldOfIsNamedOrLeftOut() throws IOException {
    Path source = Files.createDirectories(folder.resolve("odd/d"));
    Path top = source.getParent();
    TreeMap<String, byte[]> good = new TreeMap<>();
    good.put("d/file", new byte[5000]);
    good.put("holes", new byte[200_000]);
    good.put("link", good.get("d/file"));
    good.put("bad\\xffname", new byte[] {7});
    random.nextBytes(good.get("d/file"));
    Arrays.fill(good.get("holes"), 150_000, 200_000, (byte) 9);
    Files.write(source.resolve("file"), good.get("d/file"));
    try (RandomAccessFile file = new RandomAccessFile(top.resolve("holes").toFile(), "rw")) {
      file.seek(150_000);
      file.write(good.get("holes"), 150_000, 50_000);
    }
    Files.createSymbolicLink(top.resolve("link"), Path.of("d/file"));
    Files.createSymbolicLink(top.resolve("to-folder"), Path.of("d"));
    Files.createSymbolicLink(top.resolve("to-nothing"), Path.of("none"));
    Files.createSymbolicLink(top.resolve("to-itself"), Path.of("to-itself"));
    Programs.run("mkfifo", top.resolve("pipe"));
    Programs.run("sh", "-c", "printf '\\007' >\"$0\"/$(printf 'bad\\377name')", top);
    Images.ext4(folder.resolve("odd-image"), "8M", top);
    try (GpuStorage storage = open("sim:lba=512,file=odd-image");
        KernelStorage kernels = kernels(storage)) {
      List<StorageException> leftOut = new ArrayList<>();
      try (DeviceDirectory directory = storage.directoryForKernels(kernels, "/", leftOut::add)) {
        check(kernels, directory, good);
      }
      assertThat(leftOut)
          .extracting(e -> e.source().replaceAll(".*:/", ""))
          .containsExactlyInAnyOrder("to-folder", "to-nothing", "to-itself", "pipe");
      assertThat(leftOut)
          .extracting(StorageException::kind)
          .containsOnly(StorageException.Kind.UNSUPPORTED);
      assertThat(leftOut)
          .extracting(Throwable::getMessage)
          .anySatisfy(m -> assertThat(m).contains("/pipe").contains("not a file"))
          .anySatisfy(m -> assertThat(m).contains("/to-folder").contains("is not followed"))
          .anySatisfy(m -> assertThat(m).contains("/to-nothing").contains("there is no 'none'"));
      assertThatExceptionOfType(StorageException.class)
          .isThrownBy(() -> storage.directoryForKernels(kernels, "/"))
          .satisfies(e -> assertThat(e.kind()).isEqualTo(StorageException.Kind.UNSUPPORTED));
      storage.directoryForKernels(kernels, "/d").close();
    }
  }

  @Test
  void dataInInodesAndPiecesThatBeginNoBlockAreNamed() throws IOException {
    Path source = Files.createDirectory(folder.resolve("small"));
    Files.write(source.resolve("tiny"), new byte[] {1, 2, 3});
    Files.write(source.resolve("large"), FILES.get(LONGEST));
    Path image = folder.resolve("inline");
    Programs.run(
        "mke2fs",
        "-q",
        "-F",
        "-t",
        "ext4",
        "-b",
        1024,
        "-I",
        256,
        "-O",
        "inline_data",
        "-d",
        source,
        image,
        "8M");
    try (GpuStorage storage = open("sim:lba=512,file=inline");
        KernelStorage kernels = kernels(storage)) {
      assertThatExceptionOfType(StorageException.class)
          .isThrownBy(() -> storage.directoryForKernels(kernels, "/"))
          .withMessageContaining("/tiny")
          .withMessageContaining("begins no block of 512 bytes");
      try (DeviceDirectory directory = storage.directoryForKernels(kernels, "/", e -> {})) {
        assertThat(directory.count()).isOne();
        assertThat(find(directory, "large")).isZero();
      }
    }
    try (GpuStorage storage = open("sim:lba=4096,file=ext4");
        KernelStorage kernels = kernels(storage)) {
      List<StorageException> leftOut = new ArrayList<>();
      try (DeviceDirectory directory = storage.directoryForKernels(kernels, "/set", leftOut::add)) {
        assertThat(directory.count()).isBetween(1, FILES.size() - 1);
        assertThat(leftOut).hasSize(FILES.size() - directory.count());
      }
    }
  }

  @Test
  void whatIsNoDirectoryOrDamagedIsRefused() throws IOException {
    Files.copy(folder.resolve("ext4"), folder.resolve("copy"));
    Files.copy(folder.resolve("ext4"), folder.resolve("loop"));
    Programs.run("debugfs", "-w", "-R", "ln /set /set/train/loop", folder.resolve("loop"));
    try (GpuStorage storage = open("sim:lba=512,file=ext4");
        KernelStorage kernels = kernels(storage);
        GpuStorage loop = open("sim:lba=512,file=loop");
        KernelStorage loopKernels = kernels(loop);
        GpuStorage file = open("sim:lba=512,file=copy:/set/a.bin");
        GpuStorage mounted = GpuStorage.open(folder.resolve("ext4").toString(), gpu)) {
      refused(storage, kernels, "/none", FileSystemException.Kind.NOT_FOUND);
      refused(storage, kernels, "/set/a.bin", FileSystemException.Kind.WRONG_KIND);
      refused(file, kernels, "/", FileSystemException.Kind.NOT_FOUND);
      refused(loop, loopKernels, "/", FileSystemException.Kind.CORRUPT);
      loop.directoryForKernels(loopKernels, "/set/many").close();
      assertThatExceptionOfType(InvalidRequestException.class)
          .isThrownBy(() -> loop.directoryForKernels(kernels, "/set/many"))
          .withMessageContaining("is none of this storage");
      assertThatExceptionOfType(StorageException.class)
          .isThrownBy(() -> mounted.directoryForKernels(kernels, "/"))
          .withMessageContaining("the kernel drives its SSD");
    }
  }

  private static void refused(
      GpuStorage storage, KernelStorage kernels, String directory, FileSystemException.Kind kind) {
    assertThatExceptionOfType(FileSystemException.class)
        .isThrownBy(() -> storage.directoryForKernels(kernels, directory, e -> {}))
        .satisfies(e -> assertThat(e.kind()).isEqualTo(kind));
  }
}
