package io.gpunvme.gpu.queue;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.device.Device;
import io.gpunvme.gpu.device.DeviceAddress;
import io.gpunvme.nvme.driver.ControllerOptions;
import io.gpunvme.nvme.driver.QueueTraffic;
import io.gpunvme.sim.DoorbellWindow;
import io.gpunvme.sim.SimulatedController;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** What {@link KernelStorage} promises to those who write kernels. */
@Timeout(300)
abstract class KernelStorageContract {
  private static final int BLOCK = 4096;
  private static final int BLOCKS = 2048;
  private static final int HALF = BLOCKS / 2;
  private static final int ROUNDS = 8;
  private static final Duration LIMIT = Duration.ofSeconds(20);

  // In a SetCall.
  private static final int READ = 0;
  private static final int WRITE = 1;
  private static final int READ_ONE = 2;
  private static final int FLUSH = 3;
  private static final long CALL_BUFFER = 24;
  private static final long CALL_KIND = 28;
  private static final long CALL_STATUS = 32;

  // In a FileRead.
  private static final long READ_BUFFER = 24;
  private static final long READ_STATUS = 28;

  private final long seed = Long.getLong("gpunvme.seed", System.nanoTime());
  private final List<Device> devices = new ArrayList<>();
  private Accelerator accelerator;
  private DeviceBuffer results;

  abstract Accelerator openAccelerator();

  /** Starts {@link UserKernel}; {@code served}: the one whose callers do not serve. */
  abstract RunningKernel start(
      boolean served, long storage, long results, int threads, int rounds, int span);

  /** Starts {@link UserKernel}'s {@code read_ranges} of so many ranges. */
  abstract RunningKernel startRanges(long storage, long file, long reads, int count);

  /**
   * Starts {@link UserKernel}'s {@code call_set} of so many calls.
   *
   * @param servers blocks that serve, one for each SSD; 0: callers help
   */
  abstract RunningKernel startCalls(int servers, long storage, long set, long calls, int count);

  /** Threads of a block of {@code read_together}, and of a warp. */
  abstract int blockThreads();

  abstract int warpThreads();

  /** Starts {@link UserKernel}'s {@code read_together}, a block for each read. */
  abstract RunningKernel startTogether(long storage, long file, long reads, long seen, int count);

  /** Starts {@link UserKernel}'s {@code look_up}. */
  abstract RunningKernel startLookUps(long storage, long directory, long text, long all, int count);

  /** How many threads the kernel gets. */
  abstract int threads();

  @BeforeEach
  final void begin() {
    accelerator = openAccelerator();
    results = accelerator.allocate((threads() + 1) * UserKernel.RESULT_BYTES);
  }

  @AfterEach
  final void end() {
    devices.forEach(Device::close);
    // Null where the test was skipped because there is none.
    if (accelerator != null) {
      accelerator.close();
    }
  }

  private Device device() {
    ControllerOptions.Builder options =
        ControllerOptions.builder()
            .ioTimeout(Duration.ofSeconds(1))
            .recoveryTimeout(Duration.ofMillis(400));
    return device(BLOCKS, "", options);
  }

  /** Every block of the lower half begins with words of its own. */
  private Device device(int blocks, String more, ControllerOptions.Builder options) {
    String address =
        "sim:lba=4096,size=%d,latency=0,workers=1%s".formatted((long) blocks * BLOCK, more);
    Device device = Device.open(DeviceAddress.parse(address), options.allowWrite(true).build(), "");
    MemorySegment medium = medium(device);
    for (int block = 0; block < blocks / 2; block++) {
      DeviceLayout.setInt(medium, (long) block * BLOCK, block * 3 + devices.size());
      DeviceLayout.setInt(medium, (long) block * BLOCK + 4, ~block);
    }
    devices.add(device);
    return device;
  }

  /** Of a set, with blocks of 512 and 4096 bytes in turn. */
  private List<Device> members(int count, ControllerOptions options) {
    for (int i = 0; i < count; i++) {
      String address =
          "sim:lba=%d,size=8MiB,latency=0,workers=1".formatted(i % 2 == 0 ? BLOCK : 512);
      devices.add(Device.open(DeviceAddress.parse(address), options, ""));
    }
    return devices;
  }

  private static SimulatedController sim(Device device) {
    return (SimulatedController) device.controller().function();
  }

  private static MemorySegment medium(Device device) {
    return StripedImage.medium(device);
  }

  /** Runs the kernel; returns how many reads and writes went well, and checks those. */
  private int run(KernelStorage storage) {
    return run(false, storage, threads(), 1);
  }

  private int run(boolean served, KernelStorage storage, int threads, int span) {
    MemorySegment fresh =
        Arena.ofAuto().allocate((threads() + 1) * UserKernel.RESULT_BYTES, Long.BYTES);
    DeviceLayout.setInt(fresh, threads * UserKernel.RESULT_BYTES, threads);
    results.copyFromHost(fresh, 0);
    storage.await(
        start(served, storage.deviceHandle(), results.deviceAddress(), threads, ROUNDS, span),
        LIMIT);
    int good = 0;
    for (int thread = 0; thread < threads; thread++) {
      MemorySegment r = result(thread);
      assertThat(DeviceLayout.getInt(r, 4)).as("wrong data").isZero();
      good += DeviceLayout.getInt(r, 0);
    }
    return good;
  }

  private MemorySegment result(int thread) {
    MemorySegment r = Arena.ofAuto().allocate(UserKernel.RESULT_BYTES, Long.BYTES);
    results.copyToHost(thread * UserKernel.RESULT_BYTES, r);
    return r;
  }

  private DeviceBuffer register(KernelStorage storage, Placement placement) {
    DeviceBuffer buffer = placement.allocate(accelerator, (long) threads() * BLOCK);
    assertThat(storage.register(buffer)).isZero();
    return buffer;
  }

  @ParameterizedTest
  @CsvSource({
    "HOST, false",
    "VRAM_DATA, false",
    "VRAM, false",
    "HOST, true",
    "VRAM_DATA, true",
    "VRAM, true",
  })
  final void everyThreadReadsAndWritesWhatItLikes(Placement placement, boolean served) {
    Device device = device();
    try (KernelStorage storage =
        KernelStorage.open(device, accelerator, KernelStorageOptions.in(placement).with(2, 64))) {
      DeviceBuffer buffer = register(storage, placement);

      assertThat(run(served, storage, threads(), 1)).isEqualTo(threads() * ROUNDS);

      for (int thread = 0; thread < threads(); thread++) {
        for (int round = 0; round < ROUNDS; round++) {
          int block = (thread * 37 + round * 101) % HALF;
          long at = (long) (HALF + block) * BLOCK;
          assertThat(DeviceLayout.getInt(medium(device), at)).isEqualTo(block * 3);
          assertThat(DeviceLayout.getInt(medium(device), at + 4)).isEqualTo(~block);
        }
      }
      QueueCounters counters = storage.stats().getFirst();
      assertThat(counters.submitted()).isEqualTo(2L * threads() * ROUNDS);
      assertThat(counters.completed()).isEqualTo(counters.submitted());
      assertThat(counters.sqDoorbells()).isBetween(1L, counters.submitted());
      List<QueueTraffic> watched = device.controller().traffic().queues();
      assertThat(watched).extracting(QueueTraffic::queues).containsExactly("1", "2");
      assertThat(watched).extracting(QueueTraffic::kind).containsOnly(QueueTraffic.Kind.KERNELS);
      assertThat(watched.stream().mapToLong(q -> q.counts().submitted()).sum())
          .isEqualTo(counters.submitted());
      assertThat(watched.stream().mapToLong(q -> q.counts().completed()).sum())
          .isEqualTo(counters.submitted());
      assertThat(watched).allMatch(q -> q.counts().outstanding() == 0 && !q.isClosed());
      assertThat(storage.errors().total()).isZero();
      assertThat(sim(device).stats().ioCommands(DoorbellWindow.CPU)).isZero();
      buffer.close();
    }
  }

