package io.gpunvme.cuda.cufile;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.gpunvme.cuda.CudaContext;
import io.gpunvme.cuda.CudaFunctionMissingException;
import io.gpunvme.cuda.CudaStream;
import io.gpunvme.cuda.DeviceMemory;
import io.gpunvme.cuda.FakeDriver;
import io.gpunvme.ffi.PosixException;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Queue;
import java.util.Random;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class CuFileTest {
  private static final int FILE_BYTES = 100_000;

  private final FakeDriver gpu = FakeDriver.fresh();
  private final FakeCuFile fake = FakeCuFile.fresh().watching(gpu);
  private final CuFile library = fake.load();
  private final CudaContext context = gpu.openContext();
  private final byte[] content = new byte[FILE_BYTES];
  private final Queue<Throwable> unexpected = new ConcurrentLinkedQueue<>();
  private Path file;

  @BeforeEach
  void write(@TempDir Path folder) throws IOException {
    new Random(7).nextBytes(content);
    file = Files.write(folder.resolve("data"), content);
  }

  @AfterEach
  void close() {
    context.close();
    gpu.assertClean("the test", 1); // The library's own, which stays.
    fake.assertClean();
  }

  private static byte[] bytes(DeviceMemory memory) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment copy = arena.allocate(memory.size());
      memory.copyTo(0, copy);
      return copy.toArray(JAVA_BYTE);
    }
  }

  @Test
  void readsAndWritesReachTheirPlaces() throws IOException {
    DeviceMemory memory = context.allocate(5000);
    memory.fill((byte) 9);
    try (CuFileDriver driver = library.openDriver(context);
        CuFileHandle handle = driver.open(file.toString(), true, false)) {
      assertThat(handle.size()).isEqualTo(FILE_BYTES);
      assertThat(handle.read(memory, new CuFileRange(777, 13, 4000))).isEqualTo(4000);
      byte[] read = bytes(memory);
      assertThat(read[12]).isEqualTo((byte) 9);
      assertThat(Arrays.copyOfRange(read, 13, 4013))
          .isEqualTo(Arrays.copyOfRange(content, 777, 4777));
      assertThat(read[4013]).isEqualTo((byte) 9);
      assertThat(handle.write(memory, new CuFileRange(50_000, 12, 3))).isEqualTo(3);
      byte[] written = Files.readAllBytes(file);
      assertThat(written[50_000]).isEqualTo((byte) 9);
      assertThat(written[50_001]).isEqualTo(content[777]);
      assertThat(written[50_003]).isEqualTo(content[50_003]);
      assertThat(handle.read(memory, new CuFileRange(FILE_BYTES - 5, 0, 100)))
          .as("at the end of the file")
          .isEqualTo(5);
      assertThat(handle.read(memory, new CuFileRange(FILE_BYTES, 0, 100))).isZero();
    }
  }

  @Test
  void hostMemoryWorksToo() throws IOException {
    try (CuFileDriver driver = library.openDriver(context);
        CuFileHandle handle = driver.open(file.toString(), true, false);
        Arena arena = Arena.ofConfined()) {
      MemorySegment memory = arena.allocate(100);
      assertThat(handle.read(memory, new CuFileRange(10, 50, 50))).isEqualTo(50);
      assertThat(memory.get(JAVA_BYTE, 50)).isEqualTo(content[10]);
      assertThat(handle.write(memory, new CuFileRange(0, 50, 50))).isEqualTo(50);
      assertThat(Files.readAllBytes(file)[49]).isEqualTo(content[59]);
      assertThatThrownBy(() -> handle.read(memory.asReadOnly(), new CuFileRange(0, 0, 1)))
          .isInstanceOf(IllegalArgumentException.class);
    }
  }

  @Test
  void rangesOutsideOfTheMemoryAreRefused() {
    DeviceMemory memory = context.allocate(100);
    try (CuFileDriver driver = library.openDriver(context);
        CuFileHandle handle = driver.open(file.toString(), false, false)) {
      assertThatThrownBy(() -> handle.read(memory, new CuFileRange(0, 1, 100)))
          .isInstanceOf(IndexOutOfBoundsException.class);
      assertThatThrownBy(() -> handle.read(memory, new CuFileRange(0, -1, 1)))
          .isInstanceOf(IndexOutOfBoundsException.class);
      assertThatThrownBy(() -> new CuFileRange(-1, 0, 1))
          .isInstanceOf(IllegalArgumentException.class);
      assertThatThrownBy(() -> new CuFileRange(Long.MAX_VALUE, 0, 1))
          .isInstanceOf(IllegalArgumentException.class);
    }
    assertThat(fake.names()).doesNotContain("cuFileRead");
  }

  @Test
  void theDriverIsOpenedByTheFirstAndClosedWithTheLast() {
    CuFileDriver one = library.openDriver(context);
    CuFileDriver two = library.openDriver(context);
    one.close();
    one.close();
    assertThat(fake.names()).containsExactly("cuFileDriverOpen");
    two.close();
    assertThat(fake.names()).containsExactly("cuFileDriverOpen", "cuFileDriverClose");
    assertThatIllegalStateException().isThrownBy(two::properties);
  }

  /** libcufile 1.15 does not survive another primary context of a device that it knows. */
  @Test
  void thePrimaryContextOfADeviceStaysOnce() {
    library.openDriver(context).close();
    context.close();
    for (int i = 0; i < 3; i++) {
      try (CudaContext next = gpu.openContext()) {
        library.openDriver(next).close();
      }
    }
    assertThat(gpu.calls("cuDevicePrimaryCtxRetain")).isEqualTo(5);
    assertThat(gpu.calls("cuDevicePrimaryCtxRelease_v2")).isEqualTo(4);
  }

  @Test
  void eachDeviceKeepsItsOwnAlsoIfTheDriverIsOpenAlready() {
    FakeDriver two = FakeDriver.fresh("-DFAKE_DEVICES=2");
    try (CuFileDriver _ = library.openDriver(context);
        CudaContext other = two.load().device(1).openPrimary();
        CuFileDriver _ = library.openDriver(other)) {
      assertThat(two.calls("cuDevicePrimaryCtxRetain")).isEqualTo(2);
      assertThat(two.last("cuDevicePrimaryCtxRetain")).isEqualTo("41");
    }
    two.assertClean("its own", 1);
  }

  @Test
  void aDriverThatCannotBeClosedIsSaidOnceAndDone() {
    CuFileDriver driver = library.openDriver(context);
    fake.fail("cuFileDriverClose", 5006);
    assertThatThrownBy(driver::close)
        .isInstanceOf(CuFileException.class)
        .hasMessageContaining("CU_FILE_DRIVER_CLOSING (5006");
    driver.close();
  }

  @Test
  void propertiesAreRead() {
    try (CuFileDriver driver = library.openDriver(context)) {
      CuFileProperties properties = driver.properties();
      assertThat(properties)
          .isEqualTo(
              new CuFileProperties(2, 26, 4, 16384, 16, 2, 15, 131072, 1024, 33554432, 128, 5));
    }
  }

  // ---- lifetimes

  @Test
  void memoryIsDeregisteredBeforeItIsFreed() {
    CuFileDriver driver = library.openDriver(context);
    DeviceMemory memory = context.allocate(8192, 4096);
    driver.register(memory);
    assertThat(driver.open()).isEqualTo(1);
    memory.close();
    assertThat(fake.names()).endsWith("cuFileBufRegister", "cuFileBufDeregister");
    driver.close();
  }

  @Test
  void memoryThatCannotBeDeregisteredIsNotFreed() {
    CuFileDriver driver = library.openDriver(context);
    DeviceMemory memory = context.allocate(8192);
    driver.register(memory);
    fake.fail("cuFileBufDeregister", 5010);
    assertThatThrownBy(memory::close)
        .isInstanceOf(CuFileException.class)
        .hasMessageContaining("cuFileBufDeregister 0x")
        .hasMessageContaining("CU_FILE_NVFS_DRIVER_ERROR");
    assertThat(gpu.calls("cuMemFree_v2")).isZero();
    memory.close();
    assertThat(gpu.calls("cuMemFree_v2")).isEqualTo(1);
  }

  @Test
  void closingTheContextClosesEverythingInOrder() {
    CuFileDriver driver = library.openDriver(context);
    CuFileHandle handle = driver.open(file.toString(), false, false);
    DeviceMemory memory = context.allocate(4096);
    CuFileBuffer buffer = driver.register(memory);
    CudaStream stream = context.stream();
    CuFileStream registered = driver.register(stream);
    driver.batch(2);
    context.close();
    assertThat(fake.names())
        .endsWith(
            "cuFileBatchIODestroy",
            "cuFileStreamDeregister",
            "cuFileBufDeregister",
            "cuFileHandleDeregister",
            "cuFileDriverClose");
    buffer.close();
    registered.close();
    handle.close();
    driver.close();
    assertThatIllegalStateException()
        .isThrownBy(() -> handle.read(memory, new CuFileRange(0, 0, 1)));
  }

  @Test
  void closingTheDriverClosesWhatIsOpenInIt() {
    DeviceMemory memory = context.allocate(4096);
    CuFileDriver driver = library.openDriver(context);
    CuFileHandle handle = driver.open(file.toString(), false, false);
    driver.register(memory);
    driver.close();
    fake.assertClean();
    handle.close();
    assertThat(fake.names().stream().filter("cuFileHandleDeregister"::equals)).hasSize(1);
    assertThatIllegalStateException().isThrownBy(() -> driver.register(memory));
  }

  @Test
  void aRegistrationAgainWorksAfterTheFirst() {
    DeviceMemory memory = context.allocate(4096);
    try (CuFileDriver driver = library.openDriver(context);
        CuFileHandle handle = driver.open(file.toString(), false, false)) {
      CuFileBuffer buffer = driver.register(memory);
      assertThatThrownBy(() -> driver.register(memory))
          .isInstanceOf(CuFileException.class)
          .hasMessageContaining("5023");
      assertThat(handle.read(memory, new CuFileRange(0, 0, 4096))).isEqualTo(4096);
      buffer.close();
      assertThat(handle.read(memory, new CuFileRange(0, 0, 4096))).isEqualTo(4096);
      driver.register(memory).close();
      assertThat(driver.open()).isEqualTo(1);
    }
  }

  /** Whoever comes first: cuFile lets go of the memory once, before it is freed. */
  @Test
  void memoryAndRegistrationAreClosedAtTheSameTime() throws InterruptedException {
    try (CuFileDriver driver = library.openDriver(context);
        CuFileHandle handle = driver.open(file.toString(), false, false)) {
      for (int i = 0; i < 200; i++) {
        DeviceMemory memory = context.allocate(4096);
        CuFileBuffer buffer = driver.register(memory);
        CyclicBarrier start = new CyclicBarrier(3);
        List<Thread> threads =
            List.of(
                racing(start, buffer::close),
                racing(start, memory::close),
                racing(start, () -> handle.read(memory, new CuFileRange(0, 0, 4096))));
        for (Thread thread : threads) {
          thread.join();
        }
        buffer.close();
        memory.close();
      }
      assertThat(driver.open()).as("only the file is left").isEqualTo(1);
    }
    assertThat(unexpected).isEmpty();
  }

  private Thread racing(CyclicBarrier start, Runnable work) {
    return Thread.ofPlatform()
        .start(
            () -> {
              try {
                start.await();
                work.run();
              } catch (IllegalStateException e) {
                // Closed, or in use: a good answer for all three.
              } catch (Throwable t) {
                unexpected.add(t);
              }
            });
  }

  // ---- failures

  @Test
  void errorsHaveNameMeaningAndNextStep() {
    CuFileDriver driver = library.openDriver(context);
    fake.fail("cuFileHandleRegister", 5027);
    CuFileException e =
        catchThrowableOfType(
            CuFileException.class, () -> driver.open(file.toString(), false, false));
    assertThat(e)
        .hasMessageStartingWith(
            "cuFileHandleRegister "
                + file
                + ": CU_FILE_HANDLE_NOT_REGISTERED (5027, the file is not registered); ")
        .hasMessageContaining("udev");
    assertThat(e.error()).contains(CuFileError.HANDLE_NOT_REGISTERED);
    assertThat(driver.open()).isZero();
    fake.fail("cuFileBufRegister", 5011);
    DeviceMemory memory = context.allocate(64);
    assertThatThrownBy(() -> driver.register(memory))
        .isInstanceOfSatisfying(CuFileException.class, c -> assertThat(c.cudaResult()).isEqualTo(2))
        .hasMessageContaining("CUresult 2");
    fake.fail("cuFileBufRegister", 5999);
    assertThatThrownBy(() -> driver.register(memory)).hasMessageContaining("cuFile error (5999");
  }

  @Test
  void transfersFailByCodeAndByErrno() {
    DeviceMemory memory = context.allocate(4096);
    try (CuFileDriver driver = library.openDriver(context);
        CuFileHandle handle = driver.open(file.toString(), true, false)) {
      CuFileRange range = new CuFileRange(4096, 0, 4096);
      fake.fail("cuFileRead", 5);
      assertThatThrownBy(() -> handle.read(memory, range))
          .isInstanceOf(PosixException.class)
          .hasMessage("cuFileRead " + file + ", 4096 bytes at 4096: EIO (Input/output error)");
      for (CuFileError error : CuFileError.values()) {
        fake.fail("cuFileWrite", error.code());
        assertThatThrownBy(() -> handle.write(memory, range))
            .isInstanceOfSatisfying(
                CuFileException.class, e -> assertThat(e.error()).contains(error))
            .hasMessageContaining(error.symbol());
      }
    }
  }

  @Test
  void aFileThatIsNotThereIsAPosixError() {
    try (CuFileDriver driver = library.openDriver(context)) {
      assertThatThrownBy(() -> driver.open(file + ".none", false, false))
          .isInstanceOf(PosixException.class)
          .hasMessageContaining("ENOENT");
    }
  }

  @Test
  void aDriverThatDoesNotOpenLeavesNothing() {
    fake.fail("cuFileDriverOpen", 5007);
    assertThatThrownBy(() -> library.openDriver(context))
        .isInstanceOf(CuFileException.class)
        .hasMessageContaining("PLATFORM_NOT_SUPPORTED");
    library.openDriver(context).close();
  }

  // ---- streams

  @Test
  void transfersInStreamsKeepWhatTheyNeed() {
    DeviceMemory memory = context.allocate(8192);
    CudaStream stream = context.stream();
    CuFileDriver driver = library.openDriver(context);
    CuFileHandle handle = driver.open(file.toString(), true, false);
    driver.register(stream, CuFileStream.Fixed.BYTES, CuFileStream.Fixed.PAGE_ALIGNED);
    assertThat(fake.calls()).endsWith("cuFileStreamRegister 1 12");
    CuFileTransfer transfer = handle.readAsync(memory, new CuFileRange(3, 5, 100), stream);
    assertThat(transfer.await()).isEqualTo(100);
    assertThat(transfer.isDone()).isTrue();
    assertThat(bytes(memory)[5]).isEqualTo(content[3]);
    assertThatIllegalStateException().isThrownBy(memory::close);
    assertThatIllegalStateException().isThrownBy(handle::close);
    assertThatIllegalStateException().isThrownBy(stream::close);
    transfer.close();
    handle.writeAsync(memory, new CuFileRange(0, 0, 1), stream).close();
    fake.fail("cuFileRead", 5044);
    CuFileTransfer failing = handle.readAsync(memory, new CuFileRange(0, 0, 1), stream);
    assertThatThrownBy(failing::await).hasMessageContaining("CU_FILE_IO_ERROR");
    fake.fail("cuFileRead", 5);
    CuFileTransfer broken = handle.readAsync(memory, new CuFileRange(0, 0, 1), stream);
    assertThatThrownBy(broken::await).hasMessageContaining("EIO");
    fake.fail("cuFileReadAsync", 5038);
    assertThatThrownBy(() -> handle.readAsync(memory, new CuFileRange(0, 0, 1), stream))
        .hasMessageContaining("CU_FILE_ASYNC_NOT_SUPPORTED");
    driver.close();
    memory.close();
    stream.close();
  }

  // ---- batches

  @Test
  void batchesEndInAnyOrder() {
    DeviceMemory memory = context.allocate(8192);
    try (CuFileDriver driver = library.openDriver(context);
        CuFileHandle handle = driver.open(file.toString(), false, false);
        CuFileBatch batch = driver.batch(4)) {
      CuFileBuffer buffer = driver.register(memory);
      batch.submit(
          List.of(
              new CuFileRequest(false, handle, memory, new CuFileRange(100, 0, 10), 70),
              new CuFileRequest(false, handle, memory, new CuFileRange(200, 10, 10), 71),
              new CuFileRequest(
                  false, handle, memory, new CuFileRange(FILE_BYTES - 4, 20, 10), 72)));
      assertThatIllegalStateException().isThrownBy(memory::close);
      assertThatIllegalStateException().isThrownBy(buffer::close);
      assertThatIllegalStateException().isThrownBy(handle::close);
      assertThatIllegalStateException().isThrownBy(driver::close);
      assertThatIllegalStateException().isThrownBy(() -> batch.submit(List.of()));
      assertThat(batch.await(1, 1500, TimeUnit.MILLISECONDS))
          .containsExactly(
              new CuFileCompletion(72, CuFileCompletion.Status.COMPLETE, 4),
              new CuFileCompletion(71, CuFileCompletion.Status.COMPLETE, 10));
      assertThat(fake.calls()).contains("cuFileBatchIOGetStatus 1 3 1.500000000");
      assertThat(batch.outstanding()).isEqualTo(1);
      fake.fail("cuFileRead", 5044);
      assertThat(batch.await(9, 1, TimeUnit.SECONDS))
          .containsExactly(new CuFileCompletion(70, CuFileCompletion.Status.FAILED, -5044));
      assertThat(batch.await(1, 1, TimeUnit.SECONDS)).isEmpty();
      assertThat(bytes(memory)[10]).isEqualTo(content[200]);
      memory.close();
    }
  }

  @Test
  void aBatchIsCancelledAndDrainedAtItsClose() {
    DeviceMemory memory = context.allocate(8192);
    try (CuFileDriver driver = library.openDriver(context);
        CuFileHandle handle = driver.open(file.toString(), false, false)) {
      CuFileRequest one = new CuFileRequest(false, handle, memory, new CuFileRange(0, 0, 10), 1);
      CuFileBatch batch = driver.batch(2);
      batch.submit(List.of(one, one));
      batch.cancel();
      assertThat(batch.await(1, 1, TimeUnit.SECONDS))
          .extracting(CuFileCompletion::status)
          .containsOnly(CuFileCompletion.Status.CANCELED);
      fake.fail("cuFileBatchIOSubmit", 5037);
      assertThatThrownBy(() -> batch.submit(List.of(one))).hasMessageContaining("BATCH_FULL");
      assertThatThrownBy(() -> batch.submit(List.of(one, one, one)))
          .isInstanceOf(IllegalArgumentException.class);
      batch.submit(List.of(one, one));
      batch.close();
      assertThat(fake.names())
          .endsWith("cuFileBatchIOCancel", "cuFileBatchIOGetStatus", "cuFileBatchIODestroy");
      memory.close();
    }
  }

  // ---- parameters, statistics, versions

  @Test
  void parametersAreSetWhileTheDriverIsClosed() {
    library.set(CuFileSizeParameter.PROPERTIES_IO_BATCHSIZE, 64);
    library.set(CuFileSwitch.PROPERTIES_ALLOW_COMPAT_MODE, true);
    library.set(CuFileTextParameter.LOG_DIR, "/tmp/logs");
    assertThat(fake.calls())
        .containsExactly(
            "cuFileSetParameterSizeT 9 64",
            "cuFileSetParameterBool 1 1",
            "cuFileSetParameterString 2 /tmp/logs");
    assertThat(library.get(CuFileSizeParameter.PROPERTIES_IO_BATCHSIZE)).isEqualTo(64);
    assertThat(library.get(CuFileSwitch.PROPERTIES_ALLOW_COMPAT_MODE)).isTrue();
    assertThat(library.get(CuFileSwitch.FORCE_COMPAT_MODE)).isFalse();
    assertThat(library.get(CuFileTextParameter.LOG_DIR)).isEqualTo("/tmp/logs");
    assertThat(library.limits(CuFileSizeParameter.PROFILE_STATS))
        .isEqualTo(new CuFile.Limits(1, 100));
    try (CuFileDriver _ = library.openDriver(context)) {
      assertThatThrownBy(() -> library.set(CuFileSizeParameter.PROFILE_STATS, 3))
          .hasMessageContaining("CU_FILE_DRIVER_ALREADY_OPEN");
    }
  }

  @Test
  void statisticsSayWhichWayBytesTook() {
    DeviceMemory memory = context.allocate(8192);
    assertThat(library.hasStatistics()).isTrue();
    try (CuFileDriver driver = library.openDriver(context);
        CuFileHandle handle = driver.open(file.toString(), true, false)) {
      library.startStatistics(3);
      assertThat(library.statisticsLevel()).isEqualTo(3);
      handle.read(memory, new CuFileRange(0, 0, 4096));
      handle.read(memory, new CuFileRange(1, 0, 4096));
      handle.write(memory, new CuFileRange(0, 0, 100));
      CuFileStatistics statistics = library.statistics(3);
      assertThat(statistics.reads()).isEqualTo(new CuFileStatistics.Calls(2, 0, 8192, 0));
      assertThat(statistics.writes().bytes()).isEqualTo(100);
      assertThat(statistics.batches().posixEnqueued()).isEqualTo(77);
      assertThat(statistics.readSizes().get(3)).isEqualTo(2);
      assertThat(statistics.writeSizes().get(31)).isEqualTo(1);
      CuFileStatistics.Gpu one = statistics.gpus().getFirst();
      assertThat(one.uuid()).startsWith("0001020304050607");
      assertThat(one.reads()).isEqualTo(new CuFileStatistics.Routes(8192, 2, 0, 0, 2, 2, 0, 0));
      assertThat(one.writes().posix()).isEqualTo(1);
      assertThat(one.registrations()).isEqualTo(5);
      assertThat(one.registeredBytes()).isEqualTo(4096);
      assertThat(statistics.allRoutes().posix()).isEqualTo(3);
      assertThat(library.statistics(1).gpus()).isEmpty();
    }
    assertThatThrownBy(() -> library.startStatistics(4))
        .isInstanceOf(IllegalArgumentException.class);
  }

  @Test
  void olderLibrariesMissOnlyWhatIsCalled() {
    FakeCuFile old = FakeCuFile.ofVersion(1130).watching(gpu);
    CuFile library113 = old.load();
    assertThat(library113.version()).isEqualTo(new CuFileVersion(1, 13));
    assertThat(library113.version().atLeast(1, 7)).isTrue();
    assertThat(library113.version().atLeast(1, 14)).isFalse();
    assertThat(library113.hasStatistics()).isFalse();
    assertThatThrownBy(() -> library113.startStatistics(1))
        .isInstanceOf(CudaFunctionMissingException.class)
        .hasMessageContaining("cuFileSetStatsLevel")
        .hasMessageContaining("cuFile 1.13 (");
    assertThatThrownBy(() -> library113.get(CuFileSwitch.FORCE_COMPAT_MODE))
        .isInstanceOf(CudaFunctionMissingException.class);
    DeviceMemory memory = context.allocate(64);
    try (CuFileDriver driver = library113.openDriver(context);
        CuFileHandle handle = driver.open(file.toString(), false, false)) {
      driver.register(memory);
      assertThat(handle.read(memory, new CuFileRange(0, 0, 64))).isEqualTo(64);
    }
    old.assertClean();
  }
}
