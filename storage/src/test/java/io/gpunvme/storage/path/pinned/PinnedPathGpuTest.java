package io.gpunvme.storage.path.pinned;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.gpunvme.ffi.Errno;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.accel.TestGpu;
import io.gpunvme.gpu.transfer.Direction;
import io.gpunvme.nvme.pci.NumaHome;
import io.gpunvme.storage.injection.OwnProcess;
import io.gpunvme.storage.path.PathCall;
import io.gpunvme.storage.path.Range;
import io.gpunvme.storage.path.StorageException;
import io.gpunvme.storage.path.StorageException.Kind;
import io.gpunvme.storage.path.file.SourceFile;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** Real copies: to GPU memory in streams, and to pinned host memory without any. */
@Tag("gpu")
@Timeout(180)
class PinnedPathGpuTest {
  private static final int FILE_BYTES = (48 << 20) + 1234;
  private static final PinnedOptions OPTIONS =
      PinnedOptions.defaults().withMemory(512 << 10, 8 << 20).withStreams(3);

  @TempDir private Path directory;
  private final GpuAccelerator gpu = TestGpu.open();
  private PinnedFixture fixture;

  @BeforeEach
  void makeFile() throws Exception {
    fixture = new PinnedFixture(directory.resolve("file"), FILE_BYTES);
  }

  @AfterEach
  void close() {
    gpu.close();
  }

  static Stream<Arguments> ways() {
    List<Arguments> ways = new ArrayList<>();
    for (Engine engine : new Engine[] {Engine.AUTO, Engine.THREADS}) {
      for (DirectIo direct : new DirectIo[] {DirectIo.AUTO, DirectIo.FALSE}) {
        for (boolean pinned : new boolean[] {true, false}) {
          ways.add(Arguments.of(engine, direct, pinned));
        }
      }
    }
    return ways.stream();
  }

  private DeviceBuffer allocate(boolean pinned, long bytes) {
    return pinned ? gpu.allocatePinned(bytes) : gpu.allocate(bytes);
  }

  private PinnedPath open(PinnedOptions options, boolean writable) {
    return PinnedPath.open(fixture.file().toString(), writable, gpu, options);
  }

  @ParameterizedTest
  @MethodSource("ways")
  void anyRangesArriveColdAndWarm(Engine engine, DirectIo direct, boolean pinned) {
    try (PinnedPath path = open(OPTIONS.withEngine(engine).withDirect(direct), false);
        DeviceBuffer buffer = allocate(pinned, 64 << 20)) {
      for (int round = 0; round < 6; round++) {
        if (round % 2 == 0) {
          path.file().dropCache();
        }
        List<Range> ranges = fixture.ranges(buffer, 1 << (2 * round), round < 3 ? 4 << 20 : 50_000);
        PinnedFixture.fill(buffer, (byte) round);
        path.transfer(Direction.READ, ranges, PinnedFixture.call());
        fixture.requireRead(buffer, ranges, (byte) round);
        assertThat(path.chunksInUse()).isZero();
      }
    }
  }

  @ParameterizedTest
  @MethodSource("ways")
  void aHundredThousandSmallRangesArrive(Engine engine, DirectIo direct, boolean pinned) {
    int count = 100_000;
    int length = 4096;
    try (PinnedPath path =
            open(PinnedOptions.defaults().withEngine(engine).withDirect(direct), false);
        DeviceBuffer buffer = allocate(pinned, (long) count * length)) {
      List<Range> ranges = new ArrayList<>();
      for (int i = 0; i < count; i++) {
        long offset = fixture.random().nextInt(FILE_BYTES / length) * (long) length;
        ranges.add(new Range(offset, buffer, (long) i * length, length));
      }
      path.file().dropCache();
      for (int round = 0; round < 2; round++) {
        path.transfer(Direction.READ, ranges, PinnedFixture.call());
        fixture.requireRead(buffer, ranges, (byte) 0);
        PinnedFixture.fill(buffer, (byte) 0);
      }
    }
  }