  /** With 8 MiB each range is one command, with the default of 1 MiB it is split. */
  @ParameterizedTest
  @CsvSource({"HOST, 8, 1", "VRAM_DATA, 8, 1", "VRAM, 8, 1", "HOST, 1, 5"})
  final void aRangeIsAsFewCommandsAsTheControllerTakes(Placement placement, int mib, int commands) {
    int threads = 4;
    int span = 1100;
    long half = (long) threads * span * BLOCK;
    Device device =
        device(
            2 * threads * span,
            ",mdts=8MiB",
            ControllerOptions.builder().maxTransferBytes((long) mib << 20));
    MemorySegment medium = medium(device);
    SplittableRandom random = new SplittableRandom(5);
    for (long at = 8; at < half; at += at % BLOCK == BLOCK - 8 ? 16 : 8) {
      DeviceLayout.setLong(medium, at, random.nextLong());
    }
    try (KernelStorage storage =
            KernelStorage.open(
                device, accelerator, KernelStorageOptions.in(placement).with(2, 32));
        DeviceBuffer buffer = placement.allocate(accelerator, half)) {
      storage.register(buffer);

      assertThat(run(false, storage, threads, span)).isEqualTo(threads * ROUNDS);

      assertThat(MemorySegment.mismatch(medium, 0, half, medium, half, 2 * half)).isEqualTo(-1);
      assertThat(storage.stats().getFirst().submitted())
          .isEqualTo(2L * commands * threads * ROUNDS);
    }
  }

  @Test
  final void severalSsdsAreOneHandle() {
    List<Device> both = List.of(device(), device());
    try (KernelStorage storage =
        KernelStorage.open(
            both, accelerator, KernelStorageOptions.in(Placement.HOST).with(1, 32))) {
      register(storage, Placement.HOST);

      assertThat(run(storage)).isEqualTo(threads() * ROUNDS);

      assertThat(storage.stats()).hasSize(2);
      for (Device device : both) {
        assertThat(sim(device).stats().ioCommands(DoorbellWindow.PEER))
            .isEqualTo((long) threads() * ROUNDS);
      }
    }
  }

  @ParameterizedTest
  @CsvSource({
    "status=media/unrecovered-read-error dnr on read nth=5, STATUS, 0",
    "drop on read nth=5,                                    TIMEOUT, 1",
    "late=4s on read nth=5,                                 TIMEOUT, 1",
    "duplicate on read nth=5,                               STALE,   0",
  })
  final void faultsAreToldAndTheQueueIsUsableAgain(
      String fault, DeviceError.Kind kind, int recoveries) {
    for (Placement placement : Placement.values()) {
      Device device = device();
      try (KernelStorage storage =
          KernelStorage.open(device, accelerator, KernelStorageOptions.in(placement).with(1, 32))) {
        DeviceBuffer buffer = register(storage, placement);
        sim(device).faults().add(fault);
        run(storage);
        DeviceErrors errors = storage.errors();
        assertThat(errors.records())
            .as(placement + ": " + fault)
            .anySatisfy(
                e -> {
                  assertThat(e.kind()).isEqualTo(kind);
                  assertThat(e.qid()).isPositive();
                  assertThat(e.opcode()).isEqualTo(kind == DeviceError.Kind.STALE ? e.opcode() : 2);
                });
        sim(device).faults().clear();
        assertThat(storage.recover().size()).isLessThanOrEqualTo(recoveries);
        assertThat(storage.errors().total()).isZero();
        assertThat(device.controller().traffic().queues().getFirst().counts().outstanding())
            .isZero();

        int good = run(storage);
        assertThat(good).isEqualTo(threads() * ROUNDS);
        buffer.close();
      } finally {
        devices.remove(device);
        device.close();
      }
    }
  }

  @Test
  final void aKernelThatUsesALostQueueIsStoppedAndCanBeRunAgain() {
    Device device = device();
    try (KernelStorage storage =
        KernelStorage.open(
            device, accelerator, KernelStorageOptions.in(Placement.HOST).with(1, 32))) {
      register(storage, Placement.HOST);
      sim(device).faults().add("cfs on read nth=5");
      run(storage);
      assertThat(storage.recover()).isNotEmpty();
      storage.errors();
      assertThat(run(storage)).isEqualTo(threads() * ROUNDS);
    }
  }

  /** Callers that wait bring the queues back; what was in flight is submitted again. */
  @ParameterizedTest
  @CsvSource({"HOST, false", "VRAM, false", "HOST, true"})
  final void aControllerThatFailsIsResetWhileTheKernelGoesOn(Placement placement, boolean served) {
    Device device = device();
    KernelStorageOptions options = KernelStorageOptions.in(placement).with(2, 32).withRecovery();
    try (KernelStorage storage = KernelStorage.open(device, accelerator, options)) {
      register(storage, placement);
      sim(device).faults().add("cfs on read nth=5");

      assertThat(run(served, storage, threads(), 1)).isEqualTo(threads() * ROUNDS);

      assertThat(storage.recoveries()).isEqualTo(1);
      assertThat(storage.stats().getFirst().timeouts()).isZero();
      assertThat(storage.recover()).isEmpty();
      assertThat(run(served, storage, threads(), 1)).isEqualTo(threads() * ROUNDS);
    }
  }

  /** One of them is brought back before the other, which is not forgotten. */
  @Test
  final void twoControllersThatFailAreResetWhileTheKernelGoesOn() {
    List<Device> both = List.of(device(), device());
    KernelStorageOptions options =
        KernelStorageOptions.in(Placement.HOST).with(1, 32).withRecovery();
    try (KernelStorage storage = KernelStorage.open(both, accelerator, options)) {
      register(storage, Placement.HOST);
      both.forEach(device -> sim(device).faults().add("cfs on read nth=3"));

      assertThat(run(storage)).isEqualTo(threads() * ROUNDS);

      assertThat(storage.recoveries()).isEqualTo(2);
      assertThat(storage.recover()).isEmpty();
    }
  }

