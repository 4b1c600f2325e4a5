package io.gpunvme.storage.path.cufile;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.cuda.cufile.CuFileError;
import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.transfer.Direction;
import io.gpunvme.storage.path.PathCall;
import io.gpunvme.storage.path.PathCounters;
import io.gpunvme.storage.path.Range;
import io.gpunvme.storage.path.RequestShape;
import io.gpunvme.storage.path.StorageException;
import io.gpunvme.storage.path.StorageException.Kind;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

final class CuFilePathTest {
  private static final int FILE_BYTES = 300_000;
  private static final CuFileOptions SMALL =
      CuFileOptions.DEFAULTS.withChunk(64 << 10).withThreads(4);

  private final FakeGpuDirect fake = FakeGpuDirect.fresh();
  private final PathCounters counters = new PathCounters();
  private final byte[] content = new byte[FILE_BYTES];
  private Path file;

  @BeforeEach
  void write(@TempDir Path folder) throws IOException {
    new Random(3).nextBytes(content);
    file = Files.write(folder.resolve("data"), content);
  }

  @AfterEach
  void close() {
    fake.accelerator().close();
    fake.assertClean();
  }

  private PathCall call() {
    return new PathCall("data", counters);
  }

  private void read(CuFilePath path, DeviceBuffer buffer, long offset, long length) {
    path.transfer(Direction.READ, List.of(new Range(offset, buffer, 0, length)), call());
  }

  private void assertRead(DeviceBuffer buffer, int offset, int length) {
    byte[] seen = new byte[length];
    buffer.copyToHost(0, MemorySegment.ofArray(seen));
    assertThat(Arrays.mismatch(seen, Arrays.copyOfRange(content, offset, offset + length)))
        .isEqualTo(-1);
  }

  // ---- calls

  @Test
  void longRangesAreCutAtAlignedOffsets() {
    DeviceBuffer buffer = fake.accelerator().allocate(FILE_BYTES);
    try (CuFilePath path = fake.open(file, false, SMALL.withThreads(1))) {
      read(path, buffer, 1000, 150_000);
      assertThat(fake.calls().stream().filter(c -> c.startsWith("cuFileRead ")))
          .containsExactly(
              "cuFileRead 64536 1000 0",
              "cuFileRead 65536 65536 64536",
              "cuFileRead 19928 131072 130072");
      assertRead(buffer, 1000, 150_000);
      assertThat(counters.snapshot().stagedBytes()).isEqualTo(150_000);
      read(path, buffer, 4096, 8192);
      assertThat(counters.snapshot().stagedBytes()).as("aligned").isEqualTo(150_000);
      assertThat(counters.snapshot().operations()).isEqualTo(4);
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 3})
  void shortReadsGoOnWhereTheyStopped(int batch) {
    DeviceBuffer buffer = fake.accelerator().allocate(FILE_BYTES);
    fake.shorten(10_000);
    try (CuFilePath path = fake.open(file, false, SMALL.withBatch(batch))) {
      read(path, buffer, 0, 200_000);
      assertRead(buffer, 0, 200_000);
      assertThat(counters.snapshot().retries()).isPositive();
    }
  }

  @Test
  void theEndOfTheFileIsAShortReadWhereItIs() {
    DeviceBuffer buffer = fake.accelerator().allocate(FILE_BYTES);
    try (CuFilePath path = fake.open(file, false, SMALL)) {
      assertThatExceptionOfType(StorageException.class)
          .isThrownBy(() -> read(path, buffer, FILE_BYTES - 100, 200))
          .satisfies(
              e -> {
                assertThat(e.kind()).isEqualTo(Kind.SHORT_READ);
                assertThat(e.offset()).isEqualTo(FILE_BYTES);
                assertThat(e.length()).isEqualTo(100);
              });
    }
  }

  @ParameterizedTest
  @CsvSource({
    "5, IO",
    "28, NO_SPACE",
    "122, NO_SPACE",
    "19, GONE",
    "116, GONE",
    "13, PERMISSION",
    "30, PERMISSION",
    "22, UNSUPPORTED",
    "5044, IO",
    "5030, IO",
    "5025, PERMISSION",
    "5008, UNSUPPORTED",
    "5034, UNSUPPORTED",
    "5027, UNSUPPORTED",
    "5011, ACCELERATOR",
    "5015, ACCELERATOR",
    "5016, ACCELERATOR_MEMORY",
    "5999, IO",
  })
  void failuresAreOfAKind(int code, Kind kind) {
    DeviceBuffer buffer = fake.accelerator().allocate(FILE_BYTES);
    for (int batch : new int[] {0, 4}) {
      try (CuFilePath path = fake.open(file, true, SMALL.withBatch(batch))) {
        fake.fail("cuFileWrite", 2, 1, code);
        assertThatExceptionOfType(StorageException.class)
            .isThrownBy(
                () ->
                    path.transfer(
                        Direction.WRITE, List.of(new Range(0, buffer, 0, 262_144)), call()))
            .satisfies(
                e -> {
                  assertThat(e.kind()).as("batch %d: %s", batch, e).isEqualTo(kind);
                  assertThat(e.source()).isEqualTo("data");
                  assertThat(e.offset()).isBetween(0L, 262_143L);
                });
        assertThat(path.size()).isEqualTo(FILE_BYTES);
      }
      assertThat(fake.live()).isZero();
    }
  }

