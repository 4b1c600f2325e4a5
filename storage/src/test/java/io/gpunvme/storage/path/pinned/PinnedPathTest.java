package io.gpunvme.storage.path.pinned;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.ffi.IoUring;
import io.gpunvme.ffi.IoUringUnavailableException;
import io.gpunvme.ffi.Posix;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.transfer.Direction;
import io.gpunvme.storage.injection.OwnProcess;
import io.gpunvme.storage.path.PathCall;
import io.gpunvme.storage.path.PathCounters;
import io.gpunvme.storage.path.PathKind;
import io.gpunvme.storage.path.PathStats;
import io.gpunvme.storage.path.Range;
import io.gpunvme.storage.path.RequestShape;
import io.gpunvme.storage.path.StorageException;
import io.gpunvme.storage.path.file.SourceFile;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.Executors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

@Timeout(300)
final class PinnedPathTest {
  private static final int FILE_BYTES = (9 << 20) + 1234;
  private static final PinnedOptions SMALL =
      PinnedOptions.defaults().withMemory(128 << 10, 1 << 20).withThreads(3).withDepth(16);

  @TempDir private Path directory;
  private final RemoteAccelerator remote = new RemoteAccelerator();
  private final CpuAccelerator cpu = CpuAccelerator.open();
  private PinnedFixture fixture;

  @BeforeEach
  void makeFile() throws Exception {
    fixture = new PinnedFixture(directory.resolve("file"), FILE_BYTES);
  }

  @AfterEach
  void close() {
    assertThat(remote.pinnedBytes()).as("pinned memory left").isZero();
    remote.close();
    cpu.close();
  }

  static Stream<Arguments> ways() {
    List<Arguments> ways = new ArrayList<>();
    for (Engine engine : Engine.values()) {
      for (DirectIo direct : DirectIo.values()) {
        for (boolean host : new boolean[] {true, false}) {
          ways.add(Arguments.of(engine, direct, host));
        }
      }
    }
    return ways.stream();
  }

  private Accelerator accelerator(boolean host) {
    return host ? cpu : remote;
  }

  private PinnedPath open(Accelerator accelerator, PinnedOptions options, boolean writable) {
    if (options.engine() == Engine.URING) {
      try {
        IoUring.open(1).close();
      } catch (IoUringUnavailableException e) {
        Assumptions.abort(e.getMessage());
      }
    }
    try (SourceFile probe = SourceFile.open(fixture.file().toString(), false)) {
      if (options.direct() == DirectIo.TRUE && !probe.hasDirect()) {
        Assumptions.abort(probe.directRefusal());
      }
    }
    return PinnedPath.open(fixture.file().toString(), writable, accelerator, options);
  }

  @ParameterizedTest
  @MethodSource("ways")
  void anyRangesArriveColdAndWarm(Engine engine, DirectIo direct, boolean host) {
    PinnedOptions options = SMALL.withEngine(engine).withDirect(direct);
    try (PinnedPath path = open(accelerator(host), options, false);
        DeviceBuffer buffer = accelerator(host).allocate(24 << 20)) {
      assertThat(path.kind()).isEqualTo(PathKind.PINNED);
      assertThat(path.size()).isEqualTo(FILE_BYTES);
      for (int round = 0; round < 6; round++) {
        if (round % 2 == 0) {
          path.file().dropCache();
        }
        List<Range> ranges = fixture.ranges(buffer, 1 << (2 * round), round < 3 ? 1 << 20 : 20_000);
        PinnedFixture.fill(buffer, (byte) round);
        PathCall call = PinnedFixture.call();
        path.transfer(Direction.READ, ranges, call);
        fixture.requireRead(buffer, ranges, (byte) round);
        PathStats stats = call.counters().snapshot();
        assertThat(stats.readBytes()).isEqualTo(PinnedFixture.bytes(ranges));
        assertThat(stats.latency().getTotalCount()).isEqualTo(stats.operations());
        assertThat(path.chunksInUse()).isZero();
        if (!host) {
          assertThat(stats.stagedBytes()).isEqualTo(stats.readBytes());
        }
      }
      assertThat(path.pinnedBytes()).isLessThanOrEqualTo(1 << 20);
    }
  }

