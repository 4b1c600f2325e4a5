package io.gpunvme.gpu.queue;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.device.Device;
import io.gpunvme.gpu.device.DeviceAddress;
import io.gpunvme.nvme.driver.ControllerOptions;
import io.gpunvme.sim.SimulatedController;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import java.util.zip.CRC32C;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** What {@link PageCache} and the device's {@code Array} promise. */
@Timeout(300)
abstract class PageCacheContract {
  private static final int PAGE = 4096;
  private static final int PER_PAGE = PAGE / Long.BYTES;
  private static final long SIZE = 8L << 20;
  private static final long ELEMENTS = SIZE / Long.BYTES;

  /** Odd. */
  private static final long STEP = 4999;

  /** Two sets of frames: a sixty-fourth of the array. */
  private static final long FRAMES = 2L * 16 * PAGE;

  private static final Duration LIMIT = Duration.ofSeconds(60);

  private final SplittableRandom random =
      new SplittableRandom(Long.getLong("gpunvme.seed", System.nanoTime()));
  private final List<Device> devices = new ArrayList<>();
  private Accelerator accelerator;

  abstract Accelerator openAccelerator();

  /** Starts {@link ArrayKernel}; {@code servers}: blocks that serve, one for each SSD; or 0. */
  abstract RunningKernel start(int servers, long array, long ops, int count, int threads);

  /** How many threads the kernel gets. */
  abstract int threads();

  @BeforeEach
  final void begin() {
    accelerator = openAccelerator();
  }

  @AfterEach
  final void end() {
    devices.forEach(Device::close);
    // Null where the test was skipped because there is none.
    if (accelerator != null) {
      accelerator.close();
    }
  }

  /** Element i is {@code value(i)}. */
  private Device device() {
    Device device = device(PAGE);
    MemorySegment medium = StripedImage.medium(device);
    for (long i = 0; i < ELEMENTS; i++) {
      DeviceLayout.setLong(medium, i * Long.BYTES, value(i));
    }
    return device;
  }

  private Device device(int block) {
    ControllerOptions options =
        ControllerOptions.builder()
            .allowWrite(true)
            .ioTimeout(Duration.ofSeconds(1))
            .recoveryTimeout(Duration.ofMillis(400))
            .build();
    String address = "sim:lba=%d,size=%d,latency=0,workers=1".formatted(block, SIZE);
    Device device = Device.open(DeviceAddress.parse(address), options, "");
    devices.add(device);
    return device;
  }

  private static long value(long i) {
    return (i ^ i >>> 7) * 0x9E3779B97F4A7C15L;
  }

  private static SimulatedController sim(Device device) {
    return (SimulatedController) device.controller().function();
  }

  private KernelStorage storage(Placement placement) {
    return KernelStorage.open(devices, accelerator, KernelStorageOptions.in(placement).with(2, 64));
  }

  private static StripeSet all(Device device) {
    return new StripeSet(
        List.of(new StripeSet.Member(device.controller(), device.controller().namespace(1), 0)),
        PAGE,
        SIZE);
  }

  private DeviceFile whole(KernelStorage storage) {
    return storage.file(all(devices.getFirst()), SIZE, List.of(new DeviceExtent(0, SIZE, 0)));
  }

  private DeviceArray array(KernelStorage storage, PageCache cache, boolean writable) {
    try (DeviceFile file = whole(storage)) {
      return cache.array(file, 0, ELEMENTS, Long.BYTES, writable);
    }
  }

  /** An operation of {@link ArrayKernel}, before and after it. */
  private record Op(int kind, long index, long value, int count, int status) {
    static Op of(int kind, long index) {
      return new Op(kind, index, 0, 1, 0);
    }
  }

  private List<Op> run(KernelStorage storage, DeviceArray array, List<Op> ops) {
    return run(0, storage, array, ops, threads());
  }

  private List<Op> run(
      int servers, KernelStorage storage, DeviceArray array, List<Op> ops, int threads) {
    MemorySegment text =
        Arena.ofAuto().allocate(ops.size() * ArrayKernel.OP + Long.BYTES, Long.BYTES);
    for (int i = 0; i < ops.size(); i++) {
      MemorySegment one = text.asSlice(i * ArrayKernel.OP);
      DeviceLayout.setLong(one, 0, ops.get(i).index);
      DeviceLayout.setLong(one, ArrayKernel.OP_VALUE, ops.get(i).value);
      DeviceLayout.setInt(one, ArrayKernel.OP_COUNT, ops.get(i).count);
      DeviceLayout.setInt(one, ArrayKernel.OP_KIND, ops.get(i).kind);
    }
    DeviceLayout.setInt(text, ops.size() * ArrayKernel.OP, threads);
    try (DeviceBuffer memory = accelerator.allocate(text.byteSize())) {
      memory.copyFromHost(text, 0);
      storage.await(
          start(servers, array.deviceAddress(), memory.deviceAddress(), ops.size(), threads),
          LIMIT);
      memory.copyToHost(0, text);
    }
    List<Op> done = new ArrayList<>();
    for (int i = 0; i < ops.size(); i++) {
      MemorySegment one = text.asSlice(i * ArrayKernel.OP);
      done.add(
          new Op(
              ops.get(i).kind,
              ops.get(i).index,
              DeviceLayout.getLong(one, ArrayKernel.OP_VALUE),
              DeviceLayout.getInt(one, ArrayKernel.OP_COUNT),
              DeviceLayout.getInt(one, ArrayKernel.OP_STATUS)));
    }
    return done;
  }