  /** A slot that lost its command is there again before the kernel ends. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  final void aLostCommandsSlotComesBackWhileTheKernelGoesOn(boolean served) {
    Device device = device();
    KernelStorageOptions options =
        KernelStorageOptions.in(Placement.HOST).with(1, 32).withRecovery();
    try (KernelStorage storage = KernelStorage.open(device, accelerator, options)) {
      register(storage, Placement.HOST);
      sim(device).faults().add("drop on read nth=3");
      // The others last longer than the command's deadline and the host's look behind it.
      sim(device).faults().add("late=250ms on write");

      int others = Math.min(threads(), 16) - 1;
      assertThat(run(served, storage, others + 1, 1)).isEqualTo(others * ROUNDS);

      QueueCounters counters = storage.stats().getFirst();
      assertThat(storage.recoveries()).isEqualTo(1);
      assertThat(counters.timeouts()).isEqualTo(1);
      assertThat(counters.recovered()).isEqualTo(1);
      assertThat(device.controller().traffic().queues().getFirst().counts().outstanding()).isZero();
      assertThat(storage.recover()).isEmpty();
    }
  }

  /** Two kernels wait for an SSD that answers late; one of them is stopped, the other goes on. */
  @Test
  final void aKernelWithItsOwnHandleIsStoppedAlone() throws Exception {
    Device device =
        device(BLOCKS, "", ControllerOptions.builder().ioTimeout(Duration.ofMinutes(2)));
    KernelStorageOptions options = KernelStorageOptions.in(Placement.HOST).with(1, 64);
    try (KernelStorage storage = KernelStorage.open(device, accelerator, options);
        KernelHandle one = storage.handle();
        KernelHandle other = storage.handle()) {
      register(storage, Placement.HOST);
      sim(device).faults().add("late=2s on read count=2");
      long first = results.deviceAddress();
      RunningKernel stopped = start(false, one.deviceHandle(), first, 1, 1, 1);
      RunningKernel patient =
          start(false, other.deviceHandle(), first + UserKernel.RESULT_BYTES, 1, 1, 1);
      boolean stoppedByItself = one.await(stopped, Duration.ofMillis(1));
      boolean patientByItself = other.await(patient, LIMIT);
      // Not before both are over: they use what a failure closes.
      assertThat(stoppedByItself).isFalse();
      assertThat(patientByItself).isTrue();
      assertThat(DeviceLayout.getInt(result(0), 8)).isEqualTo(DeviceStatus.STOPPED);
      assertThat(DeviceLayout.getInt(result(1), 8)).isZero();
      assertThat(DeviceLayout.getInt(result(1), 0)).isOne();
    }
  }

  @Test
  final void whatItCannotDoItRefuses() {
    Device device = device();
    KernelStorageOptions options = KernelStorageOptions.in(Placement.HOST);
    assertThatThrownBy(() -> KernelStorage.open(List.of(), accelerator, options))
        .isInstanceOf(InvalidRequestException.class);
    assertThatThrownBy(() -> KernelStorage.open(device, accelerator, options.with(1, 33)))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("multiple of 32");
    assertThatThrownBy(
            () ->
                KernelStorage.open(
                    device, accelerator, new KernelStorageOptions(7, Placement.HOST, 1, 32, 1)))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("namespace 7");
    KernelStorage storage =
        KernelStorage.open(
            device, accelerator, new KernelStorageOptions(1, Placement.HOST, 1, 32, 1));
    register(storage, Placement.HOST);
    DeviceBuffer second = accelerator.allocatePinned(4096);
    assertThatThrownBy(() -> storage.register(second))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("all 1 buffers");
    storage.close();
    storage.close();
    assertThatThrownBy(storage::deviceHandle).isInstanceOf(IllegalStateException.class);
    assertThatThrownBy(() -> storage.register(second)).isInstanceOf(IllegalStateException.class);
  }

  @Test
  final void registeredMemoryStaysUntilNoKernelCanUseIt() {
    KernelStorage storage =
        KernelStorage.open(
            device(), accelerator, new KernelStorageOptions(1, Placement.HOST, 1, 32, 1));
    DeviceBuffer buffer = register(storage, Placement.HOST);
    MemorySegment memory = buffer.segment();
    buffer.close();
    assertThat(memory.scope().isAlive()).as("an SSD may write to it").isTrue();
    storage.close();
    assertThat(memory.scope().isAlive()).isFalse();
  }

  @Test
  final void unregisteredMemoryIsTheOwnersAndItsNumberIsGivenAgain() {
    Device device = device();
    try (KernelStorage storage =
        KernelStorage.open(
            device, accelerator, new KernelStorageOptions(1, Placement.HOST, 1, 32, 2))) {
      DeviceBuffer first = register(storage, Placement.HOST);
      DeviceBuffer second = accelerator.allocatePinned((long) threads() * BLOCK);
      assertThat(storage.register(second)).isEqualTo(1);
      assertThat(run(storage)).isEqualTo(threads() * ROUNDS);

      MemorySegment memory = first.segment();
      first.close();
      storage.unregister(0);
      assertThat(memory.scope().isAlive()).isFalse();
      assertThatThrownBy(() -> storage.unregister(0))
          .isInstanceOf(InvalidRequestException.class)
          .hasMessageContaining("no buffer is registered with number 0");
      for (int number : new int[] {-1, 2}) {
        assertThatThrownBy(() -> storage.unregister(number))
            .isInstanceOf(InvalidRequestException.class);
      }
      long before = storage.stats().getFirst().submitted();
      assertThat(run(storage)).as("commands for a buffer that is not there").isZero();
      assertThat(DeviceLayout.getInt(result(0), 8)).isEqualTo(DeviceStatus.ARGUMENT);
      assertThat(storage.stats().getFirst().submitted()).isEqualTo(before);

      DeviceBuffer third = register(storage, Placement.HOST);
      assertThat(run(storage)).isEqualTo(threads() * ROUNDS);
      storage.unregister(1);
      storage.unregister(0);
      second.close();
      third.close();
    }
  }