  @ParameterizedTest
  @MethodSource("ways")
  void anyRangesAreWritten(Engine engine, DirectIo direct, boolean host) throws Exception {
    PinnedOptions options = SMALL.withEngine(engine).withDirect(direct);
    byte[] expected = fixture.content().clone();
    try (PinnedPath path = open(accelerator(host), options, true);
        DeviceBuffer buffer = accelerator(host).allocate(8 << 20)) {
      byte[] data = new byte[8 << 20];
      fixture.random().nextBytes(data);
      buffer.copyFromHost(MemorySegment.ofArray(data), 0);
      for (int round = 0; round < 4; round++) {
        // What lies next to each other in the file is written at the same time.
        List<Range> ranges = new ArrayList<>();
        long at = fixture.random().nextInt(10_000);
        while (true) {
          int length = fixture.random().nextInt(round % 2 == 0 ? 900_000 : 9_000);
          if (at + length > FILE_BYTES) {
            break;
          }
          long from = fixture.random().nextLong(data.length - length);
          from = round < 2 ? from : from / 4096 * 4096 + at % 4096;
          if (from + length <= data.length) {
            ranges.add(new Range(at, buffer, from, length));
            System.arraycopy(data, (int) from, expected, (int) at, length);
          }
          at += length;
        }
        PathCall call = PinnedFixture.call();
        path.transfer(Direction.WRITE, ranges, call);
        assertThat(call.counters().snapshot().writtenBytes())
            .isEqualTo(PinnedFixture.bytes(ranges));
        assertThat(Arrays.mismatch(Files.readAllBytes(fixture.file()), expected))
            .as("seed %d", fixture.seed())
            .isEqualTo(-1);
      }
      path.flush();
      path.file().dropCache();
      assertThat(Arrays.mismatch(Files.readAllBytes(fixture.file()), expected)).isEqualTo(-1);
    }
  }

  @Test
  void writesMakeTheFileLonger() throws Exception {
    byte[] data = new byte[300_001];
    fixture.random().nextBytes(data);
    try (PinnedPath path = open(remote, SMALL, true);
        DeviceBuffer buffer = remote.allocate(data.length)) {
      buffer.copyFromHost(MemorySegment.ofArray(data), 0);
      Range range = new Range(FILE_BYTES + 5000, buffer, 0, data.length);
      path.transfer(Direction.WRITE, List.of(range), PinnedFixture.call());
      assertThat(path.size()).isEqualTo(FILE_BYTES + 5000 + data.length);
    }
    byte[] all = Files.readAllBytes(fixture.file());
    assertThat(Arrays.copyOfRange(all, FILE_BYTES + 5000, all.length)).isEqualTo(data);
  }

  @ParameterizedTest
  @MethodSource("ways")
  void aHundredThousandSmallRangesArrive(Engine engine, DirectIo direct, boolean host) {
    int count = 100_000;
    int length = 600;
    try (PinnedPath path =
            open(
                accelerator(host),
                PinnedOptions.defaults().withEngine(engine).withDirect(direct),
                false);
        DeviceBuffer buffer = accelerator(host).allocate((long) count * length)) {
      List<Range> ranges = new ArrayList<>();
      for (int i = 0; i < count; i++) {
        long offset = fixture.random().nextInt(FILE_BYTES - length);
        ranges.add(new Range(offset, buffer, (long) i * length, length));
      }
      path.transfer(Direction.READ, ranges, PinnedFixture.call());
      fixture.requireRead(buffer, ranges, (byte) 0);
      assertThat(path.pinnedBytes()).isLessThanOrEqualTo(PinnedOptions.defaults().ringBytes());
    }
  }