  /** Elements here and there, and in a row. */
  private List<Op> gets(int count) {
    return IntStream.range(0, count)
        .mapToObj(
            i -> Op.of(ArrayKernel.GET, i % 3 == 0 ? random.nextLong(ELEMENTS) : i * 5L % ELEMENTS))
        .toList();
  }

  private static void assertRight(List<Op> done) {
    assertThat(done)
        .allSatisfy(
            op -> {
              assertThat(op.status).isZero();
              assertThat(op.value).isEqualTo(value(op.index));
            });
  }

  private static void assertCounted(PageCacheCounters counters, long acquires) {
    assertThat(counters.reads()).isEqualTo(counters.misses());
    assertThat(counters.evictions()).isPositive().isLessThan(counters.misses());
    assertThat(counters.acquires()).isBetween(1L, acquires);
    assertThat(counters.hitRate()).isBetween(0.0, 1.0);
    assertThat(counters.readFailures()).isZero();
    assertThat(counters.lost()).isZero();
    assertThat(counters.tierHits() + counters.tierInserts() + counters.tierRefusals())
        .as("without a host tier")
        .isZero();
    assertThat(counters.corrupt()).isZero();
  }

  @ParameterizedTest
  @CsvSource({
    "HOST, 0, 4096",
    "VRAM_DATA, 0, 4096",
    "VRAM, 0, 4096",
    "VRAM, 1, 4096",
    "VRAM, 0, 65536",
    "HOST, 1, 8192",
  })
  final void everyElementIsRight(Placement placement, int servers, int page) {
    device();
    PageCacheOptions options = PageCacheOptions.of(2L * 16 * page, page);
    try (KernelStorage storage = storage(placement);
        PageCache cache = storage.cache(options)) {
      int count = threads() * 40;
      DeviceArray array = array(storage, cache, false);

      assertRight(run(servers, storage, array, gets(count), threads()));

      assertCounted(cache.counters(), count);
      assertThat(cache.bytes()).isEqualTo(2L * 16 * page);
    }
  }

  @Test
  final void whatIsInTheCacheIsNotReadAgain() {
    device();
    try (KernelStorage storage = storage(Placement.VRAM);
        PageCache cache = storage.cache(PageCacheOptions.of(16L << 20))) {
      DeviceArray array = array(storage, cache, false);
      List<Op> ops =
          LongStream.range(0, 4000).mapToObj(i -> Op.of(ArrayKernel.GET, i * 7 % 2048)).toList();

      assertRight(run(storage, array, ops));
      assertRight(run(storage, array, ops));

      PageCacheCounters counters = cache.counters();
      assertThat(counters.reads()).isEqualTo(4);
      assertThat(counters.evictions()).isZero();
      assertThat(counters.hitRate()).isPositive();
      assertThat(sim(devices.getFirst()).stats().ioCommands(io.gpunvme.sim.DoorbellWindow.PEER))
          .isEqualTo(4);
      assertThat((double) cache.metadataBytes() / cache.bytes()).isLessThan(0.016);
      assertThat(cache.hostTierBytes()).isZero();
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 1})
  final void whatIsStoredIsThereAndGetsToTheSsd(int servers) {
    Device device = device();
    try (KernelStorage storage = storage(Placement.VRAM);
        PageCache cache = storage.cache(PageCacheOptions.of(FRAMES))) {
      DeviceArray array = array(storage, cache, true);
      // No two of one element: STEP and ELEMENTS have no factor in common.
      List<Op> stores =
          LongStream.range(0, threads() * 40L)
              .mapToObj(i -> new Op(ArrayKernel.STORE, i * STEP % ELEMENTS, ~i, 1, 0))
              .toList();
      List<Op> adds =
          stores.stream().map(op -> new Op(ArrayKernel.ADD, op.index, 5, 1, 0)).toList();
      List<Op> reads = stores.stream().map(op -> Op.of(ArrayKernel.GET, op.index)).toList();

      assertThat(run(servers, storage, array, stores, threads())).allMatch(op -> op.status == 0);
      assertThat(run(servers, storage, array, adds, threads())).allMatch(op -> op.status == 0);
      List<Op> read = run(servers, storage, array, reads, threads());

      for (int i = 0; i < read.size(); i++) {
        assertThat(read.get(i).value).isEqualTo(~(long) i + 5);
      }
      assertThat(cache.counters().writes()).isPositive();
      assertThat(run(0, storage, array, clean(), warp())).allMatch(op -> op.status == 0);
      for (int i = 0; i < read.size(); i++) {
        assertThat(DeviceLayout.getLong(StripedImage.medium(device), i * STEP % ELEMENTS * 8))
            .isEqualTo(~(long) i + 5);
      }
      long writes = cache.counters().writes();
      run(0, storage, array, clean(), warp());
      assertThat(cache.counters().writes()).as("nothing is dirty").isEqualTo(writes);
    }
  }