  @Test
  void everyCodeOfCuFileIsAStorageException() {
    DeviceBuffer buffer = fake.accelerator().allocate(4096);
    try (CuFilePath path = fake.open(file, false, SMALL)) {
      for (CuFileError error : CuFileError.values()) {
        fake.fail("cuFileRead", 1, 100, error.code());
        assertThatThrownBy(() -> read(path, buffer, 0, 4096))
            .isInstanceOf(StorageException.class)
            .hasMessageContaining(error.symbol());
      }
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {4, 11, 5043})
  void whatMayPassIsTriedAgain(int code) {
    DeviceBuffer buffer = fake.accelerator().allocate(4096);
    try (CuFilePath path = fake.open(file, false, SMALL)) {
      fake.fail("cuFileRead", 1, 3, code);
      read(path, buffer, 0, 4096);
      assertRead(buffer, 0, 4096);
      assertThat(counters.snapshot().retries()).isEqualTo(3);
      fake.fail("cuFileRead", 1, 4, code);
      assertThatExceptionOfType(StorageException.class)
          .isThrownBy(() -> read(path, buffer, 0, 4096));
    }
  }

  @Test
  void writesNeedAWritablePath() {
    DeviceBuffer buffer = fake.accelerator().allocate(4096);
    try (CuFilePath path = fake.open(file, false, SMALL)) {
      assertThatExceptionOfType(StorageException.class)
          .isThrownBy(
              () -> path.transfer(Direction.WRITE, List.of(new Range(0, buffer, 0, 1)), call()))
          .satisfies(e -> assertThat(e.kind()).isEqualTo(Kind.PERMISSION));
    }
  }

  @Test
  void memoryOfSomebodyElseIsRefused() {
    try (CuFilePath path = fake.open(file, false, SMALL)) {
      DeviceBuffer closed = fake.accelerator().allocate(4096);
      closed.close();
      assertThatExceptionOfType(InvalidRequestException.class)
          .isThrownBy(() -> read(path, closed, 0, 4096));
    }
  }

  // ---- registration and lifetimes

  @Test
  void registeredBuffersAreDeregisteredBeforeTheyAreFreed() {
    CuFilePath path = fake.open(file, false, SMALL);
    DeviceBuffer buffer = fake.accelerator().allocate(65_536);
    path.register(buffer);
    path.register(buffer);
    path.register(fake.accelerator().allocatePinned(4096));
    assertThat(fake.count("cuFileBufRegister")).isEqualTo(1);
    read(path, buffer, 7, 65_000);
    assertRead(buffer, 7, 65_000);
    buffer.close();
    assertThat(fake.count("cuFileBufDeregister")).isEqualTo(1);
    DeviceBuffer other = fake.accelerator().allocate(4096);
    path.register(other);
    path.deregister(other);
    path.deregister(other);
    assertThat(fake.count("cuFileBufDeregister")).isEqualTo(2);
    path.register(other);
    path.close();
    path.close();
    assertThat(fake.live()).isZero();
    other.close();
  }

  @Test
  void theAcceleratorMayBeClosedFirst() {
    CuFilePath path = fake.open(file, false, SMALL);
    DeviceBuffer buffer = fake.accelerator().allocate(4096);
    path.register(buffer);
    fake.accelerator().close();
    assertThat(fake.live()).isZero();
    assertThatThrownBy(() -> read(path, buffer, 0, 1)).isInstanceOf(RuntimeException.class);
    path.close();
    assertThatIllegalStateException().isThrownBy(path::size);
  }

  @ParameterizedTest
  @CsvSource({
    "cuFileDriverOpen, 5007, UNSUPPORTED",
    "cuFileHandleRegister, 5027, UNSUPPORTED",
    "cuFileHandleRegister, 5025, PERMISSION",
    "cuFileSetStatsLevel, 5022, IO",
    "cuFileStatsStart, 5030, IO",
  })
  void failedOpensLeaveNothing(String call, int code, Kind kind) {
    fake.fail(call, 1, 1, code);
    assertThatExceptionOfType(StorageException.class)
        .isThrownBy(() -> fake.open(file, false, SMALL))
        .satisfies(e -> assertThat(e.kind()).isEqualTo(kind))
        .withMessageContaining(call);
    assertThat(fake.live()).isZero();
  }

  @Test
  void aFileThatIsNotThereIsGone() {
    assertThatExceptionOfType(StorageException.class)
        .isThrownBy(() -> fake.open(file.resolveSibling("none"), false, SMALL))
        .satisfies(e -> assertThat(e.kind()).isEqualTo(Kind.GONE));
  }

  @Test
  void aRegistrationThatFailsIsSaid() {
    DeviceBuffer buffer = fake.accelerator().allocate(4096);
    try (CuFilePath path = fake.open(file, false, SMALL)) {
      fake.fail("cuFileBufRegister", 1, 1, 5016);
      assertThatExceptionOfType(StorageException.class)
          .isThrownBy(() -> path.register(buffer))
          .satisfies(e -> assertThat(e.kind()).isEqualTo(Kind.ACCELERATOR_MEMORY))
          .withMessageContaining("max_device_pinned_mem_size_kb");
      read(path, buffer, 0, 4096);
    }
  }

  // ---- what it says

  @Test
  void theModeSaysWhichWayTheBytesTook() {
    DeviceBuffer buffer = fake.accelerator().allocate(FILE_BYTES);
    CuFilePath path = fake.open(file, false, SMALL);
    assertThat(path.mode()).isEqualTo("cuFile 1.15, 4 threads, nothing transferred yet");
    read(path, buffer, 0, 200_000);
    String mode =
        "cuFile 1.15, 4 threads, compatibility mode (4 POSIX transfers, 0 peer-to-peer, 0 by"
            + " nvidia-fs)";
    assertThat(path.mode()).isEqualTo(mode);
    path.close();
    assertThat(path.mode()).isEqualTo(mode);
    try (CuFilePath other = fake.open(file, false, SMALL.withThreads(1).withBatch(2))) {
      assertThat(other.mode())
          .as("counts from its own opening on")
          .isEqualTo("cuFile 1.15, 1 thread, batches of 2, nothing transferred yet");
    }
  }

  @Test
  void whatCannotBeKnownIsNotGuessed() {
    fake.accelerator().close(); // The stand-ins' next users forget what is open.
    FakeGpuDirect old = FakeGpuDirect.ofVersion(1130);
    try (CuFilePath path = old.open(file, false, SMALL)) {
      assertThat(path.mode())
          .isEqualTo(
              "cuFile 1.13, 4 threads, directly or in compatibility mode: only cuFile 1.15 and"
                  + " newer report it");
    } finally {
      old.accelerator().close();
    }
    FakeGpuDirect quiet = FakeGpuDirect.fresh();
    try (CuFilePath path = quiet.open(file, false, SMALL.withStatistics(0).withDirect(false))) {
      assertThat(path.mode()).endsWith("its statistics are below level 3");
      assertThat(quiet.count("cuFileSetStatsLevel")).isZero();
    } finally {
      quiet.accelerator().close();
    }
  }

  @Test
  void librariesThatNeedItAreGivenFilesWithODirect() {
    fake.accelerator().close();
    FakeGpuDirect old = FakeGpuDirect.ofVersion(1060);
    try (CuFilePath path = old.open(file, false, SMALL)) {
      assertThat(path.kind()).hasToString("cufile");
      assertThat(old.calls()).contains("cuFileHandleRegister 1 O_DIRECT");
    } catch (StorageException e) {
      Assumptions.abort("no O_DIRECT in the temporary folder: " + e.getMessage());
    } finally {
      old.accelerator().close();
    }
  }

  @Test
  void expectationsFollowSizeAndResidency() {
    try (CuFilePath path = fake.open(file, false, CuFileOptions.DEFAULTS)) {
      RequestShape warm = new RequestShape(Direction.READ, 1, 1L << 30, 1);
      RequestShape cold = new RequestShape(Direction.READ, 1, 1L << 30, 0);
      RequestShape small = new RequestShape(Direction.READ, 100_000, 100_000L * 4096, 0);
      RequestShape one = new RequestShape(Direction.READ, 1, 1 << 20, 1);
      assertThat(path.expected(warm)).isBetween(36.0, 40.0);
      assertThat(path.expected(cold)).isBetween(3.0, 4.4);
      assertThat(path.expected(small)).isBetween(0.1, 1.1);
      assertThat(path.expected(one)).isBetween(10.0, 13.0);
      assertThat(path.expected(new RequestShape(Direction.READ, 0, 0, 0))).isPositive();
    }
  }

  @Test
  void optionsHaveLimits() {
    for (Runnable wrong :
        List.<Runnable>of(
            () -> SMALL.withThreads(0),
            () -> SMALL.withThreads(257),
            () -> SMALL.withChunk(4095),
            () -> SMALL.withChunk(0),
            () -> SMALL.withBatch(-1),
            () -> SMALL.withStatistics(4))) {
      assertThatExceptionOfType(InvalidRequestException.class).isThrownBy(wrong::run);
    }
  }

  @Test
  void theCpuStandInHasNoCuFile() {
    try (CpuAccelerator cpu = CpuAccelerator.open()) {
      assertThat(CuFilePath.judge(file.toString(), cpu))
          .satisfies(
              v -> {
                assertThat(v.possible()).isFalse();
                assertThat(v.reason()).contains("not a GPU");
              });
    }
  }
}