  /** By the CPU where they are holes or ends, by the SSD where they are whole blocks. */
  @ParameterizedTest
  @CsvSource({"HOST, 1", "VRAM_DATA, 1", "VRAM, 1", "HOST, 3", "VRAM_DATA, 2", "VRAM, 4"})
  final void rangesOfAFileAreReadByTheirBytes(Placement placement, int ssds) {
    SplittableRandom random = new SplittableRandom(seed);
    ControllerOptions options =
        ControllerOptions.builder().allowWrite(true).maxTransferBytes(8 * BLOCK).build();
    StripedImage image =
        StripedImage.of(random, members(ssds, options), 4 * BLOCK, BLOCKS / 4 / ssds - 20);
    byte[] content = new byte[300 * BLOCK + 777];
    List<DeviceExtent> extents = scatter(random, image.bytes(), content);
    int count = 200;
    byte[] expected = new byte[4 << 20];
    Arrays.fill(expected, (byte) 0x5A);
    MemorySegment reads = Arena.ofAuto().allocate(count * UserKernel.FILE_READ_BYTES, Long.BYTES);
    int end = 0;
    for (int i = 0; i < count; i++) {
      int bytes =
          i == 0 ? content.length : i == 1 ? 0 : random.nextInt(1, i % 2 == 0 ? 300 : 6 * BLOCK);
      int offset = i % 5 == 0 ? content.length - bytes : random.nextInt(content.length - bytes + 1);
      if (i % 3 == 0) {
        offset -= offset % BLOCK;
      }
      int to = end + random.nextInt(9);
      end = to + bytes;
      System.arraycopy(content, offset, expected, to, bytes);
      setRead(reads, i, offset, bytes, to);
    }
    try (KernelStorage storage =
            KernelStorage.open(
                devices, accelerator, KernelStorageOptions.in(placement).with(2, 64));
        DeviceBuffer buffer = placement.allocate(accelerator, expected.length);
        DeviceBuffer scratch = placement.allocate(accelerator, (long) threads() * BLOCK);
        DeviceFile file = storage.file(image.set(), content.length, extents)) {
      storage.register(buffer);
      storage.register(scratch);
      MemorySegment seen = Arena.ofAuto().allocate(expected.length);
      seen.fill((byte) 0x5A);
      buffer.copyFromHost(seen, 0);

      assertThat(readRanges(storage, file, reads, count)).containsOnly(0);

      buffer.copyToHost(0, seen);
      assertThat(Arrays.mismatch(seen.toArray(ValueLayout.JAVA_BYTE), expected))
          .as("seed %d", seed)
          .isEqualTo(-1);
      // Holes need none, and where they are is random; the first range is all of the file.
      assertThat(storage.stats().stream().mapToLong(QueueCounters::submitted).sum())
          .isGreaterThan(count / 8);

      long[][] outside = {
        {content.length, 1, 0, 0},
        {content.length + 1L, 0, 0, 0},
        {-1, 2, 0, 0},
        {5, -5, 0, 0},
        {0, 2, expected.length - 1L, 0},
        {0, 1, expected.length + 1L, 0},
        {0, 1, -1, 0},
        {0, 1, 0, 2},
        {0, 1, 0, -1},
        // Over all scratch blocks.
        {0, (long) threads() * BLOCK, 0, 1},
      };
      for (int i = 0; i < outside.length; i++) {
        setRead(reads, i, outside[i][0], outside[i][1], outside[i][2]);
        DeviceLayout.setInt(
            reads, i * UserKernel.FILE_READ_BYTES + READ_BUFFER, (int) outside[i][3]);
      }
      assertThat(readRanges(storage, file, reads, outside.length))
          .containsOnly(DeviceStatus.ARGUMENT);
      setRead(reads, 0, content.length, 0, 0);
      assertThat(readRanges(storage, file, reads, 1)).as("nothing").containsOnly(0);
      storage.unregister(1);
      setRead(reads, 0, 0, BLOCK, 0);
      assertThat(readRanges(storage, file, reads, 1))
          .as("no scratch")
          .containsOnly(DeviceStatus.ARGUMENT);
      assertThat(storage.errors().total()).isZero();
    }
  }

  /** Of a set and of a file; what the threads of a warp or block are told, and what they see. */
  @ParameterizedTest
  @CsvSource({"HOST, 1, 4", "VRAM_DATA, 3, 16", "VRAM, 4, 1", "HOST, 2, 32"})
  final void aWarpAndABlockReadTogether(Placement placement, int ssds, int unit) {
    SplittableRandom random = new SplittableRandom(seed);
    ControllerOptions options =
        ControllerOptions.builder().allowWrite(true).maxTransferBytes(8 * BLOCK).build();
    StripedImage image =
        StripedImage.of(random, members(ssds, options), unit * BLOCK, 1024 / unit / ssds);
    int blocks = image.bytes().length / BLOCK;
    byte[] content = new byte[300 * BLOCK + 777];
    List<DeviceExtent> extents = scatter(random, image.bytes(), content);
    int count = 40;
    byte[] expected = new byte[16 << 20];
    Arrays.fill(expected, (byte) 0x5A);
    Together reads = new Together(count, blockThreads(), warpThreads());
    int[] at = new int[count];
    int[] lengths = new int[count];
    int end = 0;
    for (int i = 0; i < count; i++) {
      boolean file = i % 2 == 0;
      int most = file ? 80 * BLOCK : 80;
      int length = i == 0 ? content.length : random.nextInt(1, i % 3 == 0 ? 20 : most);
      int first = i % 5 == 0 ? 0 : random.nextInt((file ? content.length : blocks) - length + 1);
      int bytes = file ? length : length * BLOCK;
      int to = end + (file ? random.nextInt(9) : (4 - end % 4) % 4 + 4 * random.nextInt(3));
      end = to + bytes;
      at[i] = to;
      lengths[i] = bytes;
      byte[] from = file ? content : image.bytes();
      System.arraycopy(from, file ? first : first * BLOCK, expected, to, bytes);
      reads.set(i, first, length, to, file, i % 4 < 2);
    }
    try (KernelStorage storage =
            KernelStorage.open(
                devices, accelerator, KernelStorageOptions.in(placement).with(2, 64));
        DeviceBuffer buffer = placement.allocate(accelerator, expected.length);
        DeviceBuffer scratch =
            placement.allocate(accelerator, (long) count * blockThreads() * BLOCK);
        DeviceFile file = storage.file(image.set(), content.length, extents)) {
      storage.register(buffer);
      storage.register(scratch);
      buffer.copyFromHost(MemorySegment.ofArray(expected.clone()), 0);
      wipe(buffer, expected.length);

      reads.run(storage, file);
      for (int i = 0; i < count; i++) {
        assertThat(reads.statuses(i)).as("read %d, seed %d", i, seed).containsOnly(0);
        assertThat(reads.sums(i))
            .as("read %d, seed %d", i, seed)
            .containsOnly(Together.sum(expected, at[i], lengths[i]));
      }
      byte[] seen = new byte[expected.length];
      buffer.copyToHost(0, MemorySegment.ofArray(seen));
      assertThat(Arrays.mismatch(seen, expected)).as("seed %d", seed).isEqualTo(-1);

      long before = storage.stats().stream().mapToLong(QueueCounters::submitted).sum();
      long[][] outside = {
        // Of the set: first, blocks, to.
        {0, 0, 0},
        {0, blocks + 1, 0},
        {blocks, 1, 0},
        {-1, 1, 0},
        {0, 1, 2},
        {0, 1, expected.length},
        {0, 1L << 52, 0},
        // Of the file.
        {0, content.length + 1, 0},
        {content.length + 1, 0, 0},
        {-1, 1, 0},
        {0, 1, expected.length},
        {5, -5, 0},
      };
      Together wrong = new Together(2 * outside.length, blockThreads(), warpThreads());
      for (int i = 0; i < 2 * outside.length; i++) {
        long[] one = outside[i / 2];
        wrong.set(i, one[0], one[1], one[2], i / 2 >= 7, i % 2 == 0);
      }
      wrong.run(storage, file);
      for (int i = 0; i < 2 * outside.length; i++) {
        assertThat(wrong.statuses(i)).as("wrong %d", i).containsOnly(DeviceStatus.ARGUMENT);
      }
      assertThat(storage.stats().stream().mapToLong(QueueCounters::submitted).sum())
          .isEqualTo(before);
      Together nothing = new Together(1, blockThreads(), warpThreads());
      nothing.set(0, content.length, 0, 0, true, true);
      nothing.run(storage, file);
      assertThat(nothing.statuses(0)).containsOnly(0);

      // The scratch of the last thread of a block is needed, too.
      storage.unregister(1);
      storage.register(scratch, (long) blockThreads() * BLOCK - 1);
      Together two = new Together(2, blockThreads(), warpThreads());
      two.set(0, 0, 1, 0, true, true);
      two.run(storage, file);
      assertThat(two.statuses(0)).containsOnly(DeviceStatus.ARGUMENT);
      assertThat(storage.errors().total()).isZero();
    }
  }