  /** For each lane of one warp. */
  private List<Op> clean() {
    return IntStream.range(0, warp()).mapToObj(i -> Op.of(ArrayKernel.CLEAN, 0)).toList();
  }

  private int warp() {
    return Math.min(threads(), accelerator.cuda().isPresent() ? 32 : 1);
  }

  @Test
  final void wholePagesAreOverwrittenWithoutARead() {
    Device device = device();
    try (KernelStorage storage = storage(Placement.VRAM);
        PageCache cache = storage.cache(PageCacheOptions.of(FRAMES))) {
      DeviceArray array = array(storage, cache, true);
      int pages = 200;
      List<Op> ops =
          IntStream.range(0, pages)
              .mapToObj(
                  p -> new Op(ArrayKernel.OVERWRITE, (long) p * PER_PAGE, p * 1000L, PER_PAGE, 0))
              .toList();

      // One after the other: a page of one lane is another's only when it is over.
      assertThat(run(0, storage, array, ops, 1))
          .allMatch(op -> op.status == 0 && op.count == PER_PAGE);
      run(0, storage, array, clean(), warp());

      assertThat(cache.counters().reads()).isZero();
      assertThat(cache.counters().writes()).isEqualTo(pages);
      for (int p = 0; p < pages; p++) {
        for (int i = 0; i < PER_PAGE; i++) {
          long at = ((long) p * PER_PAGE + i) * Long.BYTES;
          assertThat(DeviceLayout.getLong(StripedImage.medium(device), at))
              .isEqualTo(p * 1000L + i);
        }
      }
      assertThat(run(0, storage, array, List.of(new Op(ArrayKernel.OVERWRITE, 1, 0, 511, 0)), 1))
          .allMatch(op -> op.status == DeviceStatus.ARGUMENT);
    }
  }

  @Test
  final void aSpanEndsWithItsPage() {
    device();
    try (KernelStorage storage = storage(Placement.HOST);
        PageCache cache = storage.cache(PageCacheOptions.of(SIZE))) {
      DeviceArray array = array(storage, cache, false);
      List<Op> ops =
          IntStream.range(0, threads() * 10)
              .mapToObj(i -> new Op(ArrayKernel.PIN, random.nextLong(ELEMENTS), 0, 300, 0))
              .toList();

      for (Op op : run(storage, array, ops)) {
        long left = PER_PAGE - op.index % PER_PAGE;
        assertThat((long) op.count).as("status %x", op.status).isEqualTo(Math.min(300, left));
        assertThat(op.value)
            .isEqualTo(
                LongStream.range(op.index, op.index + op.count)
                    .map(PageCacheContract::value)
                    .sum());
      }
    }
  }

  @Test
  final void aPageForWhichThereIsNoFrameEndsInBusy() {
    device();
    PageCacheOptions options = PageCacheOptions.of(16L * PAGE).withTimeout(Duration.ofMillis(50));
    try (KernelStorage storage = storage(Placement.HOST);
        PageCache cache = storage.cache(options)) {
      DeviceArray array = array(storage, cache, false);

      Op done =
          run(0, storage, array, List.of(new Op(ArrayKernel.PIN_MANY, 0, 0, 18, 0)), 1).getFirst();

      assertThat(done.status).isEqualTo(DeviceStatus.BUSY);
      assertThat(done.value).as("all ways of the only set").isEqualTo(16);
      assertThat(cache.counters().conflicts()).isPositive();
      assertRight(run(storage, array, gets(threads() * 4)));
    }
  }

  @Test
  final void whatIsPrefetchedIsReadOnce() {
    device();
    try (KernelStorage storage = storage(Placement.VRAM);
        PageCache cache = storage.cache(PageCacheOptions.of(1L << 20))) {
      DeviceArray array = array(storage, cache, false);
      List<Op> ops = List.of(new Op(ArrayKernel.PREFETCH, 0, 0, 12 * PER_PAGE, 0));

      run(0, storage, array, ops, 1);
      PageCacheCounters before = cache.counters();
      List<Op> gets =
          IntStream.range(0, 12).mapToObj(i -> Op.of(ArrayKernel.GET, i * 512L)).toList();
      assertRight(run(storage, array, gets));

      assertThat(before.prefetched()).isEqualTo(12);
      assertThat(cache.counters().reads()).isEqualTo(12);
      assertThat(cache.counters().misses()).isEqualTo(12);
    }
  }

