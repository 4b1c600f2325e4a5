package io.gpunvme.storage;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.queue.FakeGpu;
import io.gpunvme.storage.kind.Kind;
import io.gpunvme.storage.kind.ReadRequest;
import io.gpunvme.storage.path.PathCall;
import io.gpunvme.storage.path.PathCounters;
import io.gpunvme.storage.path.PathStats;
import io.gpunvme.storage.path.StorageException;
import io.gpunvme.storage.plan.Ranges;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.SplittableRandom;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Reads of many ranges and of kinds, byte by byte, by every path of a storage. */
class PlannedReadsTest {
  private static final int SIZE = (3 << 20) + 1234;
  private static final int BUFFER = 4 << 20;

  @TempDir Path folder;

  private final long seed = Long.getLong("gpunvme.seed", System.nanoTime());
  private final SplittableRandom random = new SplittableRandom(seed);
  private final byte[] content = new byte[SIZE];
  private Path file;

  @BeforeEach
  void write() throws IOException {
    System.out.println("PlannedReadsTest seed " + seed);
    new Random(seed).nextBytes(content);
    file = Files.write(folder.resolve("data"), content);
  }

  private static Accelerator accelerator(String name) {
    return name.equals("cpu") ? CpuAccelerator.open() : new FakeGpu();
  }

  private String address(String path) throws IOException {
    if (!path.equals("direct")) {
      return file + "?path=" + path;
    }
    Path image = folder.resolve("image");
    Files.write(image, Arrays.copyOf(content, SIZE & -512));
    return "sim:file=" + image + ",lba=512";
  }

  private static byte[] bytes(DeviceBuffer buffer) {
    byte[] all = new byte[(int) buffer.size()];
    buffer.copyToHost(0, MemorySegment.ofArray(all));
    return all;
  }

  private static void assertSame(DeviceBuffer buffer, byte[] expected) {
    assertThat(Arrays.mismatch(bytes(buffer), expected)).isEqualTo(-1);
  }

  // ---- by kinds

  private static ReadRequest kinds() {
    return ReadRequest.builder()
        .add(new Kind(3, "tokens", 777, 500_000, 13))
        .add(new Kind(9, "rows", 512 << 10, 1 << 20, 4096))
        .add(new Kind(12, "", 2 << 20, SIZE - (2 << 20), 1000))
        .build();
  }

  @ParameterizedTest
  @CsvSource({
    "cpu, mmap",
    "gpu, mmap",
    "cpu, pinned",
    "gpu, pinned",
    "cpu, direct",
    "cpu, auto",
    "gpu, auto"
  })
  void randomElementsOfRandomKinds(String who, String path) throws IOException {
    KindReads reads = new KindReads(kinds(), new int[] {3, 9, 12}, content, random);
    try (Accelerator accelerator = accelerator(who);
        GpuStorage storage = GpuStorage.open(address(path), accelerator);
        DeviceBuffer buffer = accelerator.allocate(BUFFER)) {
      byte[] expected = new byte[BUFFER];
      for (int round = 0; round < 20; round++) {
        reads.check(storage, buffer, expected, 1 + random.nextInt(400));
      }
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"cpu", "gpu"})
  void oneReadByName(String who) throws IOException {
    try (Accelerator accelerator = accelerator(who);
        GpuStorage storage = GpuStorage.open(address("mmap"), accelerator);
        DeviceBuffer buffer = accelerator.allocate(8192)) {
      storage.read(kinds(), "tokens", 5, 7, buffer, 3);
      storage.read(kinds(), "12", 2, 1, buffer, 4000);
      byte[] expected = new byte[8192];
      System.arraycopy(content, 777 + 5 * 13, expected, 3, 7 * 13);
      System.arraycopy(content, (2 << 20) + 2000, expected, 4000, 1000);
      assertSame(buffer, expected);
    }
  }

