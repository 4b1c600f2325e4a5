package io.gpunvme.storage;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.queue.DeviceExtent;
import io.gpunvme.gpu.queue.DeviceFile;
import io.gpunvme.gpu.queue.DeviceFileTables;
import io.gpunvme.gpu.queue.DeviceLayout;
import io.gpunvme.gpu.queue.DeviceSet;
import io.gpunvme.gpu.queue.FakeGpu;
import io.gpunvme.gpu.queue.KernelStorage;
import io.gpunvme.gpu.queue.KernelStorageOptions;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.gpu.queue.StripeSet;
import io.gpunvme.gpu.transfer.Direction;
import io.gpunvme.gpu.transfer.Initiator;
import io.gpunvme.gpu.transfer.InitiatorKind;
import io.gpunvme.gpu.transfer.InitiatorOptions;
import io.gpunvme.gpu.transfer.TransferListener;
import io.gpunvme.storage.fs.FileSystemException;
import io.gpunvme.storage.path.PathKind;
import io.gpunvme.storage.path.StorageException;
import io.gpunvme.storage.plan.Ranges;
import io.gpunvme.testing.Images;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * {@code DEVICE:/PATH} as storage: files in many pieces on ext4 and FAT32, whole, in a partition
 * and on a striped set, by every path that the device has.
 */
class FileInsideTest {
  private static final int SIZE = 333_333;
  private static final int SECTOR = 512;
  private static final int UNIT = 16 << 10;
  private static final int BUFFER = SIZE + 100;
  private static final int FAT_KIBIBYTES = 36_000;

  @TempDir static Path folder;
  private static final byte[] CONTENT = new byte[SIZE];
  private static final byte[] HOLES = new byte[1 << 20];

  private final long seed = Long.getLong("gpunvme.seed", System.nanoTime());

  @BeforeAll
  static void make() throws IOException {
    new Random(1).nextBytes(CONTENT);
    Path ext4 = Images.fragmentedExt4(folder.resolve("ext4"), CONTENT);
    Path fat = Images.fragmentedFat32(folder.resolve("fat"), FAT_KIBIBYTES, CONTENT);
    Files.copy(ext4, folder.resolve("copy"));
    Images.partition(folder.resolve("disk"), ext4);
    Images.partition(folder.resolve("twin"), ext4);
    Images.stripe(ext4, UNIT, folder.resolve("e0"), folder.resolve("e1"), folder.resolve("e2"));
    Images.stripe(fat, UNIT, folder.resolve("f0"), folder.resolve("f1"));
    Path source = Files.createDirectory(folder.resolve("source"));
    new Random(2).nextBytes(HOLES);
    Arrays.fill(HOLES, 100 << 10, 900 << 10, (byte) 0);
    try (RandomAccessFile file = new RandomAccessFile(source.resolve("holes").toFile(), "rw")) {
      file.write(HOLES, 0, 100 << 10);
      file.seek(900 << 10);
      file.write(HOLES, 900 << 10, HOLES.length - (900 << 10));
    }
    Files.write(source.resolve("empty"), new byte[0]);
    Files.write(source.resolve("tiny"), CONTENT.length > 3 ? Arrays.copyOf(CONTENT, 3) : CONTENT);
    Files.createSymbolicLink(source.resolve("link"), Path.of("tiny"));
    Path more = Images.ext4(folder.resolve("more"), "8M", source);
    Path outer = Files.createDirectory(folder.resolve("more-inside"));
    Files.copy(more, outer.resolve("inner"));
    Images.ext4(folder.resolve("outer"), "16M", outer);
  }