  /** Nobody waits for what was prefetched, so its slots stay taken. */
  @Test
  final void prefetchesLeaveSlotsToOthers() {
    device();
    try (KernelStorage storage = storage(Placement.VRAM);
        PageCache cache = storage.cache(PageCacheOptions.of(1L << 20))) {
      DeviceArray array = array(storage, cache, false);
      List<Op> ops = List.of(new Op(ArrayKernel.PREFETCH, 0, 0, 100 * PER_PAGE, 0));

      run(0, storage, array, ops, 1);

      assertThat(cache.counters().prefetched()).as("a quarter of the slots").isEqualTo(16);
      // By the thread of that queue pair.
      assertRight(run(0, storage, array, List.of(Op.of(ArrayKernel.GET, 200L * PER_PAGE)), 1));
      List<Op> gets =
          IntStream.range(0, 100).mapToObj(i -> Op.of(ArrayKernel.GET, i * 512L)).toList();
      assertRight(run(storage, array, gets));
      assertThat(cache.counters().reads()).isEqualTo(101);
      ops = List.of(new Op(ArrayKernel.PREFETCH, 128L * PER_PAGE, 0, 20 * PER_PAGE, 0));
      run(0, storage, array, ops, 1);
      assertThat(cache.counters().prefetched()).as("there are some again").isEqualTo(32);
      gets = IntStream.range(128, 148).mapToObj(i -> Op.of(ArrayKernel.GET, i * 512L)).toList();
      assertRight(run(storage, array, gets));
    }
  }

  @Test
  final void whatWasPrefetchedBeforeARecoveryIsReadAgain() {
    device();
    try (KernelStorage storage = storage(Placement.VRAM);
        PageCache cache = storage.cache(PageCacheOptions.of(1L << 20))) {
      DeviceArray array = array(storage, cache, false);
      run(0, storage, array, List.of(new Op(ArrayKernel.PREFETCH, 0, 0, 4 * PER_PAGE, 0)), 1);

      storage.recover();

      List<Op> gets =
          IntStream.range(0, 4).mapToObj(i -> Op.of(ArrayKernel.GET, i * 512L)).toList();
      assertRight(run(storage, array, gets));
      assertThat(cache.counters().lost()).isZero();
    }
  }

  // ---- the host tier

  /** More than the cache has frames, and fewer than the tier has. */
  private static final int OFTEN = 96;

  private static PageCacheOptions tiered() {
    return PageCacheOptions.of(FRAMES).withHostTier(256L * PAGE);
  }

  /** An element of each of some pages. */
  private static List<Op> touch(long first, int pages) {
    return LongStream.range(first, first + pages)
        .mapToObj(page -> Op.of(ArrayKernel.GET, page * PER_PAGE + page % PER_PAGE))
        .toList();
  }

  /** So often that all are in the tier. */
  private void touchOften(KernelStorage storage, DeviceArray array) {
    for (int i = 0; i < 16; i++) {
      assertRight(run(storage, array, touch(0, OFTEN)));
    }
  }

  /** Pages in the tier. */
  private static long kept(PageCache cache) {
    PageCacheCounters counters = cache.counters();
    return counters.tierInserts() - counters.tierEvictions();
  }

  @ParameterizedTest
  @CsvSource({"VRAM, 0", "VRAM, 1", "HOST, 0"})
  final void whatIsMissedOftenIsInTheHostTier(Placement placement, int servers) {
    device();
    try (KernelStorage storage = storage(placement);
        PageCache cache = storage.cache(tiered())) {
      DeviceArray array = array(storage, cache, false);
      touchOften(storage, array);
      PageCacheCounters before = cache.counters();

      assertRight(run(servers, storage, array, touch(0, OFTEN), threads()));
      assertRight(run(servers, storage, array, gets(threads() * 20), threads()));
      PageCacheCounters after = cache.counters();

      assertThat(before.tierInserts()).isBetween(OFTEN / 2L, before.evictions());
      assertThat(before.tierRefusals()).isPositive();
      assertThat(after.tierHits()).isGreaterThan(before.tierHits() + OFTEN / 3);
      assertThat(after.tierHits() + after.reads()).isEqualTo(after.misses());
      assertThat(sim(devices.getFirst()).stats().ioCommands(io.gpunvme.sim.DoorbellWindow.PEER))
          .isEqualTo(after.reads());
      assertThat(cache.hostTierBytes()).isEqualTo(256L * PAGE);
    }
  }

  /** The tier is full of what is wanted often. */
  @Test
  final void whatIsReadOncePushesNothingOutOfTheHostTier() {
    device();
    try (KernelStorage storage = storage(Placement.VRAM);
        PageCache cache = storage.cache(tiered().withHostTier(64L * PAGE))) {
      DeviceArray array = array(storage, cache, false);
      // How soon depends on what pushes what out of the cache: few more pages want a set of the
      // tier than it has frames.
      for (int i = 0; i < 8 && kept(cache) < 64; i++) {
        touchOften(storage, array);
      }

      PageCacheCounters before = cache.counters();
      assertRight(run(storage, array, touch(OFTEN, 1000)));
      PageCacheCounters between = cache.counters();
      assertRight(run(storage, array, touch(0, OFTEN)));
      PageCacheCounters after = cache.counters();

      assertThat(kept(cache)).as("full").isEqualTo(64);
      assertThat(between.tierEvictions() - before.tierEvictions()).isLessThan(16);
      assertThat(after.tierHits() - between.tierHits()).isBetween(48L, 64L);
    }
  }

