package io.gpunvme.cuda.cufile;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.cuda.CudaContext;
import io.gpunvme.cuda.CudaNotFoundException;
import io.gpunvme.cuda.CudaStream;
import io.gpunvme.cuda.DeviceMemory;
import io.gpunvme.cuda.Gpu;
import io.gpunvme.cuda.PinnedMemory;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestReporter;
import org.junit.jupiter.api.io.TempDir;

/** The real library with a real GPU and a file of the temporary folder's file system. */
@Tag("gpu")
final class CuFileGpuTest {
  private static final int MIB = 1 << 20;
  private static final int FILE_BYTES = 8 * MIB + 1234;

  private final byte[] content = new byte[FILE_BYTES];
  private Path file;
  private CudaContext context;
  private CuFile library;
  private CuFileDriver driver;
  private CuFileHandle handle;

  @BeforeEach
  void open(@TempDir Path folder) throws IOException {
    new Random(11).nextBytes(content);
    file = Files.write(folder.resolve("data"), content);
    context = Gpu.device().openPrimary();
    try {
      library = CuFile.load();
    } catch (CudaNotFoundException e) {
      Assumptions.abort("no cuFile: " + e.getMessage());
    }
    driver = library.openDriver(context);
    try {
      handle = driver.open(file.toString(), true, false);
    } catch (CuFileException e) {
      // The file system here, or its record in udev's database, is not what cuFile needs.
      Assumptions.abort("cuFile does not take " + file + ": " + e.getMessage());
    }
  }

  @AfterEach
  void close() {
    if (context != null) {
      context.close();
    }
  }