  private void wipe(DeviceBuffer buffer, int bytes) {
    MemorySegment wiped = Arena.ofAuto().allocate(bytes);
    wiped.fill((byte) 0x5A);
    buffer.copyFromHost(wiped, 0);
  }

  /** One of the SSDs fails: all threads are told the same, and only when nothing moves any more. */
  @Test
  final void whatAWarpOrABlockReadsFailsForAllOfIt() {
    ControllerOptions options = ControllerOptions.builder().maxTransferBytes(8 * BLOCK).build();
    StripedImage image =
        StripedImage.of(new SplittableRandom(seed), members(3, options), 2 * BLOCK, 20);
    List<DeviceExtent> all = List.of(new DeviceExtent(0, 60L * BLOCK, 0));
    Together reads = new Together(4, blockThreads(), warpThreads());
    for (int i = 0; i < 4; i++) {
      boolean file = i < 2;
      reads.set(i, 0, file ? 60L * BLOCK : 60, i * 60L * BLOCK, file, i % 2 == 0);
    }
    try (KernelStorage storage =
            KernelStorage.open(
                devices, accelerator, KernelStorageOptions.in(Placement.HOST).with(1, 64));
        DeviceBuffer buffer = Placement.HOST.allocate(accelerator, 240L * BLOCK);
        DeviceBuffer scratch = Placement.HOST.allocate(accelerator, 4L * blockThreads() * BLOCK);
        DeviceFile file = storage.file(image.set(), 60L * BLOCK, all)) {
      storage.register(buffer);
      storage.register(scratch);
      sim(devices.get(1)).faults().add("status=media/unrecovered-read-error dnr on read lba=21");
      reads.run(storage, file);
      for (int i = 0; i < 4; i++) {
        assertThat(reads.statuses(i)).allMatch(status -> (status & 0x7FF) == 641);
        assertThat(reads.statuses(i).stream().distinct()).hasSize(1);
      }
      // Two fail in different ways: it is one of them, and the same for all.
      sim(devices.get(2)).faults().add("status=media/access-denied dnr on read");
      reads.run(storage, file);
      for (int i = 0; i < 4; i++) {
        assertThat(reads.statuses(i))
            .allMatch(status -> List.of(0x281, 0x286).contains(status & 0x7FF));
        assertThat(reads.statuses(i).stream().distinct()).hasSize(1);
      }
      sim(devices.get(1)).faults().clear();
      sim(devices.get(2)).faults().clear();
      reads.run(storage, file);
      for (int i = 0; i < 4; i++) {
        assertThat(reads.statuses(i)).containsOnly(0);
      }
    }
  }

  /** Reads of {@code read_together}. */
  private final class Together {
    private final MemorySegment reads;
    private final int count;
    private final int block;
    private final int warp;
    private final boolean[] whole;
    private MemorySegment seen = MemorySegment.NULL;

    Together(int count, int block, int warp) {
      this.count = count;
      this.block = block;
      this.warp = warp;
      whole = new boolean[count];
      reads = Arena.ofAuto().allocate(count * UserKernel.TOGETHER_BYTES, Long.BYTES);
    }

    /** By a whole block, or a warp. */
    void set(int i, long first, long length, long to, boolean file, boolean wholeBlock) {
      long at = i * UserKernel.TOGETHER_BYTES;
      DeviceLayout.setLong(reads, at, first);
      DeviceLayout.setLong(reads, at + 8, length);
      DeviceLayout.setLong(reads, at + 16, to);
      DeviceLayout.setInt(reads, at + 24, file ? 1 : 0);
      DeviceLayout.setInt(reads, at + 28, wholeBlock ? 1 : 0);
      whole[i] = wholeBlock;
    }

    void run(KernelStorage storage, DeviceFile file) {
      seen = Arena.ofAuto().allocate(count * block * UserKernel.SEEN_BYTES, Long.BYTES);
      seen.fill((byte) -1);
      try (DeviceBuffer asked = accelerator.allocate(reads.byteSize());
          DeviceBuffer told = accelerator.allocate(seen.byteSize())) {
        asked.copyFromHost(reads, 0);
        told.copyFromHost(seen, 0);
        storage.await(
            startTogether(
                storage.deviceHandle(),
                file.deviceAddress(),
                asked.deviceAddress(),
                told.deviceAddress(),
                count),
            LIMIT);
        told.copyToHost(0, seen);
      }
    }

    /** What each thread that read was told. */
    List<Integer> statuses(int i) {
      return each(i, 0);
    }

    /** Of the bytes that each thread saw. */
    List<Integer> sums(int i) {
      return each(i, 4);
    }

    private List<Integer> each(int i, long field) {
      return IntStream.range(0, whole[i] ? block : warp)
          .mapToObj(
              thread ->
                  DeviceLayout.getInt(
                      seen, ((long) i * block + thread) * UserKernel.SEEN_BYTES + field))
          .toList();
    }

    static int sum(byte[] bytes, int from, int length) {
      int sum = 1;
      for (int i = from; i < from + length; i++) {
        sum = sum * 31 + Byte.toUnsignedInt(bytes[i]);
      }
      return sum;
    }
  }