  @Test
  final void whatIsPrefetchedMayComeFromTheHostTier() {
    device();
    try (KernelStorage storage = storage(Placement.VRAM);
        PageCache cache = storage.cache(tiered())) {
      DeviceArray array = array(storage, cache, false);
      touchOften(storage, array);
      assertRight(run(storage, array, touch(1000, 200)));
      PageCacheCounters before = cache.counters();

      run(0, storage, array, List.of(new Op(ArrayKernel.PREFETCH, 0, 0, 8 * PER_PAGE, 0)), 1);
      PageCacheCounters after = cache.counters();
      assertRight(run(0, storage, array, touch(0, 8), 1));

      // A few may be in the cache still.
      long prefetched = after.prefetched() - before.prefetched();
      assertThat(prefetched).isBetween(4L, 8L);
      assertThat(after.tierHits() - before.tierHits()).isBetween(prefetched - 1, prefetched);
      assertThat(cache.counters().misses()).isEqualTo(after.misses());
      assertThat(cache.counters().tierHits() + cache.counters().reads()).isEqualTo(after.misses());
    }
  }

  /** What is stored to is never taken from a copy, whatever was in the tier before. */
  @Test
  final void aWritableArrayKeepsItsFileOutOfTheHostTier() {
    device();
    try (KernelStorage storage = storage(Placement.VRAM);
        PageCache cache = storage.cache(tiered())) {
      touchOften(storage, array(storage, cache, false));
      PageCacheCounters before = cache.counters();
      DeviceArray array = array(storage, cache, true);
      List<Op> stores =
          touch(0, OFTEN).stream()
              .map(op -> new Op(ArrayKernel.STORE, op.index, ~value(op.index), 1, 0))
              .toList();

      run(storage, array, stores);
      run(storage, array, touch(500, 300));
      List<Op> read = run(storage, array, touch(0, OFTEN));

      assertThat(read).allMatch(op -> op.status == 0 && op.value == ~value(op.index));
      assertThat(before.tierHits()).isPositive();
      assertThat(cache.counters().tierHits()).isEqualTo(before.tierHits());
      assertThat(cache.counters().tierInserts()).isEqualTo(before.tierInserts());
    }
  }

  // ---- verifying

  /** Bits are flipped in the buffer: what is read the second time differs. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  final void aPageThatIsNotWhatItWasIsCorrupt(boolean prefetched) {
    Device device = device();
    PageCacheOptions options = PageCacheOptions.of(FRAMES).withVerify();
    try (KernelStorage storage = storage(Placement.VRAM);
        PageCache cache = storage.cache(options)) {
      DeviceArray array = array(storage, cache, false);
      assertRight(run(0, storage, array, touch(0, 100), 1));
      sim(device).faults().add("corrupt=3 on read lba=7");
      if (prefetched) {
        run(0, storage, array, List.of(new Op(ArrayKernel.PREFETCH, 7 * PER_PAGE, 0, 1, 0)), 1);
      }

      List<Op> done = run(0, storage, array, touch(0, 10), 1);

      assertThat(done.get(7).status).isEqualTo(DeviceStatus.CORRUPT);
      assertThat(DeviceStatus.describe(DeviceStatus.CORRUPT)).contains("other bytes");
      assertRight(done.stream().filter(op -> op.status == 0).toList());
      assertThat(cache.counters().corrupt()).isEqualTo(1);
      assertThat(cache.counters().readFailures()).isZero();
      sim(device).faults().clear();
      assertRight(run(0, storage, array, touch(0, 10), 1));
      assertThat(cache.counters().corrupt()).isEqualTo(1);
    }
  }

  /** What was written is what is read; with a bit flipped on the medium it is not. */
  @Test
  final void whatIsWrittenIsWhatAPageMustBe() {
    Device device = device();
    PageCacheOptions options = PageCacheOptions.of(FRAMES).withVerify();
    try (KernelStorage storage = storage(Placement.HOST);
        PageCache cache = storage.cache(options)) {
      DeviceArray array = array(storage, cache, true);
      List<Op> stores =
          touch(0, 100).stream()
              .map(op -> new Op(ArrayKernel.STORE, op.index, ~value(op.index), 1, 0))
              .toList();

      run(storage, array, stores);
      List<Op> read = run(storage, array, touch(0, 100));
      run(0, storage, array, clean(), warp());
      assertThat(read).allMatch(op -> op.status == 0 && op.value == ~value(op.index));
      assertThat(cache.counters().corrupt()).isZero();

      run(0, storage, array, touch(1000, 100), 1);
      long at = 7L * PAGE + 9;
      MemorySegment medium = StripedImage.medium(device);
      medium.set(
          java.lang.foreign.ValueLayout.JAVA_BYTE,
          at,
          (byte) ~medium.get(java.lang.foreign.ValueLayout.JAVA_BYTE, at));
      List<Op> done = run(0, storage, array, touch(0, 10), 1);
      assertThat(done.get(7).status).isEqualTo(DeviceStatus.CORRUPT);
      assertThat(done).filteredOn(op -> op.status == 0).hasSize(9);
    }
  }