  /** Devices without the file, and the paths that are possible. */
  static Stream<String> devices() {
    return Stream.of(
        "sim:lba=512,file=ext4",
        "sim:lba=4096,media=mapped,file=ext4",
        "file:ext4?path=pinned",
        "file:ext4?path=mmap",
        "file:ext4",
        "sim:lba=512,file=disk#2",
        "file:disk?path=pinned#2",
        "sim:lba=512,file=fat",
        "file:fat?path=pinned",
        "file:fat?path=mmap",
        "stripe:sim:file=e0,sim:file=e1,sim:file=e2;unit=16KiB",
        "stripe:file:e0?path=pinned,file:e1?path=pinned,file:e2?path=pinned;unit=16KiB",
        "stripe:sim:file=f0,sim:file=f1;unit=16KiB",
        "replica:sim:file=ext4,sim:file=copy");
  }

  private static String address(String device) {
    return device.replaceAll("file(=|:)(?=[a-z])", "file$1" + folder + "/");
  }

  private static List<Supplier<Accelerator>> accelerators() {
    return List.of(CpuAccelerator::open, FakeGpu::new);
  }

  /** Commands are the CPU's, whatever the memory. */
  private static GpuStorage open(String address, Accelerator accelerator) {
    return open(StorageAddress.parse(address(address)), accelerator);
  }

  private static GpuStorage open(StorageAddress address, Accelerator accelerator) {
    StorageOptions options =
        StorageOptions.defaults()
            .with(InitiatorOptions.defaults().with(InitiatorKind.CPU, Placement.HOST));
    return GpuStorage.open(address, accelerator, options);
  }

  private static DeviceBuffer buffer(Accelerator accelerator, byte[] seen) {
    DeviceBuffer buffer = accelerator.allocate(BUFFER);
    Arrays.fill(seen, (byte) 0x5A);
    buffer.copyFromHost(MemorySegment.ofArray(seen), 0);
    return buffer;
  }

  private void check(DeviceBuffer buffer, byte[] expected, String what) {
    byte[] seen = new byte[BUFFER];
    buffer.copyToHost(0, MemorySegment.ofArray(seen));
    assertThat(Arrays.mismatch(seen, expected)).as("%s, seed %d", what, seed).isEqualTo(-1);
  }

  @ParameterizedTest
  @MethodSource("devices")
  void theBytesOfTheFileArriveAndNoOthers(String device) {
    SplittableRandom random = new SplittableRandom(seed);
    for (Supplier<Accelerator> kind : accelerators()) {
      byte[] expected = new byte[BUFFER];
      try (Accelerator accelerator = kind.get();
          GpuStorage storage = open(device + ":/big", accelerator);
          DeviceBuffer buffer = buffer(accelerator, expected)) {
        assertThat(storage.size()).isEqualTo(SIZE);
        for (int i = 0; i < 60; i++) {
          int length = 1 + random.nextInt(random.nextBoolean() ? 2000 : SIZE);
          int offset = i % 4 == 0 ? SIZE - length : random.nextInt(SIZE - length + 1);
          int at = random.nextInt(BUFFER - length + 1);
          System.arraycopy(CONTENT, offset, expected, at, length);
          TransferResult result = storage.read(offset, buffer, at, length);
          assertThat(result.bytes()).isEqualTo(length);
          check(buffer, expected, "%d bytes at %d to %d".formatted(length, offset, at));
        }
        storage.read(0, buffer, 7, SIZE);
        System.arraycopy(CONTENT, 0, expected, 7, SIZE);
        check(buffer, expected, "all");
        storage.read(SIZE - 1, buffer, 0, 1);
        storage.read(SIZE, buffer, 3, 0);
        expected[0] = CONTENT[SIZE - 1];
        check(buffer, expected, "the last byte");
        assertThat(storage.stats()).isNotEmpty();
      }
    }
  }