  /** Many paths, with each kind that is easily taken for another; and what is read there. */
  @ParameterizedTest
  @CsvSource({"HOST, 1", "VRAM_DATA, 3", "VRAM, 2"})
  final void filesOfADirectoryAreFoundByTheirPaths(Placement placement, int ssds) {
    SplittableRandom random = new SplittableRandom(seed);
    ControllerOptions options = ControllerOptions.builder().maxTransferBytes(8 * BLOCK).build();
    StripedImage image = StripedImage.of(random, members(ssds, options), 4 * BLOCK, 60);
    List<String> pair = Collisions.pair(random);
    List<String> halfPair = Collisions.pair(random);
    TreeMap<String, byte[]> files = new TreeMap<>(PATHS);
    DirectoryFiles told = new DirectoryFiles(image.set());
    for (String path : paths(random, pair, halfPair)) {
      int size = random.nextInt(8) == 0 ? 0 : random.nextInt(1, 6 * BLOCK);
      byte[] content = new byte[size];
      told.add(path, size, scatter(random, image.bytes(), content));
      files.put(path, content);
    }
    List<String> inOrder = List.copyOf(files.keySet());
    assertThat(told.count()).isEqualTo(inOrder.size());

    LookUps asked = new LookUps();
    Map<Integer, String> there = new HashMap<>();
    byte[] expected = new byte[16 << 20];
    int end = 0;
    for (String path : inOrder) {
      for (String text : List.of(path, "/" + path)) {
        byte[] content = files.get(path);
        int length = random.nextInt(content.length + 1);
        int offset = random.nextInt(content.length - length + 1);
        boolean ended = random.nextBoolean();
        there.put(asked.path(text, ended, offset, length, end), path);
        System.arraycopy(content, offset, expected, end, length);
        end += length;
      }
    }
    Set<String> absent = new HashSet<>(List.of("", "/", ".", "..", "//", halfPair.getLast()));
    for (String path : inOrder) {
      absent.add(path + "x");
      absent.add(path + "/");
      absent.add("./" + path);
      absent.add("//" + path);
      absent.add(path.substring(0, path.length() - 1));
      absent.add(path.substring(1));
      absent.add(path.toUpperCase(Locale.ROOT));
      absent.add(path.replace('/', '_'));
    }
    absent.removeIf(
        p ->
            files.containsKey(p.startsWith("/") ? p.substring(1) : p)
                || p.chars().anyMatch(c -> Character.isSurrogate((char) c)));
    List<Integer> missing = new ArrayList<>();
    absent.forEach(path -> missing.add(asked.path(path, random.nextBoolean(), 0, 0, 0)));
    missing.add(asked.tooLong(DirectoryFiles.MOST_PATH_BYTES + 1));
    missing.add(asked.tooLong(Integer.MAX_VALUE));
    missing.add(asked.number(inOrder.size()));
    missing.add(asked.number(-1));
    int first = asked.count();
    IntStream.range(0, inOrder.size()).forEach(asked::number);

    try (KernelStorage storage =
            KernelStorage.open(
                devices, accelerator, KernelStorageOptions.in(placement).with(2, 64));
        DeviceBuffer buffer = placement.allocate(accelerator, expected.length);
        DeviceBuffer scratch = placement.allocate(accelerator, (long) threads() * BLOCK);
        DeviceDirectory directory = storage.directory(told)) {
      assertThat(directory.count()).isEqualTo(inOrder.size());
      storage.register(buffer);
      storage.register(scratch);
      buffer.copyFromHost(MemorySegment.ofArray(new byte[expected.length]), 0);

      LookUps.Said said = lookUp(storage, directory, asked);

      there.forEach(
          (question, path) -> {
            assertThat(said.found(question)).as(path).isEqualTo(inOrder.indexOf(path));
            assertThat(said.status(question)).as(path).isZero();
            assertThat(said.size(question)).as(path).isEqualTo(files.get(path).length);
          });
      assertThat(missing).allMatch(question -> said.found(question) == LookUps.NONE);
      for (int i = 0; i < inOrder.size(); i++) {
        assertThat(said.found(first + i)).isEqualTo(i);
        assertThat(said.path(first + i)).isEqualTo(inOrder.get(i));
        assertThat(said.size(first + i)).isEqualTo(files.get(inOrder.get(i)).length);
      }
      byte[] seen = new byte[expected.length];
      buffer.copyToHost(0, MemorySegment.ofArray(seen));
      assertThat(Arrays.mismatch(seen, expected)).as("seed %d", seed).isEqualTo(-1);

      try (DeviceDirectory none = storage.directory(new DirectoryFiles(image.set()))) {
        LookUps.Said nothing = lookUp(storage, none, asked);
        assertThat(IntStream.range(0, asked.count()))
            .allMatch(question -> nothing.found(question) == LookUps.NONE);
      }
      assertThat(storage.errors().total()).isZero();
    }
  }

  /** As kernels count files. */
  private static final Comparator<String> PATHS =
      (a, b) ->
          Arrays.compareUnsigned(
              a.getBytes(StandardCharsets.UTF_8), b.getBytes(StandardCharsets.UTF_8));

  private static Set<String> paths(
      SplittableRandom random, List<String> pair, List<String> halfPair) {
    Set<String> paths = new HashSet<>(Collisions.crowd(random, 30));
    paths.addAll(pair);
    paths.add(halfPair.getFirst());
    paths.addAll(
        List.of(
            "a",
            "aa",
            "a/b",
            "a/b/c",
            "A",
            "a b",
            "größe/日本語.bin",
            "größe/\uD83D\uDE00",
            "é",
            "e\u0301",
            "\\x41",
            "...",
            ".hidden",
            "x".repeat(DirectoryFiles.MOST_PATH_BYTES),
            "x".repeat(DirectoryFiles.MOST_PATH_BYTES - 1)));
    while (paths.size() < 500) {
      StringBuilder path = new StringBuilder();
      for (int names = random.nextInt(1, 4); names > 0; names--) {
        path.append(path.isEmpty() ? "" : "/");
        path.append(Integer.toString(random.nextInt(1, 1 << random.nextInt(1, 20)), 36));
      }
      paths.add(path.toString());
    }
    return paths;
  }

  private LookUps.Said lookUp(KernelStorage storage, DeviceDirectory directory, LookUps asked) {
    MemorySegment structs = asked.structs();
    MemorySegment text = asked.text();
    try (DeviceBuffer questions = accelerator.allocate(structs.byteSize());
        DeviceBuffer paths = accelerator.allocate(text.byteSize())) {
      questions.copyFromHost(structs, 0);
      paths.copyFromHost(text, 0);
      assertThat(
              storage.await(
                  startLookUps(
                      storage.deviceHandle(),
                      directory.deviceAddress(),
                      paths.deviceAddress(),
                      questions.deviceAddress(),
                      asked.count()),
                  LIMIT))
          .isTrue();
      questions.copyToHost(0, structs);
      paths.copyToHost(0, text);
      return new LookUps.Said(structs, text);
    }
  }

  private static void setRead(MemorySegment reads, int i, long offset, long bytes, long to) {
    long at = i * UserKernel.FILE_READ_BYTES;
    DeviceLayout.setLong(reads, at, offset);
    DeviceLayout.setLong(reads, at + 8, bytes);
    DeviceLayout.setLong(reads, at + 16, to);
    DeviceLayout.setInt(reads, at + READ_BUFFER, 0);
    DeviceLayout.setInt(reads, at + READ_STATUS, -1);
  }