  @ParameterizedTest
  @MethodSource("ways")
  void writesComeFromTheGpu(Engine engine, DirectIo direct, boolean pinned) throws Exception {
    byte[] data = new byte[20 << 20];
    fixture.random().nextBytes(data);
    byte[] expected = fixture.content().clone();
    try (PinnedPath path = open(OPTIONS.withEngine(engine).withDirect(direct), true);
        DeviceBuffer buffer = allocate(pinned, data.length)) {
      buffer.copyFromHost(MemorySegment.ofArray(data), 0);
      List<Range> ranges = new ArrayList<>();
      for (int at = 77; at < data.length - 3_000_000; ) {
        int length = fixture.random().nextInt(2_000_000);
        ranges.add(new Range(at + 5000, buffer, at, length));
        System.arraycopy(data, at, expected, at + 5000, length);
        at += length;
      }
      path.transfer(Direction.WRITE, ranges, PinnedFixture.call());
      path.flush();
      path.file().dropCache();
    }
    byte[] written = Files.readAllBytes(fixture.file());
    assertThat(Arrays.mismatch(written, expected)).as("seed %d", fixture.seed()).isEqualTo(-1);
  }

  @Test
  void severalThreadsShareStreamsAndMemory() throws Exception {
    try (PinnedPath path = open(OPTIONS.withMemory(256 << 10, 1 << 20), false);
        var threads = Executors.newFixedThreadPool(6)) {
      List<Callable<Void>> readers = new ArrayList<>();
      for (int i = 0; i < 6; i++) {
        DeviceBuffer buffer = gpu.allocate(16 << 20);
        List<Range> ranges = fixture.ranges(buffer, 60, 1 << (12 + 2 * (i % 5)));
        readers.add(
            () -> {
              for (int round = 0; round < 5; round++) {
                PinnedFixture.fill(buffer, (byte) round);
                path.transfer(Direction.READ, ranges, PinnedFixture.call());
                fixture.requireRead(buffer, ranges, (byte) round);
              }
              return null;
            });
      }
      for (var result : threads.invokeAll(readers)) {
        result.get();
      }
      assertThat(path.chunksInUse()).isZero();
    }
  }

  @Test
  void afterAFailureNothingCopiesAndThePathWorksOn() {
    AtomicInteger numbers = new AtomicInteger();
    try (SourceFile file = SourceFile.open(fixture.file().toString(), false);
        DeviceBuffer buffer = gpu.allocate(FILE_BYTES);
        PinnedPath path =
            PinnedPath.open(
                file,
                false,
                gpu,
                OPTIONS,
                NumaHome.NONE,
                io ->
                    new FaultyIo(
                        io,
                        numbers,
                        (number, offset, asked, result) -> number == 20 ? -Errno.EIO : result))) {
      Range whole = new Range(0, buffer, 0, FILE_BYTES);
      file.dropCache();
      PathCall call = PinnedFixture.call();
      StorageException e =
          catchThrowableOfType(
              StorageException.class, () -> path.transfer(Direction.READ, List.of(whole), call));
      assertThat(e.kind()).isEqualTo(Kind.IO);
      assertThat(path.chunksInUse()).isZero();
      path.transfer(Direction.READ, List.of(whole), call);
      fixture.requireRead(buffer, List.of(whole), (byte) 0);
    }
  }

  @Test
  void closingInAnyOrderIsSafe() throws Exception {
    List<String> before = OwnProcess.openOn();
    PinnedPath path = open(OPTIONS, false);
    DeviceBuffer buffer = gpu.allocate(1 << 20);
    Range range = new Range(5, buffer, 0, 1 << 20);
    path.transfer(Direction.READ, List.of(range), PinnedFixture.call());
    assertThat(path.pinnedBytes()).isPositive();
    gpu.close();
    path.close();
    buffer.close();
    assertThat(path.chunksInUse()).isZero();
    assertThat(OwnProcess.openOn()).hasSizeLessThanOrEqualTo(before.size());
  }
}