  @Test
  final void whatTheHostExpectsIsComparedFromTheFirstReadOn() {
    Device device = device();
    MemorySegment medium = StripedImage.medium(device);
    int[] crcs = new int[10];
    for (int page = 0; page < crcs.length; page++) {
      CRC32C crc = new CRC32C();
      crc.update(medium.asSlice((long) page * PAGE, PAGE).asByteBuffer());
      crcs[page] = (int) crc.getValue();
    }
    crcs[4]++;
    try (KernelStorage storage = storage(Placement.VRAM);
        DeviceFile file = whole(storage);
        PageCache cache = storage.cache(PageCacheOptions.of(FRAMES).withVerify());
        PageCache plain = storage.cache(PageCacheOptions.of(FRAMES))) {
      cache.expect(file, 2, Arrays.copyOfRange(crcs, 2, 10));
      List<Op> done = run(0, storage, array(storage, cache, false), touch(0, 20), 1);

      assertThat(done.get(4).status).isEqualTo(DeviceStatus.CORRUPT);
      assertThat(done).filteredOn(op -> op.status == 0).hasSize(19);
      assertThat(cache.metadataBytes() - plain.metadataBytes()).isEqualTo(SIZE / PAGE * 4);
      assertRefused(() -> cache.expect(file, SIZE / PAGE - 9, crcs), "not inside");
      assertRefused(() -> cache.expect(file, -1, crcs), "not inside");
      assertRefused(() -> plain.expect(file, 0, crcs), "withVerify");
    }
  }

  /** Where many want the page at once all are told. */
  @Test
  final void allWhoWaitForACorruptPageAreTold() {
    Device device = device();
    PageCacheOptions options = tiered().withVerify();
    try (KernelStorage storage = storage(Placement.VRAM);
        PageCache cache = storage.cache(options)) {
      DeviceArray array = array(storage, cache, false);
      touchOften(storage, array);
      assertThat(cache.counters().tierHits()).isPositive();
      assertThat(cache.counters().corrupt()).isZero();
      run(storage, array, touch(500, 300));
      run(storage, array, touch(900, 100));
      sim(device).faults().add("corrupt on read lba=600");
      List<Op> ops = IntStream.range(0, threads()).mapToObj(i -> touch(600, 1).getFirst()).toList();

      List<Op> done = run(storage, array, ops);

      assertThat(done).allMatch(op -> op.status == DeviceStatus.CORRUPT || op.status == 0);
      assertThat(done).anyMatch(op -> op.status == DeviceStatus.CORRUPT);
      assertRight(done.stream().filter(op -> op.status == 0).toList());
    }
  }

  @ParameterizedTest
  @CsvSource({"4096, 512", "65536, 4096", "8192, 4096"})
  final void filesHaveHolesAndEnds(int page, int block) {
    Device device = device(block);
    MemorySegment medium = StripedImage.medium(device);
    for (long at = 0; at < SIZE; at += Long.BYTES) {
      DeviceLayout.setLong(medium, at, random.nextLong());
    }
    // Extents of odd numbers of blocks at odd places, and holes.
    List<DeviceExtent> extents = new ArrayList<>();
    long size = 900L * block + 24;
    ByteBuffer expected = ByteBuffer.allocate((int) size).order(ByteOrder.LITTLE_ENDIAN);
    for (long at = 0; at < size; ) {
      long blocks = 1 + random.nextLong(30);
      long bytes = Math.min(blocks * block, size - at);
      if (random.nextInt(3) != 0) {
        long place = random.nextLong(SIZE / block - 40);
        extents.add(new DeviceExtent(at, bytes, place));
        expected.put(
            (int) at,
            medium.asSlice(place * block, bytes).toArray(java.lang.foreign.ValueLayout.JAVA_BYTE));
      }
      at += bytes;
    }
    PageCacheOptions options = PageCacheOptions.of(16L * page, page).withVerify();
    StripeSet set =
        new StripeSet(
            List.of(new StripeSet.Member(device.controller(), device.controller().namespace(1), 0)),
            block,
            SIZE);
    try (KernelStorage storage = storage(Placement.VRAM);
        DeviceFile file = storage.file(set, size, extents);
        PageCache cache = storage.cache(options);
        DeviceArray array = cache.array(file, Long.BYTES, size / 8 - 1, Long.BYTES, false)) {
      List<Op> ops =
          LongStream.range(0, size / 8 - 1)
              .filter(i -> i % 11 == 0 || i > size / 8 - 10)
              .mapToObj(i -> Op.of(ArrayKernel.GET, i))
              .toList();

      for (Op op : run(storage, array, ops)) {
        assertThat(op.status).isZero();
        assertThat(op.value)
            .as("element %d", op.index)
            .isEqualTo(expected.getLong((int) (op.index + 1) * 8));
      }
      assertThatThrownBy(() -> cache.array(file, 0, 8, 8, true))
          .isInstanceOf(InvalidRequestException.class)
          .hasMessageContaining("holes");
    }
  }

