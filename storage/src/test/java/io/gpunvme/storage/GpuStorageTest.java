package io.gpunvme.storage;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.cuda.FakeDriver;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.queue.FakeGpu;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.gpu.transfer.InitiatorKind;
import io.gpunvme.gpu.transfer.InitiatorOptions;
import io.gpunvme.nvme.memory.BusMapper;
import io.gpunvme.nvme.memory.BusRange;
import io.gpunvme.sim.SimConfig;
import io.gpunvme.sim.SimulatedController;
import io.gpunvme.sim.serve.VfioUserServer;
import io.gpunvme.storage.path.PathKind;
import io.gpunvme.storage.path.StorageException;
import io.gpunvme.storage.path.StorageException.Kind;
import io.gpunvme.storage.path.Verdict;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** One interface over every path, on the CPU stand-in and on memory that only copies reach. */
class GpuStorageTest {
  private static final int SIZE = 1 << 20;

  @TempDir Path folder;

  private final byte[] content = new byte[SIZE];
  private Path file;
  private Accelerator accelerator;

  @BeforeEach
  void prepare() throws IOException {
    new Random(7).nextBytes(content);
    file = folder.resolve("data.bin");
    Files.write(file, content);
    accelerator = new FakeGpu();
  }

  @AfterEach
  void close() {
    accelerator.close();
  }

  private static byte[] bytes(DeviceBuffer buffer, int length) {
    byte[] all = new byte[length];
    buffer.copyToHost(0, MemorySegment.ofArray(all));
    return all;
  }

  private GpuStorage open(String address) {
    return GpuStorage.open(address, accelerator);
  }

  private GpuStorage writable(String address) {
    return GpuStorage.open(
        StorageAddress.parse(address), accelerator, StorageOptions.defaults().withWrite(true));
  }

  private String image() {
    return "sim:file=" + file + ",lba=512";
  }

  @Test
  void theSameBytesByEveryAddress() {
    for (String address : List.of(image(), file + "?path=mmap", "file:" + file)) {
      // The CPU drives: a GPU that is none launches no kernels.
      try (Accelerator cpu = CpuAccelerator.open();
          GpuStorage storage = GpuStorage.open(address, cpu);
          DeviceBuffer buffer = cpu.allocate(SIZE)) {
        assertThat(storage.size()).isEqualTo(SIZE);
        assertThat(storage.alignment()).isPositive();
        TransferResult result = storage.read(777, buffer, 3, 100_001);
        assertThat(result.bytes()).isEqualTo(100_001);
        assertThat(result.mode()).isNotBlank();
        assertThat(Arrays.mismatch(bytes(buffer, SIZE), 3, 100_004, content, 777, 100_778))
            .isEqualTo(-1);
        assertThat(storage.stats().get(result.path()).readBytes()).isEqualTo(100_001);
      }
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"direct", "cufile"})
  void aPathByNameIsThatOrAReason(String path) {
    assertThatExceptionOfType(StorageException.class)
        .isThrownBy(() -> open(file + "?path=" + path))
        .satisfies(e -> assertThat(e.kind()).isEqualTo(Kind.UNSUPPORTED))
        .withMessageContaining(path + ":")
        .withMessageContaining(file.toString());
  }

  @Test
  void blocksAreTheDevices() {
    String[][] blocks = {
      {"sim:size=1MiB", "512"},
      {"sim:size=1MiB,lba=4096,pinned=true", "4096"},
      {file + "?path=mmap", "512"},
    };
    for (String[] b : blocks) {
      try (GpuStorage storage = open(b[0])) {
        assertThat(storage.blockSize()).as(b[0]).isEqualTo(Integer.parseInt(b[1]));
      }
    }
  }

  @Test
  void addressesThatMakeNoSense() {
    for (String address :
        List.of(
            "file:",
            "sim:size=1MiB,pinned=maybe",
            file + "?path=fast",
            file + "?path",
            file + "?path=mmap&path=mmap",
            file + "?nonsense=1",
            "tape:0",
            "")) {
      assertThatExceptionOfType(InvalidRequestException.class)
          .as(address)
          .isThrownBy(() -> open(address));
    }
    assertThatExceptionOfType(StorageException.class)
        .isThrownBy(() -> open(folder.resolve("missing").toString()))
        .satisfies(e -> assertThat(e.kind()).isEqualTo(Kind.GONE));
    assertThatExceptionOfType(StorageException.class).isThrownBy(() -> open(folder.toString()));
  }