  /** Reads the ranges; the status of each. */
  private List<Integer> readRanges(
      KernelStorage storage, DeviceFile file, MemorySegment reads, int count) {
    try (DeviceBuffer told = accelerator.allocate(reads.byteSize())) {
      told.copyFromHost(reads, 0);
      assertThat(
              storage.await(
                  startRanges(
                      storage.deviceHandle(), file.deviceAddress(), told.deviceAddress(), count),
                  LIMIT))
          .isTrue();
      MemorySegment back = Arena.ofAuto().allocate(reads.byteSize(), Long.BYTES);
      told.copyToHost(0, back);
      return IntStream.range(0, count)
          .mapToObj(i -> DeviceLayout.getInt(back, i * UserKernel.FILE_READ_BYTES + READ_STATUS))
          .toList();
    }
  }

  /**
   * Pieces of a file anywhere in a set, of some blocks each; a quarter of them nowhere, and of some
   * the end.
   */
  private static List<DeviceExtent> scatter(SplittableRandom random, byte[] image, byte[] content) {
    List<DeviceExtent> extents = new ArrayList<>();
    for (int at = 0; at < content.length; ) {
      int bytes = Math.min(random.nextInt(1, 20) * BLOCK, content.length - at);
      int there = random.nextInt(4) == 0 ? 0 : bytes - random.nextInt(2) * random.nextInt(bytes);
      if (there > 0) {
        int block = random.nextInt(image.length / BLOCK - 20);
        extents.add(new DeviceExtent(at, there, block));
        System.arraycopy(image, block * BLOCK, content, at, there);
      }
      at += bytes;
    }
    return extents;
  }

  @ParameterizedTest
  @CsvSource({
    "HOST,      2, 1,  false",
    "VRAM_DATA, 3, 4,  false",
    "VRAM,      4, 32, false",
    "HOST,      4, 2,  true",
    "VRAM_DATA, 2, 32, true",
    "VRAM,      3, 4,  true",
    "HOST,      1, 4,  false",
  })
  final void blocksOfASetAreReadAndWritten(
      Placement placement, int ssds, int unit, boolean served) {
    SplittableRandom random = new SplittableRandom(seed);
    ControllerOptions options =
        ControllerOptions.builder().allowWrite(true).maxTransferBytes(8 * BLOCK).build();
    StripedImage image = StripedImage.of(random, members(ssds, options), unit * BLOCK, 512 / unit);
    int blocks = image.bytes().length / BLOCK;
    byte[] memory = new byte[6 << 20];
    random.nextBytes(memory);
    try (KernelStorage storage =
            KernelStorage.open(
                devices, accelerator, KernelStorageOptions.in(placement).with(1, 32));
        DeviceBuffer buffer = placement.allocate(accelerator, memory.length);
        DeviceSet set = storage.set(image.set())) {
      storage.register(buffer);
      buffer.copyFromHost(MemorySegment.ofArray(memory), 0);

      int count = 60;
      MemorySegment calls = calls(count);
      int end = 0;
      for (int i = 0; i < count; i++) {
        boolean one = i % 4 == 3;
        int length = one ? 1 + random.nextInt(Math.min(unit, 8)) : 1 + random.nextInt(40);
        int block = i % 5 == 0 ? blocks - length : random.nextInt(blocks - length + 1);
        if (one) {
          block -= ssds == 1 ? 0 : block % unit;
        }
        int to = end + random.nextInt(100) * 4;
        end = to + length * BLOCK;
        System.arraycopy(image.bytes(), block * BLOCK, memory, to, length * BLOCK);
        setCall(calls, i, one ? READ_ONE : READ, block, length, to);
      }
      assertThat(call(served, storage, set, calls)).containsOnly(0);
      byte[] seen = new byte[memory.length];
      buffer.copyToHost(0, MemorySegment.ofArray(seen));
      assertThat(Arrays.mismatch(seen, memory)).as("read, seed %d", seed).isEqualTo(-1);

      // Writes that do not overlap: who comes last is nobody's promise.
      MemorySegment writes = calls(30);
      byte[] expected = image.bytes().clone();
      for (int i = 0; i < 30; i++) {
        int share = blocks / 30;
        int length = 1 + random.nextInt(share);
        int block = i * share + random.nextInt(share - length + 1);
        int from = random.nextInt((memory.length - length * BLOCK) / 4) * 4;
        System.arraycopy(memory, from, expected, block * BLOCK, length * BLOCK);
        setCall(writes, i, WRITE, block, length, from);
      }
      assertThat(call(served, storage, set, writes)).containsOnly(0);
      assertThat(Arrays.mismatch(image.read(), expected))
          .as("written, seed %d", seed)
          .isEqualTo(-1);

      List<Long> before = storage.stats().stream().map(QueueCounters::submitted).toList();
      assertThat(before).allMatch(n -> n > 30);
      MemorySegment flush = calls(1);
      setCall(flush, 0, FLUSH, 0, 0, 0);
      assertThat(call(served, storage, set, flush)).containsOnly(0);
      assertThat(storage.stats())
          .extracting(QueueCounters::submitted)
          .as("one more to each member")
          .isEqualTo(before.stream().map(n -> n + 1).toList());
      assertThat(storage.errors().total()).isZero();
    }
  }

  @Test
  final void whatIsOutsideASetIsRefused() {
    ControllerOptions options =
        ControllerOptions.builder().allowWrite(true).maxTransferBytes(8 * BLOCK).build();
    StripedImage image =
        StripedImage.of(new SplittableRandom(seed), members(2, options), 16 * BLOCK, 20);
    long blocks = image.set().blocks();
    long bytes = 64L * BLOCK;
    long[][] outside = {
      {READ, 0, 0, 0},
      {READ, blocks, 1, 0},
      {READ, blocks - 1, 2, 0},
      {READ, blocks - 40, 41, 0},
      {READ, -1, 1, 0},
      {READ, 0, -1, 0},
      {READ, 0, 1, 2},
      {READ, 0, 1, bytes - BLOCK + 4},
      {READ, 0, 64, 4},
      {READ, 0, 65, 0},
      {READ, 0, 1L << 52, 0},
      {READ, 0, 1, -4},
      {WRITE, blocks - 1, 2, 0},
      {WRITE, 0, 65, 0},
      {READ_ONE, 0, 9, 0},
      {READ_ONE, 15, 2, 0},
      {READ_ONE, 0, 0, 0},
    };
    try (KernelStorage storage =
            KernelStorage.open(
                devices, accelerator, KernelStorageOptions.in(Placement.HOST).with(1, 32));
        DeviceBuffer buffer = Placement.HOST.allocate(accelerator, bytes);
        DeviceSet set = storage.set(image.set())) {
      storage.register(buffer);
      MemorySegment calls = calls(outside.length + 1);
      for (int i = 0; i < outside.length; i++) {
        setCall(calls, i, (int) outside[i][0], outside[i][1], outside[i][2], outside[i][3]);
      }
      setCall(calls, outside.length, READ, 0, 1, 0);
      DeviceLayout.setInt(calls, outside.length * UserKernel.SET_CALL_BYTES + CALL_BUFFER, 1);
      assertThat(call(false, storage, set, calls)).containsOnly(DeviceStatus.ARGUMENT);
      assertThat(storage.stats()).allMatch(s -> s.submitted() == 0);
      // The largest that is inside.
      MemorySegment inside = calls(2);
      setCall(inside, 0, READ, blocks - 64, 64, 0);
      setCall(inside, 1, READ_ONE, 24, 8, 0);
      assertThat(call(false, storage, set, inside)).containsOnly(0);
      assertThatThrownBy(
              () -> storage.set(new StripeSet(image.set().members(), 16 * BLOCK, 20 * BLOCK)))
          .isInstanceOf(InvalidRequestException.class);
      assertThat(image.read()).isEqualTo(image.bytes());
    }
  }