  @Test
  void whatIsNotThereIsNamed() throws IOException {
    try (Accelerator accelerator = new FakeGpu();
        GpuStorage storage = GpuStorage.open(address("mmap"), accelerator);
        DeviceBuffer buffer = accelerator.allocate(4096)) {
      assertThatExceptionOfType(InvalidRequestException.class)
          .isThrownBy(() -> storage.read(kinds(), "rows", 255, 2, buffer, 0))
          .withMessageContaining("kind 'rows' (9): index 255, length 2: it has only 256 elements");
      assertThatExceptionOfType(InvalidRequestException.class)
          .isThrownBy(() -> storage.read(kinds(), "cols", 0, 1, buffer, 0))
          .withMessageContaining("no kind 'cols'; the kinds are: tokens, rows, 12");
      assertThatExceptionOfType(InvalidRequestException.class)
          .isThrownBy(
              () ->
                  storage.read(
                      kinds(),
                      new int[] {3, 12},
                      new long[] {0, -1},
                      new long[] {1, 1},
                      buffer,
                      new long[] {0, 100}))
          .withMessageContaining("kind 12: index -1, length 1: it has only 1049 elements");
      assertThatExceptionOfType(InvalidRequestException.class)
          .isThrownBy(() -> storage.read(kinds(), "rows", 0, 2, buffer, 0))
          .withMessageContaining("not inside the buffer of 4096 bytes");
      assertThatExceptionOfType(InvalidRequestException.class)
          .isThrownBy(() -> storage.read(kinds(), "rows", 0, 1, buffer, -1));
      ReadRequest outside = ReadRequest.builder().bytes("x", SIZE - 10, 20, 20).build();
      assertThatExceptionOfType(InvalidRequestException.class)
          .isThrownBy(() -> storage.read(outside, "x", 0, 1, buffer, 0))
          .withMessageContaining("20 bytes at %d are not inside".formatted(SIZE - 10));
      assertThatExceptionOfType(InvalidRequestException.class)
          .isThrownBy(() -> storage.read(Ranges.builder().add(0, 1, 1, 0).build(), List.of(buffer)))
          .withMessageContaining("goes to target 1, but the request has 1 buffers");
      assertSame(buffer, new byte[4096]);
    }
  }

  // ---- how

  @Nested
  class ByOnePath {
    private final PathCounters counters = new PathCounters();
    private final Accelerator accelerator = new FakeGpu();
    private final PathCall call = new PathCall("data", counters);

    @AfterEach
    void close() {
      accelerator.close();
    }

    private SpyPath spy(int alignment) {
      return new SpyPath(content, alignment);
    }

    /** Reads and compares; also what lies between the ranges in the buffer. */
    private PathStats read(SpyPath path, Ranges ranges, long stagingBytes) {
      try (PlannedReads planned = new PlannedReads(accelerator, Registrar.NONE, stagingBytes);
          DeviceBuffer buffer = accelerator.allocate(BUFFER)) {
        byte[] expected = new byte[BUFFER];
        for (int i = 0; i < ranges.size(); i++) {
          System.arraycopy(
              content,
              (int) ranges.offset(i),
              expected,
              (int) ranges.targetOffset(i),
              (int) ranges.length(i));
        }
        planned.read(path, ranges, List.of(buffer), SIZE, call);
        assertSame(buffer, expected);
        return counters.snapshot();
      }
    }

    private static Ranges near(int count) {
      Ranges.Builder ranges = Ranges.builder();
      IntStream.range(0, count).forEach(i -> ranges.add(100 + i * 3000L, 500));
      return ranges.build();
    }

    @Test
    void whatIsCloseIsReadTogether() {
      SpyPath path = spy(4096);
      PathStats stats = read(path, near(100), 64 << 20);
      assertThat(path.ios()).isEqualTo(1);
      assertThat(stats.stagedBytes()).isEqualTo(100 * 500);
      assertThat(stats.overreadBytes()).isEqualTo((100 + 99 * 3000 + 500 + 4095 & -4096) - 50_000);
    }

    @Test
    void roundsFillTheStagingMemoryAgainAndAgain() {
      SpyPath path = spy(512);
      PathStats stats = read(path, near(900), 64 << 10);
      assertThat(path.transfers()).hasSizeGreaterThan(40);
      assertThat(path.transfers()).hasSizeLessThan(50);
      assertThat(stats.stagedBytes()).isEqualTo(900 * 500);
    }

    /**
     * Memory takes long to come by: a file gets as much as it needs, and more once it has grown.
     */
    @Test
    void aSmallFileHasLittleStagingMemory() {
      try (PlannedReads planned = new PlannedReads(accelerator, Registrar.NONE, 1 << 20);
          DeviceBuffer buffer = accelerator.allocate(BUFFER)) {
        long before = taken();
        for (long[] sizeAndHalf :
            new long[][] {
              {4096, 4096},
              {5000, 8192},
              {8192, 8192},
              {300_000, 512 << 10},
              {SIZE, 1 << 20},
              {5000, 1 << 20}
            }) {
          planned.read(spy(512), near(2), List.of(buffer), sizeAndHalf[0], call);
          assertThat(taken() - before)
              .as("for %d bytes", sizeAndHalf[0])
              .isEqualTo(2 * sizeAndHalf[1]);
        }
      }
    }

    private long taken() {
      return accelerator.memoryInUse().device() + accelerator.memoryInUse().pinned();
    }