  @Test
  void anAddressReadsWhatItPrints() {
    for (String text : List.of("file:/a?path=mmap", "file:/a", "sim:lba=512")) {
      assertThat(StorageAddress.parse(text)).hasToString(text);
    }
    assertThat(StorageAddress.parse("/x/y?path=auto").path()).isNull();
    assertThat(StorageAddress.parse("/x?y?path=PINNED").path()).isEqualTo(PathKind.PINNED);
    assertThat(StorageAddress.parse("/x?y?path=PINNED").file()).isEqualTo(Path.of("/x?y"));
  }

  @Test
  void rangesOutsideAreRefusedBeforeAnythingMoves() {
    try (GpuStorage storage = open(file + "?path=mmap");
        DeviceBuffer buffer = accelerator.allocate(4096)) {
      long[][] wrong = {
        {-1, 0, 1},
        {0, -1, 1},
        {0, 0, -1},
        {SIZE, 0, 1},
        {SIZE - 1, 0, 2},
        {0, 1, 4096},
        {Long.MAX_VALUE, 0, 1},
        {1, 0, Long.MAX_VALUE}
      };
      for (long[] w : wrong) {
        assertThatExceptionOfType(InvalidRequestException.class)
            .as(Arrays.toString(w))
            .isThrownBy(() -> storage.read(w[0], buffer, w[1], w[2]));
        assertThatExceptionOfType(InvalidRequestException.class)
            .isThrownBy(() -> storage.readAsync(w[0], buffer, w[1], w[2]));
      }
      assertThat(storage.read(SIZE, buffer, 4096, 0).bytes()).isZero();
    }
  }

  /** A device that was mapped to the buffer, and failed. */
  private static final class Lost implements BusMapper {
    private @Nullable String doubt;

    @Override
    public BusRange map(MemorySegment memory) {
      return BusRange.contiguous(memory, 0, () -> {});
    }

    @Override
    public @Nullable String inDoubt() {
      return doubt;
    }
  }

  @Test
  void aBufferThatALostDeviceMayWriteToIsRefusedForAsLong() {
    try (Accelerator cpu = CpuAccelerator.open();
        GpuStorage storage = GpuStorage.open(file.toString(), cpu);
        DeviceBuffer buffer = cpu.allocate(4096)) {
      Lost lost = new Lost();
      buffer.mapFor(lost);
      storage.read(0, buffer, 0, 100);
      lost.doubt = "it may still write";
      assertThatExceptionOfType(InvalidRequestException.class)
          .isThrownBy(() -> storage.read(0, buffer, 0, 100))
          .withMessageContaining("use another buffer: it may still write");
      lost.doubt = null;
      storage.read(0, buffer, 0, 100);
    }
  }

  /** Its queues are created by the first transfer. */
  @Test
  void aDeviceThatIsGoneBeforeItsFirstTransferIsSaidLikeLaterOnes() {
    try (Accelerator cpu = CpuAccelerator.open();
        GpuStorage storage = GpuStorage.open("sim:size=1MiB,faults=gone on create-cq", cpu);
        DeviceBuffer buffer = cpu.allocate(4096)) {
      assertThatExceptionOfType(StorageException.class)
          .isThrownBy(() -> storage.read(0, buffer, 0, 4096))
          .satisfies(e -> assertThat(e.kind()).isEqualTo(Kind.GONE));
    }
  }

  @Test
  void writingNeedsToBeAllowed() throws IOException {
    try (DeviceBuffer buffer = accelerator.allocate(4096)) {
      try (GpuStorage storage = open(file.toString())) {
        assertThatExceptionOfType(StorageException.class)
            .isThrownBy(() -> storage.write(0, buffer, 0, 1))
            .satisfies(e -> assertThat(e.kind()).isEqualTo(Kind.PERMISSION))
            .withMessageContaining("--allow-write");
      }
      buffer.copyFromHost(MemorySegment.ofArray("hello".getBytes(StandardCharsets.UTF_8)), 0);
      try (GpuStorage storage = writable(file + "?path=mmap")) {
        storage.write(100, buffer, 0, 5);
        assertThat(storage.writeAsync(200, buffer, 0, 5).join().bytes()).isEqualTo(5);
        assertThat(storage.stats().get(PathKind.MMAP).writtenBytes()).isEqualTo(10);
      }
      byte[] now = Files.readAllBytes(file);
      assertThat(new String(now, 100, 5, StandardCharsets.UTF_8)).isEqualTo("hello");
      assertThat(new String(now, 200, 5, StandardCharsets.UTF_8)).isEqualTo("hello");
    }
  }

