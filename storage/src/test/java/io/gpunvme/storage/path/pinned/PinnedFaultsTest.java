package io.gpunvme.storage.path.pinned;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.gpunvme.ffi.Errno;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.transfer.Direction;
import io.gpunvme.nvme.pci.NumaHome;
import io.gpunvme.storage.path.PathCall;
import io.gpunvme.storage.path.Range;
import io.gpunvme.storage.path.StorageException;
import io.gpunvme.storage.path.StorageException.Kind;
import io.gpunvme.storage.path.file.SourceFile;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
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

/** What the path does when the kernel does not do what was asked. */
@Timeout(300)
final class PinnedFaultsTest {
  private static final int FILE_BYTES = (5 << 20) + 777;
  private static final PinnedOptions OPTIONS =
      PinnedOptions.defaults().withMemory(64 << 10, 512 << 10).withThreads(3).withDepth(8);

  @TempDir private Path directory;
  private final RemoteAccelerator remote = new RemoteAccelerator();
  private final AtomicInteger numbers = new AtomicInteger();
  private PinnedFixture fixture;

  @BeforeEach
  void makeFile() throws Exception {
    fixture = new PinnedFixture(directory.resolve("file"), FILE_BYTES);
  }

  @AfterEach
  void close() {
    assertThat(remote.pinnedBytes()).as("pinned memory left").isZero();
    remote.close();
  }

  static Stream<Arguments> ways() {
    return Stream.of(Engine.AUTO, Engine.THREADS)
        .flatMap(
            engine -> Arrays.stream(DirectIo.values()).map(direct -> Arguments.of(engine, direct)));
  }

  /** Does something with a path whose I/O has the fault; checks that nothing is held after it. */
  private void with(
      Engine engine,
      DirectIo direct,
      FaultyIo.Fault fault,
      java.util.function.BiConsumer<PinnedPath, DeviceBuffer> body) {
    try (SourceFile file = SourceFile.open(fixture.file().toString(), true);
        DeviceBuffer buffer = remote.allocate(FILE_BYTES)) {
      Assumptions.assumeTrue(direct != DirectIo.TRUE || file.hasDirect(), file::directRefusal);
      file.dropCache();
      try (PinnedPath path =
          PinnedPath.open(
              file,
              false,
              remote,
              OPTIONS.withEngine(engine).withDirect(direct),
              NumaHome.NONE,
              io -> new FaultyIo(io, numbers, fault))) {
        body.accept(path, buffer);
        assertThat(path.chunksInUse()).isZero();
      }
    }
  }

  private static StorageException failure(
      PinnedPath path, Direction direction, DeviceBuffer buffer) {
    Range range = new Range(0, buffer, 0, FILE_BYTES);
    return catchThrowableOfType(
        StorageException.class,
        () -> path.transfer(direction, List.of(range), PinnedFixture.call()));
  }

  @ParameterizedTest
  @MethodSource("ways")
  void aFailedReadEndsTheTransferAndThePathWorksOn(Engine engine, DirectIo direct) {
    List<Long> failed = new ArrayList<>();
    FaultyIo.Fault fault =
        (number, offset, asked, result) -> {
          if (number == 17) {
            failed.add(offset);
            return -Errno.EIO;
          }
          return result;
        };
    with(
        engine,
        direct,
        fault,
        (path, buffer) -> {
          StorageException e = failure(path, Direction.READ, buffer);
          assertThat(e.kind()).isEqualTo(Kind.IO);
          assertThat(e.offset()).isEqualTo(failed.getFirst());
          assertThat(e).hasMessageContaining("EIO");
          Range whole = new Range(0, buffer, 0, FILE_BYTES);
          path.transfer(Direction.READ, List.of(whole), PinnedFixture.call());
          fixture.requireRead(buffer, List.of(whole), (byte) 0);
        });
  }

  @ParameterizedTest
  @MethodSource("ways")
  void aFullDiskIsToldAsSuch(Engine engine, DirectIo direct) {
    with(
        engine,
        direct,
        (number, offset, asked, result) -> number == 5 ? -Errno.ENOSPC : result,
        (path, buffer) -> {
          StorageException e = failure(path, Direction.WRITE, buffer);
          assertThat(e.kind()).isEqualTo(Kind.NO_SPACE);
          assertThat(e.offset()).isNotNegative();
        });
  }

  @ParameterizedTest
  @MethodSource("ways")
  void earlyEndsAndSignalsAreGoneOnFrom(Engine engine, DirectIo direct) {
    FaultyIo.Fault fault =
        (number, offset, asked, result) ->
            switch (number % 4) {
              case 0 -> -Errno.EINTR;
              case 1 -> result > 9000 ? result / 2 - 100 : result;
              case 2 -> result > 20_000 ? 8192 : result;
              default -> result;
            };
    with(
        engine,
        direct,
        fault,
        (path, buffer) -> {
          List<Range> ranges = fixture.ranges(buffer, 60, 200_000);
          PathCall call = PinnedFixture.call();
          path.transfer(Direction.READ, ranges, call);
          fixture.requireRead(buffer, ranges, (byte) 0);
          assertThat(call.counters().snapshot().retries()).isPositive();
          path.transfer(Direction.WRITE, ranges, call);
          path.transfer(Direction.READ, ranges, call);
          fixture.requireRead(buffer, ranges, (byte) 0);
        });
  }