  @ParameterizedTest
  @MethodSource("devices")
  void manyRangesAndAsynchronousReads(String device) throws Exception {
    byte[] expected = new byte[BUFFER];
    try (Accelerator accelerator = CpuAccelerator.open();
        GpuStorage storage = GpuStorage.open(address(device) + ":/big", accelerator);
        DeviceBuffer buffer = buffer(accelerator, expected)) {
      storage.register(buffer);
      Ranges.Builder ranges = Ranges.builder();
      for (int i = 0; i < 300; i++) {
        ranges.add(i * 1111L, 701, 0, i * 701L);
        System.arraycopy(CONTENT, i * 1111, expected, i * 701, 701);
      }
      storage.read(ranges.build(), List.of(buffer));
      check(buffer, expected, "ranges");
      var first = storage.readAsync(5, buffer, 0, 100_001);
      var second = storage.readAsync(200_003, buffer, 150_000, 99_999);
      first.get();
      second.get();
      System.arraycopy(CONTENT, 5, expected, 0, 100_001);
      System.arraycopy(CONTENT, 200_003, expected, 150_000, 99_999);
      check(buffer, expected, "asynchronous");
    }
  }

  @ParameterizedTest
  @MethodSource("devices")
  void theWayIsTheDevicesAndInPieces(String device) {
    try (Accelerator accelerator = CpuAccelerator.open();
        GpuStorage storage = GpuStorage.open(address(device) + ":/big", accelerator);
        DeviceBuffer buffer = accelerator.allocate(SIZE)) {
      PathKind path = storage.read(0, buffer, 0, SIZE).path();
      if (device.contains("path=")) {
        String name = device.replaceAll(".*path=(\\w+).*", "$1");
        assertThat(path).hasToString(name);
        assertThat(storage.explain().asked()).isEqualTo(name);
      } else {
        assertThat(path == PathKind.DIRECT).isEqualTo(device.contains("sim:"));
      }
      int pieces =
          Integer.parseInt(storage.explain().modes().get(path).replaceAll("\\D*(\\d+).*", "$1"));
      assertThat(pieces).isGreaterThan(100);
      assertThatExceptionOfType(InvalidRequestException.class)
          .isThrownBy(() -> storage.read(SIZE - 10, buffer, 0, 11));
      assertThatExceptionOfType(InvalidRequestException.class)
          .isThrownBy(() -> storage.read(-1, buffer, 0, 1));
      assertThatExceptionOfType(InvalidRequestException.class)
          .isThrownBy(() -> storage.read(0, buffer, buffer.size() - 10, 11));
    }
  }

  /** Blocks of 512 bytes by content, which is random: none is there twice. */
  private static Set<ByteBuffer> blocks(byte[] bytes, int from, int end) {
    Set<ByteBuffer> all = new HashSet<>();
    for (int at = from; at + SECTOR <= end; at += SECTOR) {
      all.add(ByteBuffer.wrap(Arrays.copyOfRange(bytes, at, at + SECTOR)));
    }
    return all;
  }

  private static byte[] read(BlockRun run, Accelerator accelerator) {
    InitiatorOptions one =
        InitiatorOptions.defaults().with(InitiatorKind.CPU, Placement.HOST).with(1, 2, 1);
    byte[] bytes = new byte[(int) run.bytes()];
    try (Initiator initiator = one.open(run.controller(), accelerator);
        DeviceBuffer buffer = accelerator.allocate(bytes.length)) {
      initiator.move(
          Direction.READ,
          run.namespace(),
          run.slba(),
          run.blocks(),
          buffer,
          0,
          TransferListener.NONE);
      buffer.copyToHost(0, MemorySegment.ofArray(bytes));
    }
    return bytes;
  }