  @ParameterizedTest
  @CsvSource({"4096, 4096, 0", "4096, 65536, 2", "65536, 8192, 0", "16384, 4096, 2"})
  final void stripesAreOneArray(int page, int unit, int servers) {
    device(4096);
    device(512);
    StripedImage image = StripedImage.of(random, devices, unit, (1 << 20) / unit);
    long count = image.bytes().length / Long.BYTES;
    ByteBuffer bytes = ByteBuffer.wrap(image.bytes()).order(ByteOrder.LITTLE_ENDIAN);
    PageCacheOptions options = PageCacheOptions.of(2L * 16 * page, page);
    try (KernelStorage storage = storage(Placement.VRAM);
        DeviceFile file =
            storage.file(
                image.set(),
                image.bytes().length,
                List.of(new DeviceExtent(0, image.bytes().length, 0)));
        PageCache cache = storage.cache(options);
        DeviceArray array = cache.array(file, 0, count, Long.BYTES, true)) {
      List<Op> ops =
          IntStream.range(0, threads() * 20)
              .mapToObj(i -> Op.of(ArrayKernel.GET, random.nextLong(count)))
              .toList();
      for (Op op : run(servers, storage, array, ops, threads())) {
        assertThat(op.value).isEqualTo(bytes.getLong((int) op.index * 8));
      }
      List<Op> stores =
          LongStream.range(0, threads() * 20L)
              .mapToObj(i -> new Op(ArrayKernel.STORE, i * STEP % count, i, 1, 0))
              .toList();
      run(servers, storage, array, stores, threads());
      run(0, storage, array, clean(), warp());
      stores.forEach(op -> bytes.putLong((int) op.index * 8, op.value));
      assertThat(image.read()).isEqualTo(image.bytes());
    }
  }

  @Test
  final void aReadThatFailsIsToldAndTriedAgain() {
    Device device = device();
    try (KernelStorage storage = storage(Placement.VRAM);
        PageCache cache = storage.cache(PageCacheOptions.of(FRAMES))) {
      DeviceArray array = array(storage, cache, false);
      sim(device).faults().add("status=media/unrecovered-read-error dnr on read nth=2");
      List<Op> ops = gets(threads() * 10);

      List<Op> done = run(storage, array, ops);

      List<Op> bad = done.stream().filter(op -> op.status != 0).toList();
      assertThat(bad).isNotEmpty().allMatch(op -> op.value == 0 && (op.status & 0x7FF) == 0x281);
      assertRight(done.stream().filter(op -> op.status == 0).toList());
      assertThat(cache.counters().readFailures()).isEqualTo(1);
      assertRight(run(storage, array, ops));
    }
  }

  @ParameterizedTest
  @CsvSource({"drop on read nth=3, true", "late=1500ms on read nth=3, false"})
  final void aFrameWhoseReadTimedOutComesBackLater(String fault, boolean recover) throws Exception {
    Device device = device();
    try (KernelStorage storage = storage(Placement.HOST);
        PageCache cache = storage.cache(PageCacheOptions.of(16L * PAGE))) {
      DeviceArray array = array(storage, cache, false);
      sim(device).faults().add(fault);
      List<Op> ops = gets(threads() * 4);

      List<Op> done = run(storage, array, ops);

      assertThat(done).anyMatch(op -> op.status == DeviceStatus.TIMEOUT);
      assertRight(done.stream().filter(op -> op.status == 0).toList());
      assertThat(cache.counters().lost()).isEqualTo(1);
      sim(device).faults().clear();
      if (recover) {
        storage.recover();
      } else {
        Thread.sleep(1000);
      }
      assertRight(run(storage, array, gets(threads() * 40)));
      assertThat(cache.counters().regained()).isEqualTo(1);
      assertThat(cache.counters().readFailures()).isZero();
    }
  }

  @Test
  final void aPageWhoseWriteFailsStaysDirty() {
    Device device = device();
    try (KernelStorage storage = storage(Placement.VRAM);
        PageCache cache = storage.cache(PageCacheOptions.of(FRAMES))) {
      DeviceArray array = array(storage, cache, true);
      run(0, storage, array, List.of(new Op(ArrayKernel.STORE, 77, 4711, 1, 0)), 1);
      sim(device).faults().add("status=media/write-fault dnr on write nth=1");

      List<Op> failing = run(0, storage, array, clean(), warp());

      assertThat(failing).anyMatch(op -> op.status != 0);
      assertThat(cache.counters().writeFailures()).isEqualTo(1);
      assertThat(DeviceLayout.getLong(StripedImage.medium(device), 77 * 8)).isEqualTo(value(77));
      assertThat(run(0, storage, array, clean(), warp())).allMatch(op -> op.status == 0);
      assertThat(DeviceLayout.getLong(StripedImage.medium(device), 77 * 8)).isEqualTo(4711);
    }
  }