  @Test
  void manyReadsAtATime() throws ExecutionException, InterruptedException {
    try (GpuStorage storage = open(file.toString());
        DeviceBuffer buffer = accelerator.allocate(SIZE)) {
      List<CompletableFuture<TransferResult>> all = new ArrayList<>();
      for (int i = 0; i < 64; i++) {
        all.add(storage.readAsync((63L - i) * 16384, buffer, i * 16384L, 16384));
      }
      for (CompletableFuture<TransferResult> one : all) {
        assertThat(one.get().bytes()).isEqualTo(16384);
      }
      byte[] seen = bytes(buffer, SIZE);
      for (int i = 0; i < 64; i++) {
        int from = (63 - i) * 16384;
        assertThat(Arrays.mismatch(seen, i * 16384, (i + 1) * 16384, content, from, from + 16384))
            .isEqualTo(-1);
      }
    }
  }

  @Test
  void aBatchTellsOfEach() throws InterruptedException {
    try (GpuStorage storage = open(file + "?path=mmap");
        DeviceBuffer buffer = accelerator.allocate(SIZE);
        Batch batch = storage.batch()) {
      Set<Long> wanted = new HashSet<>();
      for (int i = 0; i < 1000; i++) {
        // Each tenth leaves the file; the others must not suffer.
        long offset = i % 10 == 9 ? SIZE : i * 1000L;
        wanted.add(batch.read(offset, buffer, i * 1000L, 1000));
      }
      List<Batch.Outcome> over = new ArrayList<>();
      while (batch.outstanding() > 0) {
        over.addAll(batch.poll(1, Duration.ofSeconds(30)));
      }
      assertThat(over.stream().map(Batch.Outcome::id).toList())
          .containsExactlyInAnyOrderElementsOf(wanted);
      for (Batch.Outcome o : over) {
        assertThat(o.ok()).as("%s", o).isEqualTo(o.id() % 10 != 9);
        if (!o.ok()) {
          assertThat(o.failure()).isInstanceOf(InvalidRequestException.class);
        }
      }
      byte[] seen = bytes(buffer, SIZE);
      for (int i = 0; i < 1000; i++) {
        if (i % 10 != 9) {
          int at = i * 1000;
          assertThat(Arrays.mismatch(seen, at, at + 1000, content, at, at + 1000)).isEqualTo(-1);
        }
      }
      assertThat(batch.poll(1, Duration.ofSeconds(30))).isEmpty();
    }
  }

  @Test
  void aCancelledBatchGivesEveryOutcome() throws InterruptedException {
    try (GpuStorage storage = open(file + "?path=mmap");
        DeviceBuffer buffer = accelerator.allocate(SIZE)) {
      Batch batch = storage.batch();
      for (int i = 0; i < 200; i++) {
        batch.read(0, buffer, 0, SIZE);
      }
      batch.cancel();
      assertThatIllegalStateException().isThrownBy(() -> batch.read(0, buffer, 0, 1));
      List<Batch.Outcome> over = new ArrayList<>();
      while (batch.outstanding() > 0) {
        over.addAll(batch.poll(1, Duration.ofSeconds(30)));
      }
      assertThat(over).hasSize(200);
      assertThat(over)
          .filteredOn(o -> !o.ok())
          .allSatisfy(
              o ->
                  assertThat(o.failure())
                      .isInstanceOfSatisfying(
                          StorageException.class,
                          e -> assertThat(e.kind()).isEqualTo(Kind.CANCELLED)));
      batch.close();
    }
  }