  @ParameterizedTest
  @MethodSource("devices")
  void itsBlocksAreWhereItSays(String device) {
    int from = 8 << 10;
    int length = 200 << 10;
    try (Accelerator accelerator = CpuAccelerator.open();
        GpuStorage storage = open(device + ":/big", accelerator)) {
      if (!device.contains("sim:")) {
        assertThatExceptionOfType(StorageException.class)
            .isThrownBy(() -> storage.blocks(0, SIZE))
            .withMessageContaining("mounted file system");
        return;
      }
      Set<ByteBuffer> found = new HashSet<>();
      long bytes = 0;
      for (BlockRun run : storage.blocks(from, length)) {
        byte[] there = read(run, accelerator);
        found.addAll(blocks(there, 0, there.length));
        bytes += there.length;
      }
      if (device.contains("lba=4096")) {
        // Pieces of the file begin and end within logical blocks.
        assertThat(blocks(CONTENT, from, from + length)).containsAll(found);
        assertThat(bytes).isEqualTo((long) found.size() * SECTOR).isLessThan(length);
      } else {
        int copies = device.startsWith("replica:") ? 2 : 1;
        assertThat(bytes).isEqualTo((long) copies * length);
        assertThat(found).isEqualTo(blocks(CONTENT, from, from + length));
      }
      assertThatExceptionOfType(InvalidRequestException.class)
          .isThrownBy(() -> storage.blocks(0, SIZE + 1));
    }
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "sim:lba=512,file=ext4:/big",
        "sim:lba=512,file=disk#2:/big",
        "sim:lba=512,file=fat:/big",
        "sim:lba=512,file=more:/holes",
        "sim:lba=512,file=more:/tiny",
        "sim:lba=512,file=more:/empty",
        "sim:lba=4096,file=more",
        "sim:lba=512,file=disk#2",
        "sim:lba=512,file=outer:/inner:/holes",
        "sim:lba=1024,file=outer:/inner:/holes",
        "stripe:sim:lba=512,file=e0,sim:lba=512,file=e1,sim:lba=512,file=e2;unit=16KiB:/big",
        "stripe:sim:lba=512,file=e0,sim:lba=512,file=e1,sim:lba=512,file=e2;unit=16KiB",
        "stripe:sim:lba=512,file=f0,sim:lba=512,file=f1;unit=16KiB:/big"
      })
  void kernelsAreToldWhereItsBytesAre(String address) throws IOException {
    // A set's bytes are the image that it was made of.
    String image = address.replaceAll(".*?file=(\\w+).*", "$1").replace("e0", "ext4");
    image = image.replace("f0", "fat");
    int block = Integer.parseInt(address.replaceAll(".*lba=(\\d+).*", "$1"));
    try (FakeGpu gpu = new FakeGpu();
        GpuStorage storage = open(address, gpu);
        DeviceBuffer buffer = gpu.allocate(Math.max(1, storage.size()));
        KernelStorage kernels =
            storage.forKernels(KernelStorageOptions.in(Placement.HOST).with(1, 32));
        DeviceFile file = storage.fileForKernels(kernels);
        RandomAccessFile blocks = new RandomAccessFile(folder.resolve(image).toFile(), "r")) {
      assertThat(file.bytes()).isEqualTo(storage.size());
      byte[] expected = new byte[(int) storage.size()];
      if (expected.length > 0) {
        storage.read(0, buffer, 0, expected.length);
        buffer.copyToHost(0, MemorySegment.ofArray(expected));
      }
      byte[] seen = new byte[expected.length];
      List<DeviceExtent> extents = DeviceFileTables.read(file);
      for (DeviceExtent e : extents) {
        if (e.block() != DeviceLayout.Extent.HOLE) {
          blocks.seek(e.block() * block);
          blocks.readFully(seen, (int) e.offset(), (int) e.bytes());
        }
      }
      assertThat(Arrays.mismatch(seen, expected)).isEqualTo(-1);
      boolean holes = address.endsWith("/holes") || address.endsWith("/empty");
      assertThat(extents.stream().anyMatch(e -> e.block() == DeviceLayout.Extent.HOLE))
          .isEqualTo(holes);
      if (address.endsWith("/big")) {
        assertThat(extents).hasSizeGreaterThan(3);
      }
    }
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "replica:sim:file=disk,sim:file=twin#2:/big | has its data several times",
        "stripe:file:e0,file:e1,file:e2;unit=16KiB:/big | the kernel drives its SSD",
        "file:ext4:/big | the kernel drives its SSD",
        "sim:lba=4096,file=fat:/big | no block of 4096 bytes"
      })
  void kernelsAreNotToldOfWhatTheyCannotRead(String address, String why) {
    try (FakeGpu gpu = new FakeGpu();
        GpuStorage storage = open(address, gpu);
        GpuStorage other = open("sim:lba=512,file=more", gpu);
        KernelStorage kernels =
            other.forKernels(KernelStorageOptions.in(Placement.HOST).with(1, 32))) {
      assertThatExceptionOfType(StorageException.class)
          .isThrownBy(() -> storage.fileForKernels(kernels))
          .withMessageContaining(why)
          .satisfies(e -> assertThat(e.kind()).isEqualTo(StorageException.Kind.UNSUPPORTED));
      try (GpuStorage stranger = open("sim:lba=512,file=ext4:/big", gpu)) {
        assertThatExceptionOfType(InvalidRequestException.class)
            .isThrownBy(() -> stranger.fileForKernels(kernels))
            .withMessageContaining("is none of this storage");
      }
    }
  }

  private static GpuStorage openSet(Accelerator accelerator, String... members) {
    List<StorageAddress> all =
        Arrays.stream(members).map(m -> StorageAddress.parse(address(m))).toList();
    return open(StorageAddress.set(all, SetShape.striped(UNIT)), accelerator);
  }

  @Test
  void setsForKernelsHaveMembersInOnePiece() {
    KernelStorageOptions options = KernelStorageOptions.in(Placement.HOST).with(1, 32);
    try (FakeGpu gpu = new FakeGpu();
        GpuStorage storage = openSet(gpu, "sim:lba=512,file=disk#2", "sim:lba=512,file=twin#2");
        KernelStorage kernels = storage.forKernels(options);
        DeviceSet set = storage.setForKernels(kernels)) {
      List<BlockRun> runs = storage.blocks(0, storage.size());
      assertThat(runs).hasSize(2).allMatch(r -> r.slba() > 0);
      assertThat(set.set().members())
          .extracting(StripeSet.Member::slba)
          .containsExactlyElementsOf(runs.stream().map(BlockRun::slba).toList());
      assertThat(set.set().bytes()).isEqualTo(storage.size());
    }
    String pieces = "sim:lba=512,file=fat:/big";
    String nested = "stripe:sim:file=e0,sim:file=e1,sim:file=e2;unit=16KiB:/big";
    for (String member : List.of(pieces, nested)) {
      try (FakeGpu gpu = new FakeGpu();
          GpuStorage storage = openSet(gpu, member, "sim:lba=512,file=ext4:/big")) {
        assertThatExceptionOfType(StorageException.class)
            .isThrownBy(() -> storage.forKernels(options))
            .withMessageContaining(member.equals(nested) ? "a set in a set" : "in one piece")
            .satisfies(e -> assertThat(e.kind()).isEqualTo(StorageException.Kind.UNSUPPORTED));
      }
    }
  }

  @Test
  void holesAndTheBytesOfPartOfABlockAreNowhere() {
    try (Accelerator accelerator = CpuAccelerator.open();
        GpuStorage holes = open("sim:lba=512,file=more:/holes", accelerator);
        GpuStorage tiny = open("sim:lba=512,file=ext4:/big", accelerator)) {
      long bytes = holes.blocks(0, HOLES.length).stream().mapToLong(BlockRun::bytes).sum();
      assertThat(bytes).isBetween(200L << 10, 400L << 10);
      assertThat(tiny.blocks(1, 1022)).isEmpty();
      assertThat(tiny.blocks(1, 1023)).singleElement().returns(1L, BlockRun::blocks);
      assertThat(tiny.blocks(0, 0)).isEmpty();
    }
  }

  @ParameterizedTest
  @MethodSource("devices")
  void nothingIsEverWritten(String device) throws IOException {
    byte[] before = Files.readAllBytes(folder.resolve("ext4"));
    String file = address(device) + ":/big";
    try (Accelerator accelerator = CpuAccelerator.open();
        DeviceBuffer buffer = accelerator.allocate(100)) {
      StorageOptions writing = StorageOptions.defaults().withWrite(true);
      assertThatExceptionOfType(StorageException.class)
          .isThrownBy(() -> GpuStorage.open(StorageAddress.parse(file), accelerator, writing))
          .withMessageContaining("/big")
          .withMessageContaining("read only")
          .satisfies(e -> assertThat(e.kind()).isEqualTo(StorageException.Kind.UNSUPPORTED));
      try (GpuStorage storage = GpuStorage.open(file, accelerator)) {
        assertThatExceptionOfType(StorageException.class)
            .isThrownBy(() -> storage.write(0, buffer, 0, 100))
            .satisfies(e -> assertThat(e.kind()).isEqualTo(StorageException.Kind.PERMISSION));
      }
    }
    assertThat(Arrays.equals(Files.readAllBytes(folder.resolve("ext4")), before)).isTrue();
  }

  @Test
  void holesAreZerosAndFilesMayBeTiny() {
    for (String device :
        List.of(
            "sim:lba=512,file=more",
            "sim:lba=4096,file=more",
            "file:more?path=pinned",
            "file:more?path=mmap")) {
      try (Accelerator accelerator = CpuAccelerator.open();
          DeviceBuffer buffer = accelerator.allocate(HOLES.length)) {
        byte[] seen = new byte[HOLES.length];
        Arrays.fill(seen, (byte) 1);
        buffer.copyFromHost(MemorySegment.ofArray(seen), 0);
        try (GpuStorage holes = GpuStorage.open(address(device) + ":/holes", accelerator)) {
          holes.read(0, buffer, 0, HOLES.length);
          buffer.copyToHost(0, MemorySegment.ofArray(seen));
          assertThat(Arrays.mismatch(seen, HOLES)).as(device).isEqualTo(-1);
          long read = holes.stats().values().stream().mapToLong(s -> s.readBytes()).sum();
          assertThat(read).isEqualTo(HOLES.length);
        }
        try (GpuStorage empty = GpuStorage.open(address(device) + ":/empty", accelerator)) {
          assertThat(empty.size()).isZero();
          empty.read(0, buffer, 0, 0);
          assertThatExceptionOfType(InvalidRequestException.class)
              .isThrownBy(() -> empty.read(0, buffer, 0, 1));
        }
        try (GpuStorage tiny = GpuStorage.open(address(device) + ":/link", accelerator)) {
          tiny.read(1, buffer, 5, 2);
          buffer.copyToHost(5, MemorySegment.ofArray(seen).asSlice(0, 2));
          assertThat(Arrays.copyOf(seen, 2)).isEqualTo(Arrays.copyOfRange(CONTENT, 1, 3));
        }
      }
    }
  }

  @Test
  void whatIsNotThereIsSaid() {
    try (Accelerator accelerator = CpuAccelerator.open()) {
      List<String> wrong = new ArrayList<>();
      wrong.add("sim:file=ext4:/none");
      wrong.add("sim:file=ext4#3:/big");
      wrong.add("stripe:sim:file=e0,sim:file=e2;unit=16KiB:/big");
      wrong.add("file:fat?path=pinned:/none/big");
      for (String address : wrong) {
        assertThatExceptionOfType(FileSystemException.class)
            .as(address)
            .isThrownBy(() -> GpuStorage.open(address(address), accelerator).close());
      }
      assertThatExceptionOfType(FileSystemException.class)
          .isThrownBy(() -> GpuStorage.open(address("sim:file=ext4:/lost+found"), accelerator))
          .satisfies(e -> assertThat(e.kind()).isEqualTo(FileSystemException.Kind.WRONG_KIND));
    }
  }

  @Test
  void closingEndsItTwice() {
    try (Accelerator accelerator = CpuAccelerator.open();
        DeviceBuffer buffer = accelerator.allocate(10)) {
      GpuStorage storage = GpuStorage.open(address("sim:file=ext4:/big"), accelerator);
      storage.read(0, buffer, 0, 10);
      storage.close();
      storage.close();
      assertThatIllegalStateException().isThrownBy(() -> storage.read(0, buffer, 0, 10));
    }
  }
}