  @Test
  void severalThreadsShareThePath() throws Exception {
    try (PinnedPath path = open(remote, SMALL.withMemory(128 << 10, 384 << 10), false);
        var threads = Executors.newFixedThreadPool(6)) {
      List<Callable<Void>> readers = new ArrayList<>();
      for (int i = 0; i < 6; i++) {
        DeviceBuffer buffer = remote.allocate(6 << 20);
        List<Range> ranges = fixture.ranges(buffer, 40, 1 << (12 + 2 * (i % 5)));
        readers.add(
            () -> {
              for (int round = 0; round < 8; round++) {
                if (round == 4) {
                  path.file().dropCache();
                }
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

  /** What is in memory goes through the page cache, what is not past it: in the same request. */
  @Test
  void eachPieceGoesTheWayThatItsResidencySays() throws Exception {
    try (PinnedPath path = open(remote, SMALL, false);
        DeviceBuffer buffer = remote.allocate(FILE_BYTES)) {
      Assumptions.assumeTrue(path.file().hasDirect(), path.file().directRefusal());
      Range whole = new Range(0, buffer, 0, FILE_BYTES);
      path.file().dropCache();
      path.transfer(Direction.READ, List.of(whole), PinnedFixture.call());
      assertThat(path.mode()).contains("O_DIRECT").doesNotContain("page cache");
      assertThat(path.file().residency(0, FILE_BYTES)).as("left alone").isZero();
      try (DeviceBuffer half = cpu.allocate(4 << 20);
          PinnedPath cached = open(cpu, SMALL.withDirect(DirectIo.FALSE), false)) {
        // Without reading ahead.
        Posix.fadvise(cached.file().fd(), 0, 0, Posix.POSIX_FADV_RANDOM);
        Range first = new Range(0, half, 0, 4 << 20);
        cached.transfer(Direction.READ, List.of(first), PinnedFixture.call());
      }
      path.transfer(Direction.READ, List.of(whole), PinnedFixture.call());
      assertThat(path.mode()).contains("O_DIRECT").contains("page cache");
      fixture.requireRead(buffer, List.of(whole), (byte) 0);
      Files.readAllBytes(fixture.file());
      path.transfer(Direction.READ, List.of(whole), PinnedFixture.call());
      assertThat(path.mode()).contains("page cache").doesNotContain("O_DIRECT");
    }
  }

  /**
   * Loads of 128 KiB, of which 32 are looked at together: one that is cached, and one of which half
   * is.
   */
  @Test
  void whatIsCachedInPartIsAskedForPieceByPiece() throws Exception {
    int group = 32 * (128 << 10);
    try (PinnedPath path = open(remote, SMALL, false);
        DeviceBuffer buffer = remote.allocate(2L * group)) {
      Assumptions.assumeTrue(path.file().hasDirect(), path.file().directRefusal());
      path.file().dropCache();
      try (DeviceBuffer some = cpu.allocate(2L * group);
          PinnedPath cached = open(cpu, SMALL.withDirect(DirectIo.FALSE), false)) {
        Posix.fadvise(cached.file().fd(), 0, 0, Posix.POSIX_FADV_RANDOM);
        cached.transfer(
            Direction.READ,
            List.of(new Range(0, some, 0, group), new Range(group, some, group, group / 2)),
            PinnedFixture.call());
      }
      List<Range> whole = List.of(new Range(0, buffer, 0, 2L * group));
      Cutter.Cut cut = new Cutter(path.file(), SMALL, Direction.READ, whole).reads();
      assertThat(bytes(cut.cached())).isEqualTo(group + group / 2);
      assertThat(bytes(cut.direct())).isEqualTo(group / 2);
      path.transfer(Direction.READ, whole, PinnedFixture.call());
      fixture.requireRead(buffer, whole, (byte) 0);
    }
  }

  private static long bytes(IoList list) {
    return IntStream.range(0, list.count()).mapToLong(list::length).sum();
  }

  @Test
  void alignedReadsIntoHostMemoryTakeNoDetour() {
    try (PinnedPath path = open(cpu, SMALL.withDirect(DirectIo.TRUE), false);
        DeviceBuffer buffer = cpu.allocate(2 << 20)) {
      PathCall call = PinnedFixture.call();
      path.transfer(Direction.READ, List.of(new Range(1 << 20, buffer, 0, 2 << 20)), call);
      assertThat(call.counters().snapshot().stagedBytes()).isZero();
      assertThat(call.counters().snapshot().overreadBytes()).isZero();
      assertThat(path.pinnedBytes()).isZero();
      path.transfer(Direction.READ, List.of(new Range(100, buffer, 100, 10_000)), call);
      long edges = call.counters().snapshot().stagedBytes();
      assertThat(edges).isBetween(1L, 2L * path.alignment());
      assertThat(call.counters().snapshot().overreadBytes()).isPositive();
    }
  }

  @Test
  void rangesThatLeaveFileOrBufferAreRefused() {
    try (PinnedPath path = open(remote, SMALL, false);
        PinnedPath host = open(cpu, SMALL, false);
        DeviceBuffer buffer = remote.allocate(8192);
        DeviceBuffer hostBuffer = cpu.allocate(8192)) {
      for (Range bad :
          List.of(
              new Range(-1, buffer, 0, 1),
              new Range(0, buffer, -1, 1),
              new Range(0, buffer, 0, -1),
              new Range(0, buffer, 8192, 1),
              new Range(0, buffer, 1, 8192),
              new Range(Long.MAX_VALUE, buffer, 0, 1))) {
        assertThatThrownBy(() -> path.transfer(Direction.READ, List.of(bad), PinnedFixture.call()))
            .as("%s", bad)
            .isInstanceOf(InvalidRequestException.class);
        // By a path that reads host memory, whose short reads go another way.
        assertThatThrownBy(
                () ->
                    host.transfer(
                        Direction.READ,
                        bad.offset(),
                        hostBuffer,
                        bad.bufferOffset(),
                        bad.length(),
                        PinnedFixture.call()))
            .as("%s, one range", bad)
            .isInstanceOf(InvalidRequestException.class);
      }
      for (DirectIo direct : List.of(DirectIo.FALSE, DirectIo.AUTO)) {
        try (PinnedPath other = open(remote, SMALL.withDirect(direct), false)) {
          Range past = new Range(FILE_BYTES - 1000, buffer, 0, 1500);
          StorageException e =
              catchThrowableOfType(
                  StorageException.class,
                  () -> other.transfer(Direction.READ, List.of(past), PinnedFixture.call()));
          assertThat(e.kind()).isEqualTo(StorageException.Kind.SHORT_READ);
          assertThat(e.offset()).isEqualTo(FILE_BYTES);
          assertThat(e.length()).isEqualTo(500);
        }
      }
    }
  }

  @Test
  void aFileOpenForReadingIsNotWritten() {
    try (PinnedPath path = open(remote, SMALL, false);
        DeviceBuffer buffer = remote.allocate(8192)) {
      assertThatThrownBy(
              () ->
                  path.transfer(
                      Direction.WRITE, List.of(new Range(0, buffer, 0, 10)), PinnedFixture.call()))
          .isInstanceOfSatisfying(
              StorageException.class,
              e -> assertThat(e.kind()).isEqualTo(StorageException.Kind.PERMISSION));
    }
  }

  @Test
  void nothingIsLeftWhenThePathIsClosed() throws Exception {
    List<String> before = OwnProcess.openOn();
    for (int i = 0; i < 20; i++) {
      PinnedPath path = open(remote, SMALL, false);
      try (DeviceBuffer buffer = remote.allocate(2 << 20)) {
        path.file().dropCache();
        path.transfer(
            Direction.READ, List.of(new Range(3, buffer, 0, 2 << 20)), PinnedFixture.call());
        assertThat(remote.pinnedBytes()).isPositive();
        path.close();
        path.close();
        assertThat(remote.pinnedBytes()).isZero();
        assertThatIllegalStateException()
            .isThrownBy(() -> path.transfer(Direction.READ, List.of(), PinnedFixture.call()));
      }
    }
    assertThat(OwnProcess.openOn()).isEqualTo(before);
  }

  @Test
  void lessPinnedMemoryThanWishedForMustDo() {
    RemoteAccelerator poor = new RemoteAccelerator(256 << 10);
    try (PinnedPath path = open(poor, SMALL, false);
        DeviceBuffer buffer = poor.allocate(FILE_BYTES)) {
      Range whole = new Range(0, buffer, 0, FILE_BYTES);
      path.transfer(Direction.READ, List.of(whole), PinnedFixture.call());
      fixture.requireRead(buffer, List.of(whole), (byte) 0);
    }
    RemoteAccelerator none = new RemoteAccelerator(1000);
    try (PinnedPath path = open(none, SMALL, false);
        DeviceBuffer buffer = none.allocate(4096)) {
      assertThatThrownBy(
              () ->
                  path.transfer(
                      Direction.READ, List.of(new Range(0, buffer, 0, 4096)), PinnedFixture.call()))
          .isInstanceOfSatisfying(
              StorageException.class,
              e -> assertThat(e.kind()).isEqualTo(StorageException.Kind.ACCELERATOR_MEMORY));
    }
  }

  @Test
  void emptyRequestsAreDone() {
    try (PinnedPath path = open(remote, SMALL, false);
        DeviceBuffer buffer = remote.allocate(4096)) {
      path.transfer(Direction.READ, List.of(), PinnedFixture.call());
      path.transfer(Direction.READ, List.of(new Range(5, buffer, 5, 0)), PinnedFixture.call());
      assertThat(path.pinnedBytes()).isZero();
    }
  }

  @Test
  void expectationsFollowResidency() {
    try (PinnedPath path = open(remote, SMALL, false)) {
      RequestShape cold = new RequestShape(Direction.READ, 10, 1L << 30, 0);
      RequestShape warm = new RequestShape(Direction.READ, 10, 1L << 30, 1);
      RequestShape small = new RequestShape(Direction.READ, 1_000_000, 4096L * 1_000_000, 0);
      assertThat(path.expected(warm)).isGreaterThan(path.expected(cold));
      assertThat(path.expected(small)).isLessThan(path.expected(cold));
    }
  }

  @Test
  void judgesWithoutLeavingAnythingOpen() throws Exception {
    List<String> before = OwnProcess.openOn();
    String file = fixture.file().toString();
    assertThat(PinnedPath.judge(file, PinnedOptions.defaults()).possible()).isTrue();
    assertThat(PinnedPath.judge(file + "-missing", PinnedOptions.defaults()).reason())
        .contains("ENOENT");
    assertThat(PinnedPath.judge(directory.toString(), PinnedOptions.defaults()).reason())
        .contains("directory");
    assertThat(OwnProcess.openOn()).isEqualTo(before);
  }

  @Test
  void aFileSystemWithoutDirectIoIsReadThroughThePageCache() throws Exception {
    Path memory = Path.of("/dev/shm");
    Assumptions.assumeTrue(Files.isWritable(memory), "no /dev/shm");
    Path inMemory = Files.createTempFile(memory, "gpunvme", ".bin");
    try {
      Files.copy(fixture.file(), inMemory, java.nio.file.StandardCopyOption.REPLACE_EXISTING);
      try (PinnedPath path =
              PinnedPath.open(inMemory.toString(), false, remote, PinnedOptions.defaults());
          DeviceBuffer buffer = remote.allocate(FILE_BYTES)) {
        assertThat(path.file().hasDirect()).isFalse();
        Range whole = new Range(0, buffer, 0, FILE_BYTES);
        path.transfer(Direction.READ, List.of(whole), PinnedFixture.call());
        fixture.requireRead(buffer, List.of(whole), (byte) 0);
        assertThat(path.mode()).startsWith("page cache");
      }
      PinnedOptions direct = PinnedOptions.defaults().withDirect(DirectIo.TRUE);
      assertThat(PinnedPath.judge(inMemory.toString(), direct).reason()).contains("O_DIRECT");
      assertThatThrownBy(() -> PinnedPath.open(inMemory.toString(), false, remote, direct))
          .isInstanceOfSatisfying(
              StorageException.class,
              e -> assertThat(e.kind()).isEqualTo(StorageException.Kind.UNSUPPORTED));
    } finally {
      Files.delete(inMemory);
    }
  }

  @Test
  void optionsOutOfRangeAreRefused() {
    for (Runnable bad :
        List.<Runnable>of(
            () -> SMALL.withDepth(0),
            () -> SMALL.withDepth(5000),
            () -> SMALL.withMemory(100_000, 1 << 20),
            () -> SMALL.withMemory(32 << 10, 1 << 20),
            () -> SMALL.withMemory(1 << 20, 1 << 19),
            () -> SMALL.withThreads(0),
            () -> SMALL.withStreams(65))) {
      assertThatThrownBy(bad::run).isInstanceOf(InvalidRequestException.class);
    }
  }

  @Test
  void countersAreTheCalls() {
    PathCounters counters = new PathCounters();
    try (PinnedPath path = open(remote, SMALL, false);
        DeviceBuffer buffer = remote.allocate(1 << 20)) {
      PathCall call = new PathCall("named so", counters);
      path.transfer(Direction.READ, List.of(new Range(1, buffer, 0, 4000)), call);
      assertThat(counters.snapshot().readBytes()).isEqualTo(4000);
      assertThat(counters.snapshot().operations()).isOne();
    }
  }
}