  private static byte[] bytes(DeviceMemory memory, int length) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment copy = arena.allocate(length);
      memory.copyTo(0, copy);
      return copy.toArray(JAVA_BYTE);
    }
  }

  private byte[] part(int offset, int length) {
    return Arrays.copyOfRange(content, offset, offset + length);
  }

  @Test
  void aFileIsRead(TestReporter reporter) {
    reporter.publishEntry("library", library.library() + ", version " + library.version());
    reporter.publishEntry("properties", driver.properties().toString());
    reporter.publishEntry("log", library.log().map(Path::toString).orElse("the user's"));
    DeviceMemory memory = context.allocate(8 * MIB, 4096);
    assertThat(handle.size()).isEqualTo(FILE_BYTES);
    assertThat(handle.read(memory, new CuFileRange(0, 0, 8 * MIB))).isEqualTo(8 * MIB);
    assertThat(bytes(memory, 8 * MIB)).isEqualTo(part(0, 8 * MIB));
  }

  @Test
  void unalignedRangesAndTheEndAreRead() {
    DeviceMemory memory = context.allocate(2 * MIB, 4096);
    for (boolean registered : new boolean[] {false, true}) {
      memory.fill((byte) 0);
      if (registered) {
        driver.register(memory);
      }
      assertThat(handle.read(memory, new CuFileRange(777, 13, MIB + 5))).isEqualTo(MIB + 5);
      byte[] seen = bytes(memory, 2 * MIB);
      assertThat(Arrays.copyOfRange(seen, 13, 13 + MIB + 5)).isEqualTo(part(777, MIB + 5));
      assertThat(seen[12]).isZero();
      assertThat(seen[13 + MIB + 5]).isZero();
      assertThat(handle.read(memory, new CuFileRange(8 * MIB, 0, 4096)))
          .as("at the end of the file")
          .isEqualTo(1234);
    }
  }

  @Test
  void writesReachTheFile() throws IOException {
    DeviceMemory memory = context.allocate(MIB, 4096);
    memory.fill((byte) 0x5A);
    assertThat(handle.write(memory, new CuFileRange(MIB, 0, MIB))).isEqualTo(MIB);
    assertThat(handle.write(memory, new CuFileRange(100, 7, 33))).isEqualTo(33);
    driver.close();
    Arrays.fill(content, MIB, 2 * MIB, (byte) 0x5A);
    Arrays.fill(content, 100, 133, (byte) 0x5A);
    assertThat(Arrays.mismatch(Files.readAllBytes(file), content)).isEqualTo(-1);
  }

  @Test
  void hostMemoryIsReadInto() {
    PinnedMemory memory = context.allocatePinned(MIB);
    assertThat(handle.read(memory.segment(), new CuFileRange(4096, 0, MIB))).isEqualTo(MIB);
    assertThat(memory.segment().toArray(JAVA_BYTE)).isEqualTo(part(4096, MIB));
  }

  @Test
  void registeredMemoryCanBeFreedAtOnce() {
    DeviceMemory memory = context.allocate(4 * MIB, 65536);
    driver.register(memory);
    assertThat(handle.read(memory, new CuFileRange(0, MIB, MIB))).isEqualTo(MIB);
    memory.close();
    assertThat(driver.open()).as("only the file is left").isEqualTo(1);
  }

  @Test
  void batchesBringTheBytes() {
    int each = 65_536;
    DeviceMemory memory = context.allocate(16L * each, 65_536);
    driver.register(memory);
    try (CuFileBatch batch = driver.batch(16)) {
      List<CuFileRequest> requests = new ArrayList<>();
      for (int i = 0; i < 16; i++) {
        CuFileRange range = new CuFileRange((15L - i) * each, (long) i * each, each);
        requests.add(new CuFileRequest(false, handle, memory, range, i));
      }
      batch.submit(requests);
      List<CuFileCompletion> ended = new ArrayList<>();
      for (int i = 0; i < 60 && batch.outstanding() > 0; i++) {
        ended.addAll(batch.await(1, 1, TimeUnit.SECONDS));
      }
      assertThat(ended).hasSize(16);
      assertThat(ended)
          .allSatisfy(
              e -> {
                assertThat(e.status()).isEqualTo(CuFileCompletion.Status.COMPLETE);
                assertThat(e.result()).isEqualTo(each);
              });
      assertThat(ended.stream().map(CuFileCompletion::cookie).distinct()).hasSize(16);
    }
    byte[] seen = bytes(memory, 16 * each);
    for (int i = 0; i < 16; i++) {
      assertThat(Arrays.copyOfRange(seen, i * each, (i + 1) * each))
          .isEqualTo(part((15 - i) * each, each));
    }
  }

  @Test
  void aStreamOrdersReadsWithItsOtherWork() {
    DeviceMemory memory = context.allocate(MIB, 4096);
    DeviceMemory copy = context.allocate(MIB, 4096);
    CudaStream stream = context.stream();
    try (CuFileStream _ = driver.register(stream)) {
      stream.fillAsync(memory.address(), (byte) 1, MIB);
      CuFileTransfer transfer;
      try {
        transfer = handle.readAsync(memory, new CuFileRange(4096, 0, MIB / 2), stream);
      } catch (CuFileException e) {
        Assumptions.assumeFalse(
            e.error().equals(Optional.of(CuFileError.ASYNC_NOT_SUPPORTED)), e::getMessage);
        throw e;
      }
      stream.copyOnDeviceAsync(copy.address(), memory.address(), MIB);
      assertThat(transfer.await()).isEqualTo(MIB / 2);
      stream.synchronize();
      transfer.close();
    }
    byte[] seen = bytes(copy, MIB);
    assertThat(Arrays.copyOf(seen, MIB / 2)).isEqualTo(part(4096, MIB / 2));
    assertThat(seen[MIB / 2]).isEqualTo((byte) 1);
  }

  @Test
  void statisticsSayWhichWayTheBytesTook(TestReporter reporter) {
    Assumptions.assumeTrue(library.hasStatistics(), "cuFile before 1.15 has no statistics");
    library.startStatistics(3);
    CuFileStatistics.Routes before = library.statistics(3).allRoutes();
    DeviceMemory memory = context.allocate(MIB, 4096);
    for (int i = 0; i < 8; i++) {
      handle.read(memory, new CuFileRange((long) i * MIB, 0, MIB));
    }
    CuFileStatistics after = library.statistics(3);
    CuFileStatistics.Routes routes = after.allRoutes().minus(before);
    reporter.publishEntry("routes", routes.toString());
    reporter.publishEntry("all", after.toString());
    assertThat(after.reads().ok()).isGreaterThanOrEqualTo(8);
    assertThat(routes.posix() + routes.p2p() + routes.nvfs())
        .as("every transfer took some way: %s", routes)
        .isPositive();
  }

  @Test
  void parametersAreAnswered(TestReporter reporter) {
    Assumptions.assumeTrue(library.version().atLeast(1, 14), "parameters are since 1.14");
    for (CuFileSizeParameter parameter : CuFileSizeParameter.values()) {
      reporter.publishEntry(parameter.name(), "" + library.get(parameter));
    }
    for (CuFileSwitch parameter : CuFileSwitch.values()) {
      reporter.publishEntry(parameter.name(), "" + library.get(parameter));
    }
    assertThat(library.get(CuFileSizeParameter.PROPERTIES_MAX_DIRECT_IO_SIZE_KB)).isPositive();
  }

  @Test
  void noLogIsLeftInTheWorkingDirectory() {
    Path log = Path.of("cufile.log").toAbsolutePath();
    assertThat(log).doesNotExist();
  }
}