    @Test
    void longRunsGoStraightToTheirPlace() {
      Ranges.Builder ranges = Ranges.builder().add(0, 1 << 20, 0, 0);
      IntStream.range(0, 50).forEach(i -> ranges.add((1 << 20) + i * 700L, 300));
      SpyPath path = spy(4096);
      PathStats stats = read(path, ranges.build(), 64 << 20);
      assertThat(path.transfers()).hasSize(1);
      assertThat(path.ios()).isEqualTo(2);
      assertThat(stats.stagedBytes()).isEqualTo(50 * 300);
    }

    @Test
    void whatIsFarApartIsReadAsItIs() {
      SpyPath path = spy(4096);
      Ranges.Builder ranges = Ranges.builder();
      IntStream.range(0, 30).forEach(i -> ranges.add(7 + i * 100_000L, 500));
      PathStats stats = read(path, ranges.build(), 64 << 20);
      assertThat(path.ios()).isEqualTo(30);
      assertThat(path.transfers().getFirst().getFirst().length()).isEqualTo(500);
      assertThat(stats.stagedBytes()).isZero();
      assertThat(stats.overreadBytes()).isZero();
    }

    @Test
    void theEndOfTheSourceIsNoMultipleOfTheAlignment() {
      Ranges.Builder ranges = Ranges.builder();
      IntStream.range(0, 20).forEach(i -> ranges.add(SIZE - 2000 + i * 100L, 100));
      SpyPath path = spy(4096);
      PathStats stats = read(path, ranges.build(), 64 << 20);
      assertThat(path.ios()).isEqualTo(1);
      assertThat(stats.overreadBytes()).isEqualTo(SIZE - (SIZE - 2000 & -4096) - 2000);
    }

    @Test
    void aBadPlaceBetweenTheRangesDoesNotFailThem() {
      SpyPath path = spy(4096);
      path.failAt(2000, StorageException.Kind.IO);
      PathStats stats = read(path, near(100), 64 << 20);
      assertThat(path.transfers()).hasSize(2);
      assertThat(path.transfers().get(1)).hasSize(100);
      assertThat(stats.retries()).isEqualTo(1);
    }

    @Test
    void aBadPlaceInARangeDoes() {
      SpyPath path = spy(4096);
      path.failAt(3101, StorageException.Kind.IO);
      assertThatExceptionOfType(StorageException.class)
          .isThrownBy(() -> read(path, near(100), 64 << 20))
          .satisfies(e -> assertThat(e.offset()).isEqualTo(3101));
    }

    @Test
    void aCancelledReadEnds() {
      call.cancel();
      assertThatExceptionOfType(StorageException.class)
          .isThrownBy(() -> read(spy(4096), near(100), 64 << 20))
          .satisfies(e -> assertThat(e.kind()).isEqualTo(StorageException.Kind.CANCELLED));
    }

    @Test
    void rangesThatOverlapInTheBufferAreRefused() {
      Ranges ranges = Ranges.builder().add(0, 100, 0, 0).add(50, 100, 0, 99).build();
      assertThatExceptionOfType(InvalidRequestException.class)
          .isThrownBy(() -> read(spy(4096), ranges, 64 << 20))
          .withMessageContaining("overlaps in the target");
    }

    @Test
    void randomRangesToSeveralTargets() {
      for (int round = 0; round < 100; round++) {
        SpyPath path = spy(1 << random.nextInt(13));
        long staging = 4096L << random.nextInt(12);
        try (PlannedReads planned = new PlannedReads(accelerator, Registrar.NONE, staging);
            DeviceBuffer device = accelerator.allocate(1 << 20);
            DeviceBuffer pinned = accelerator.allocatePinned(1 << 20)) {
          List<DeviceBuffer> targets = List.of(device, pinned);
          byte[][] expected = {new byte[1 << 20], new byte[1 << 20]};
          int[] at = new int[2];
          Ranges.Builder ranges = Ranges.builder();
          int window = 1 + random.nextInt(SIZE - (100 << 10));
          for (int i = random.nextInt(300); i > 0; i--) {
            int target = random.nextInt(2);
            int length = random.nextInt(random.nextInt(10) == 0 ? 100_000 : 2000);
            int place = at[target] + random.nextInt(100);
            int offset = random.nextInt(window) & (random.nextBoolean() ? -1 : -4096);
            if (place + length > 1 << 20) {
              continue;
            }
            ranges.add(offset, length, target, place);
            System.arraycopy(content, offset, expected[target], place, length);
            at[target] = place + length;
          }
          planned.read(path, ranges.build(), targets, SIZE, call);
          assertSame(device, expected[0]);
          assertSame(pinned, expected[1]);
        }
      }
    }
  }
}