  @Test
  void closingEndsWhatIsUnderWay() {
    GpuStorage storage = open(file + "?path=mmap");
    try (DeviceBuffer buffer = accelerator.allocate(SIZE)) {
      List<CompletableFuture<TransferResult>> all = new ArrayList<>();
      for (int i = 0; i < 500; i++) {
        all.add(storage.readAsync(0, buffer, 0, SIZE));
      }
      storage.close();
      storage.close();
      for (CompletableFuture<TransferResult> one : all) {
        assertThat(one).isDone();
        if (one.isCompletedExceptionally()) {
          assertThat(one.exceptionNow())
              .isInstanceOfAny(StorageException.class, IllegalStateException.class);
        }
      }
      assertThatIllegalStateException().isThrownBy(() -> storage.read(0, buffer, 0, 1));
      assertThatIllegalStateException().isThrownBy(() -> storage.readAsync(0, buffer, 0, 1));
      assertThatIllegalStateException().isThrownBy(storage::size);
      assertThatIllegalStateException().isThrownBy(storage::batch);
    }
  }

  @Test
  void aRegistrationEndsBeforeItsBuffer() {
    try (GpuStorage storage = open(file + "?path=mmap")) {
      DeviceBuffer buffer = accelerator.allocate(4096);
      storage.register(buffer);
      storage.register(buffer);
      storage.read(0, buffer, 0, 4096);
      buffer.close();
      storage.deregister(buffer);
      DeviceBuffer other = accelerator.allocate(4096);
      storage.register(other);
      storage.deregister(other);
      other.close();
    }
  }

  @Test
  void itSaysWhichPathAndWhyNotTheOthers() {
    try (GpuStorage storage = open(file + "?path=mmap");
        DeviceBuffer buffer = accelerator.allocate(4096)) {
      storage.read(0, buffer, 0, 10);
      Explanation why = storage.explain();
      assertThat(why.asked()).isEqualTo("mmap");
      assertThat(why.verdicts().stream().map(Verdict::kind))
          .contains(PathKind.DIRECT, PathKind.MMAP);
      assertThat(why.modes()).containsKey(PathKind.MMAP);
      assertThat(why.toString()).contains("direct", "vfio:", "used: mmap");
    }
  }

  @Test
  void itSaysWhatItChoseOfNumaNodes() {
    try (GpuStorage storage = open(file + "?path=mmap&numa=off");
        GpuStorage ssd = open("sim:size=1MiB");
        GpuStorage set = open("stripe:sim:size=1MiB,sim:size=1MiB;unit=4KiB")) {
      assertThat(storage.explain().numa()).containsEntry(file.toString(), "no NUMA node: numa=off");
      assertThat(storage.explain().toString())
          .contains("  placed: " + file + ", no NUMA node: numa=off\n");
      assertThat(ssd.explain().numa())
          .containsEntry("sim:size=1MiB", "no NUMA node: it is no device of this machine");
      assertThat(set.explain().numa()).containsKey("sim:size=1MiB");
    }
    try (GpuStorage storage = open(file.toString())) {
      assertThat(storage.explain().numa().get(file.toString())).contains("NUMA node");
    }
  }

  @Test
  void aNumaNodeThatIsNotThereIsRefused() {
    for (String option : new String[] {"numa=4095", "numa=near", "numa="}) {
      assertThatExceptionOfType(InvalidRequestException.class)
          .isThrownBy(() -> open(file + "?" + option))
          .withMessageStartingWith(option + ": ");
    }
  }

  @Test
  void aStandInHasNoStreams() {
    try (GpuStorage storage = open(file.toString())) {
      assertThatExceptionOfType(StorageException.class)
          .isThrownBy(storage::streams)
          .satisfies(e -> assertThat(e.kind()).isEqualTo(Kind.UNSUPPORTED));
    }
  }

  /** An SSD of another process reaches only memory that is made for it. */
  @Test
  void memoryThatIsAllocatedBeforeTheFirstTransferWillDo() throws IOException {
    try (SimulatedController ssd =
            SimulatedController.create(SimConfig.parse("size=1MiB,latency=0"));
        VfioUserServer server = VfioUserServer.start(ssd, file.resolveSibling("socket"));
        Accelerator gpu = GpuAccelerator.open(FakeDriver.fresh().load().device(0))) {
      InitiatorOptions cpu =
          InitiatorOptions.defaults().with(InitiatorKind.CPU, Placement.HOST).with(1, 2, 1);
      try (GpuStorage storage =
              GpuStorage.open(
                  StorageAddress.parse("vfio-user:" + server.socket()),
                  gpu,
                  StorageOptions.defaults().with(cpu));
          DeviceBuffer buffer = gpu.allocatePinned(4096)) {
        assertThat(storage.read(0, buffer, 0, 4096).bytes()).isEqualTo(4096);
      }
    }
  }
}