  /** Nobody else waits at the queue pair, so whoever cleans has to look for the completion. */
  @ParameterizedTest
  @CsvSource({"drop on write nth=1, true", "late=1500ms on write nth=1, false"})
  final void aPageWhoseWriteTimedOutIsWrittenLater(String fault, boolean recover) throws Exception {
    Device device = device();
    try (KernelStorage storage = storage(Placement.HOST);
        PageCache cache = storage.cache(PageCacheOptions.of(16L * PAGE))) {
      DeviceArray array = array(storage, cache, true);
      run(0, storage, array, List.of(new Op(ArrayKernel.STORE, 77, 4711, 1, 0)), 1);
      sim(device).faults().add(fault);

      assertThat(run(0, storage, array, clean(), warp()))
          .anyMatch(op -> op.status == DeviceStatus.TIMEOUT);
      assertThat(run(0, storage, array, clean(), warp()))
          .as("it may still be written")
          .anyMatch(op -> op.status == DeviceStatus.TIMEOUT);
      sim(device).faults().clear();
      if (recover) {
        storage.recover();
      } else {
        Thread.sleep(1000);
      }
      run(0, storage, array, List.of(new Op(ArrayKernel.STORE, 78, 4712, 1, 0)), 1);

      assertThat(run(0, storage, array, clean(), warp())).allMatch(op -> op.status == 0);
      assertThat(cache.counters().regained()).isEqualTo(1);
      assertThat(DeviceLayout.getLong(StripedImage.medium(device), 77 * 8)).isEqualTo(4711);
      assertThat(DeviceLayout.getLong(StripedImage.medium(device), 78 * 8)).isEqualTo(4712);
    }
  }

  @Test
  final void whatIsOutsideOrNotAllowedIsRefused() {
    device();
    try (KernelStorage storage = storage(Placement.VRAM);
        PageCache cache = storage.cache(PageCacheOptions.of(FRAMES))) {
      DeviceArray array = array(storage, cache, false);
      List<Op> ops =
          List.of(
              Op.of(ArrayKernel.GET, ELEMENTS),
              Op.of(ArrayKernel.GET, -1),
              Op.of(ArrayKernel.WRONG_SIZE, 0),
              Op.of(ArrayKernel.STORE, 0),
              Op.of(ArrayKernel.PIN, ELEMENTS),
              new Op(ArrayKernel.PIN, 0, 0, 0, 0),
              new Op(ArrayKernel.OVERWRITE, 0, 0, PER_PAGE, 0));

      assertThat(run(0, storage, array, ops, 1))
          .allSatisfy(op -> assertThat(op.status).isEqualTo(DeviceStatus.ARGUMENT));
      assertThat(cache.counters().misses()).isZero();
    }
  }

  @Test
  final void theHostRefusesWhatIsNoArray() {
    device();
    try (KernelStorage storage = storage(Placement.HOST);
        DeviceFile file = whole(storage);
        PageCache cache = storage.cache(PageCacheOptions.of(FRAMES));
        PageCache small = storage.cache(PageCacheOptions.of(FRAMES, 512))) {
      assertRefused(() -> cache.array(file, 0, 8, 24, false), "power of two");
      assertRefused(() -> cache.array(file, 0, 8, 8192, false), "power of two");
      assertRefused(() -> cache.array(file, 4, 8, 8, false), "multiple");
      assertRefused(() -> cache.array(file, 8, ELEMENTS, 8, false), "inside");
      assertRefused(() -> cache.array(file, 0, Long.MAX_VALUE, 8, false), "inside");
      assertRefused(() -> cache.array(file, 0, 0, 8, false), "inside");
      assertRefused(() -> small.array(file, 0, 8, 8, false), "larger pages");
      assertRefused(() -> PageCacheOptions.of(100), "at least");
      assertRefused(() -> PageCacheOptions.of(Long.MAX_VALUE), "fewer");
      assertRefused(() -> PageCacheOptions.of(FRAMES).withHostTier(100), "host tier of 100 bytes");
      assertRefused(() -> PageCacheOptions.of(FRAMES).withHostTier(-1), "0 is none");
      assertRefused(() -> PageCacheOptions.of(FRAMES).withHostTier(Long.MAX_VALUE), "fewer");
      assertRefused(() -> PageCacheOptions.of(FRAMES, 5000), "power of two");
      assertRefused(() -> PageCacheOptions.of(FRAMES).withTimeout(Duration.ZERO), "above 0");
      assertRefused(() -> PageCacheOptions.of(FRAMES).withTimeout(Duration.ofDays(1)), "at most");
      DeviceArray one = cache.array(file, 0, 8, 8, true);
      DeviceArray other = cache.array(file, 4096, 8, 8, true);
      assertThat(one.count()).isEqualTo(8);
      assertThat(one.elementBytes()).isEqualTo(8);
      assertRefused(() -> storage.unregister(0), "page cache");
      PageCache brief = storage.cache(PageCacheOptions.of(FRAMES));
      DeviceArray gone = brief.array(file, 0, 8, 8, false);
      brief.close();
      brief.close();
      assertThatThrownBy(gone::deviceAddress).isInstanceOf(IllegalStateException.class);
      one.close();
      assertThatThrownBy(one::deviceAddress).isInstanceOf(IllegalStateException.class);
      assertThat(other.deviceAddress()).isNotZero();
    }
  }

  private static void assertRefused(Runnable call, String why) {
    assertThatThrownBy(call::run)
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining(why);
  }
}