  @ParameterizedTest
  @MethodSource("ways")
  void aFileThatIsCutMeanwhileIsAShortRead(Engine engine, DirectIo direct) {
    long end = 3_000_123;
    FaultyIo.Fault fault =
        (number, offset, asked, result) ->
            (int) Math.clamp(end - offset, 0, Math.max(0, (long) result));
    with(
        engine,
        direct,
        fault,
        (path, buffer) -> {
          StorageException e = failure(path, Direction.READ, buffer);
          assertThat(e.kind()).isEqualTo(Kind.SHORT_READ);
          assertThat(e.offset()).isGreaterThanOrEqualTo(end);
        });
  }

  @ParameterizedTest
  @MethodSource("ways")
  void cancellingEndsTheTransferEarly(Engine engine, DirectIo direct) {
    PathCall call = PinnedFixture.call();
    FaultyIo.Fault fault =
        (number, offset, asked, result) -> {
          if (number == 10) {
            call.cancel();
          }
          return result;
        };
    with(
        engine,
        direct,
        fault,
        (path, buffer) -> {
          Range range = new Range(0, buffer, 0, FILE_BYTES);
          StorageException e =
              catchThrowableOfType(
                  StorageException.class,
                  () -> path.transfer(Direction.READ, List.of(range), call));
          assertThat(e.kind()).isEqualTo(Kind.CANCELLED);
          assertThat(numbers.get()).isLessThan(60);
          assertThat(call.counters().snapshot().readBytes()).isLessThan(FILE_BYTES);
        });
  }

  /**
   * An error in the middle of taking results: I/O is in flight then. The same ring brings the next
   * transfer its own data, and nothing arrives in the buffer of the one that failed.
   */
  @ParameterizedTest
  @MethodSource("ways")
  void anErrorWithIoInFlightLeavesNothingInFlight(Engine engine, DirectIo direct) {
    Error error = new LinkageError("in the middle");
    AtomicInteger left = new AtomicInteger(1);
    FaultyIo.Fault fault =
        (number, offset, asked, result) -> {
          if (number % 5 == 4 && left.getAndDecrement() > 0) {
            throw error;
          }
          return result;
        };
    with(
        engine,
        direct,
        fault,
        (path, buffer) -> {
          Range whole = new Range(0, buffer, 0, FILE_BYTES);
          for (int round = 0; round < 5; round++) {
            left.set(1);
            assertThatThrownBy(
                    () -> path.transfer(Direction.READ, List.of(whole), PinnedFixture.call()))
                .isSameAs(error);
            buffer.copyFromHost(MemorySegment.ofArray(new byte[FILE_BYTES]), 0);
            List<Range> ranges = fixture.ranges(buffer, 60, 20_000);
            left.set(0);
            path.transfer(Direction.READ, ranges, PinnedFixture.call());
            fixture.requireRead(buffer, ranges, (byte) 0);
          }
        });
  }

  /** As many as the depth says, whether a load has one I/O or many. */
  @Test
  void aRingIsKeptAsFullAsItsDepthSays() {
    for (int longest : new int[] {FILE_BYTES, 5000}) {
      AtomicInteger most = new AtomicInteger();
      try (SourceFile file = SourceFile.open(fixture.file().toString(), false);
          DeviceBuffer buffer = remote.allocate(FILE_BYTES)) {
        Assumptions.assumeTrue(file.hasDirect(), file::directRefusal);
        try (PinnedPath path =
            PinnedPath.open(
                file,
                false,
                remote,
                OPTIONS.withDirect(DirectIo.TRUE),
                NumaHome.NONE,
                io -> new FaultyIo(io, numbers, most))) {
          Assumptions.assumeTrue(path.mode().contains("io_uring"), path.mode());
          List<Range> ranges =
              longest == FILE_BYTES
                  ? List.of(new Range(0, buffer, 0, FILE_BYTES))
                  : fixture.ranges(buffer, 500, longest);
          path.transfer(Direction.READ, ranges, PinnedFixture.call());
          assertThat(most.get()).isEqualTo(OPTIONS.depth());
        }
      }
    }
  }

  @ParameterizedTest
  @MethodSource("ways")
  void aBufferThatFailsEndsAllThreads(Engine engine, DirectIo direct) {
    with(
        engine,
        direct,
        (number, offset, asked, result) -> result,
        (path, buffer) -> {
          DeviceBuffer closed = remote.allocate(FILE_BYTES);
          closed.close();
          Range range = new Range(0, closed, 0, FILE_BYTES);
          assertThat(
                  catchThrowableOfType(
                      IllegalStateException.class,
                      () -> path.transfer(Direction.READ, List.of(range), PinnedFixture.call())))
              .isNotNull();
        });
  }
}