  /** What the other members were asked for side by side is there, and is waited for. */
  @ParameterizedTest
  @CsvSource({
    "status=media/unrecovered-read-error dnr on read, STATUS,  641",
    "drop on read,                                    TIMEOUT, 32769",
  })
  final void aMemberOfASetThatFailsIsTold(String fault, DeviceError.Kind kind, int status) {
    ControllerOptions options =
        ControllerOptions.builder()
            .ioTimeout(Duration.ofSeconds(1))
            .recoveryTimeout(Duration.ofMillis(400))
            .build();
    StripedImage image =
        StripedImage.of(new SplittableRandom(seed), members(4, options), 2 * BLOCK, 20);
    int bytes = 8 * BLOCK;
    try (KernelStorage storage =
            KernelStorage.open(
                devices, accelerator, KernelStorageOptions.in(Placement.HOST).with(1, 32));
        DeviceBuffer buffer = Placement.HOST.allocate(accelerator, bytes);
        DeviceSet set = storage.set(image.set())) {
      storage.register(buffer);
      buffer.copyFromHost(MemorySegment.ofArray(new byte[bytes]), 0);
      sim(devices.getFirst()).faults().add(fault);
      MemorySegment calls = calls(1);
      setCall(calls, 0, READ, 0, 8, 0);
      List<Integer> statuses = call(false, storage, set, calls);
      // Of the controller's status SCT and SC.
      int mask = kind == DeviceError.Kind.TIMEOUT ? -1 : 0x7FF;
      assertThat(statuses.getFirst() & mask).isEqualTo(status);
      byte[] seen = new byte[bytes];
      buffer.copyToHost(0, MemorySegment.ofArray(seen));
      assertThat(Arrays.mismatch(seen, 2 * BLOCK, bytes, image.bytes(), 2 * BLOCK, bytes))
          .as("of the other members")
          .isEqualTo(-1);
      DeviceErrors errors = storage.errors();
      assertThat(errors.records()).singleElement().returns(kind, DeviceError::kind);
      sim(devices.getFirst()).faults().clear();
      storage.recover();
      storage.errors();
      assertThat(call(false, storage, set, calls)).containsOnly(0);
      buffer.copyToHost(0, MemorySegment.ofArray(seen));
      assertThat(seen).isEqualTo(Arrays.copyOf(image.bytes(), bytes));
    }
  }

  private static MemorySegment calls(int count) {
    return Arena.ofAuto().allocate(count * UserKernel.SET_CALL_BYTES + Integer.BYTES, Long.BYTES);
  }

  private static void setCall(
      MemorySegment calls, int i, int kind, long block, long blocks, long at) {
    long base = i * UserKernel.SET_CALL_BYTES;
    DeviceLayout.setLong(calls, base, block);
    DeviceLayout.setLong(calls, base + 8, blocks);
    DeviceLayout.setLong(calls, base + 16, at);
    DeviceLayout.setInt(calls, base + CALL_KIND, kind);
    DeviceLayout.setInt(calls, base + CALL_STATUS, -1);
  }

  /** Does the calls; the status of each. */
  private List<Integer> call(
      boolean served, KernelStorage storage, DeviceSet set, MemorySegment calls) {
    int count = (int) (calls.byteSize() / UserKernel.SET_CALL_BYTES);
    DeviceLayout.setInt(calls, count * UserKernel.SET_CALL_BYTES, threads());
    try (DeviceBuffer told = accelerator.allocate(calls.byteSize())) {
      told.copyFromHost(calls, 0);
      int servers = served ? storage.stats().size() : 0;
      storage.await(
          startCalls(
              servers, storage.deviceHandle(), set.deviceAddress(), told.deviceAddress(), count),
          LIMIT);
      MemorySegment back = Arena.ofAuto().allocate(calls.byteSize(), Long.BYTES);
      told.copyToHost(0, back);
      return IntStream.range(0, count)
          .mapToObj(i -> DeviceLayout.getInt(back, i * UserKernel.SET_CALL_BYTES + CALL_STATUS))
          .toList();
    }
  }

  @Test
  final void buffersThatARunningKernelMayUseStay() throws Exception {
    try (KernelStorage storage =
            KernelStorage.open(
                List.of(device(), device()),
                accelerator,
                new KernelStorageOptions(1, Placement.HOST, 1, 32, 2));
        DeviceBuffer other = accelerator.allocatePinned(BLOCK)) {
      DeviceBuffer buffer = register(storage, Placement.HOST);
      assertThat(storage.register(other)).isOne();
      storage.unregister(1);
      AtomicBoolean over = new AtomicBoolean();
      CountDownLatch asked = new CountDownLatch(1);
      RunningKernel kernel =
          () -> {
            asked.countDown();
            return over.get();
          };
      Thread waiting = Thread.ofPlatform().start(() -> storage.await(kernel, LIMIT));
      try {
        asked.await();
        assertThatThrownBy(() -> storage.unregister(0))
            .isInstanceOf(IllegalStateException.class)
            .hasMessageContaining("1 kernels use this storage");
        assertThatThrownBy(() -> storage.register(other))
            .as("a number that the kernel may know")
            .isInstanceOf(InvalidRequestException.class);
      } finally {
        over.set(true);
        waiting.join();
      }
      storage.unregister(0);
      assertThat(storage.register(other)).isZero();
      storage.unregister(0);
      assertThat(storage.register(buffer)).isZero();
      assertThat(run(storage)).isEqualTo(threads() * ROUNDS);
      buffer.close();
    }
  }

  /** What a command that timed out does to the memory is the SSD's. */
  @Test
  final void memoryThatACommandMayStillChangeStaysRegistered() {
    Device device = device();
    try (KernelStorage storage =
        KernelStorage.open(
            device, accelerator, KernelStorageOptions.in(Placement.HOST).with(1, 32))) {
      DeviceBuffer buffer = register(storage, Placement.HOST);
      sim(device).faults().add("drop on read nth=5");
      run(storage);
      assertThatThrownBy(() -> storage.unregister(0))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("commands may still move data");
      assertThat(storage.recover()).isNotEmpty();
      storage.errors();
      storage.unregister(0);
      buffer.close();
    }
  }
}
