package io.gpunvme.tools.demo;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.base.ByteRange;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.device.DeviceAddress;
import io.gpunvme.gpu.transfer.InitiatorKind;
import io.gpunvme.gpu.transfer.InitiatorOptions;
import io.gpunvme.nvme.NvmeException;
import io.gpunvme.nvme.driver.ControllerOptions;
import io.gpunvme.sim.SimConfig;
import io.gpunvme.sim.SimulatedController;
import io.gpunvme.sim.serve.VfioUserServer;
import io.gpunvme.storage.StorageAddress;
import io.gpunvme.testing.Images;
import io.gpunvme.tools.ssd.NotRestoredException;
import io.gpunvme.tools.ssd.Ssds;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Random;
import java.util.function.Consumer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The demo on an SSD that it has not made: another process serves it, and looks at its bytes. */
@Timeout(120)
class SomebodysSsdTest {
  private static final int SIZE = 16 << 20;
  private static final ByteRange RANGE = new ByteRange(1 << 20, 4 << 20);

  @TempDir Path folder;

  private final SimulatedController ssd =
      SimulatedController.create(
          SimConfig.parse("size=16MiB,mdts=64KiB,latency=0,workers=2,seed=7"));
  private VfioUserServer server;
  private byte[] before;

  @BeforeEach
  void fill() throws IOException {
    server = VfioUserServer.start(ssd, folder.resolve("ssd"));
    before = new byte[SIZE];
    new Random(1).nextBytes(before);
    MemorySegment.copy(before, 0, medium(), ValueLayout.JAVA_BYTE, 0, SIZE);
  }

  @AfterEach
  void nothingHasChanged() throws IOException {
    server.close();
    try (ssd) {
      byte[] after = medium().toArray(ValueLayout.JAVA_BYTE);
      assertThat(Arrays.mismatch(before, after)).as("first byte that differs").isEqualTo(-1);
    }
  }

  private MemorySegment medium() {
    return ssd.mediaMemory(1).orElseThrow();
  }

  private DeviceAddress address() {
    return DeviceAddress.parse("vfio-user:" + server.socket());
  }

  private static InitiatorOptions cpu() {
    return InitiatorOptions.defaults().with(InitiatorKind.CPU, null);
  }

  private DemoOptions borrowing() throws IOException {
    return DemoOptions.in(Files.createDirectories(folder.resolve("work")))
        .withSample(3_000_000)
        .withInitiator(cpu());
  }

  private DemoReport run(DemoOptions options, DemoListener listener) throws IOException {
    return run(address().toString(), RANGE, options, listener);
  }

  private static DemoReport run(
      String where, ByteRange range, DemoOptions options, DemoListener listener)
      throws IOException {
    try (Ssds ssds = Ssds.open(where, options.controller(), "", 1)) {
      return Demo.run(ssds, range, options, listener);
    }
  }

  /** Does something when a phase begins, and cancels it if that is the one named. */
  private static DemoListener at(DemoPhase phase, boolean cancel, Runnable then) {
    return new DemoListener() {
      private volatile boolean there;

      @Override
      public void phase(DemoPhase now, long bytes) {
        if (now == phase && !there) {
          then.run();
          there = true;
        }
      }

      @Override
      public void moved(long bytes) {}

      @Override
      public boolean isCancelled() {
        return cancel && there;
      }
    };
  }

  // ---- writing

  @Test
  void whatWasThereIsPutBack() throws IOException {
    DemoReport report = run(borrowing(), DemoListener.NONE);
    assertThat(report.verified()).isTrue();
    assertThat(report.range()).isEqualTo(RANGE);
    assertThat(report.bytes()).isEqualTo(3_000_000);
    assertThat(report.getByCpu()).isEmpty();
  }

  @ParameterizedTest
  @CsvSource({"PUT", "GET"})
  void alsoIfItIsCancelled(DemoPhase phase) throws IOException {
    DemoOptions options = borrowing();
    assertThatThrownBy(() -> run(options, at(phase, true, () -> {})))
        .isInstanceOf(NvmeException.class)
        .hasMessageContaining("cancelled");
  }

  @Test
  void alsoIfOtherDataArrives() throws IOException {
    DemoReport report =
        run(
            borrowing(),
            at(DemoPhase.GET, false, () -> ssd.faults().add("corrupt on read nth=3 count=1")));
    assertThat(report.verified()).isFalse();
  }

  @Test
  void alsoIfTheSsdRefusesAWrite() throws IOException {
    DemoOptions options = borrowing();
    assertThatThrownBy(
            () ->
                run(
                    options,
                    at(
                        DemoPhase.PUT,
                        false,
                        () ->
                            ssd.faults()
                                .add("status=media/write-fault dnr on write nth=9 count=1"))))
        .isInstanceOf(NvmeException.class);
  }

  @Test
  void ifItCannotBePutBackAFileHasIt() throws IOException {
    DemoOptions options = borrowing();
    Consumer<String> fault = ssd.faults()::add;
    assertThatExceptionOfType(NotRestoredException.class)
        .isThrownBy(
            () ->
                run(
                    options,
                    at(
                        DemoPhase.RESTORE,
                        false,
                        () -> fault.accept("status=media/write-fault dnr on write"))))
        .withMessageContaining("LBA 2048")
        .withMessageContaining("put-back.sh puts it back")
        .satisfies(e -> putBack(Files.readAllBytes(e.copy())));
  }

  @Test
  void thatIsSaidAlsoIfTheDemoHadFailedBefore() throws IOException {
    DemoOptions options = borrowing();
    DemoListener listener =
        at(
            DemoPhase.PUT,
            false,
            () -> ssd.faults().add("status=media/write-fault dnr on write after=20"));
    assertThatExceptionOfType(NotRestoredException.class)
        .isThrownBy(() -> run(options, listener))
        .satisfies(e -> assertThat(e.getSuppressed()).hasSize(1))
        .satisfies(e -> putBack(Files.readAllBytes(e.copy())));
  }

  @Test
  void aWriteProtectedNamespaceIsLeftAlone() throws IOException {
    Path image = Files.write(folder.resolve("protected.img"), before);
    DemoOptions options = borrowing();
    assertThatThrownBy(
            () -> run("sim:readonly=on,file=" + image, RANGE, options, DemoListener.NONE))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("write-protected");
  }

  private void putBack(byte[] copy) {
    int at = (int) RANGE.offset();
    assertThat(copy).isEqualTo(Arrays.copyOfRange(before, at, at + copy.length));
    MemorySegment.copy(copy, 0, medium(), ValueLayout.JAVA_BYTE, at, copy.length);
  }

  @ParameterizedTest
  @CsvSource({
    "100, 4194304, begin at a multiple",
    "16777216, 4194304, is not inside",
    "0, 1000000, does not fit",
  })
  void whatCannotBeIsRefused(long offset, long bytes, String why) throws IOException {
    DemoOptions options = borrowing();
    ByteRange range = new ByteRange(offset, bytes);
    assertThatThrownBy(() -> run(address().toString(), range, options, DemoListener.NONE))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining(why);
  }

  @Test
  void nothingIsWrittenWhereNobodySaid() {
    DemoOptions options = DemoOptions.in(folder).withSample(1 << 20).withDevice(address(), "");
    assertThatThrownBy(() -> Demo.run(options, DemoListener.NONE))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("--write")
        .hasMessageContaining("--read");
    assertThat(folder.resolve("sample.safetensors")).doesNotExist();
  }

  @Test
  void setsPartitionsAndFilesHaveTheirsBack() throws IOException {
    Path data = Files.createDirectory(folder.resolve("source")).resolve("data");
    Files.write(data, Arrays.copyOf(before, 3_000_300));
    Images.ext4(folder.resolve("ext4"), "8M", data.getParent());
    Path other = Files.write(folder.resolve("other"), before);
    String file = "sim:latency=0,lba=512,file=" + folder.resolve("ext4") + ":/data";
    String set = "stripe:%s,sim:latency=0,file=%s;unit=64KiB".formatted(address(), other);
    byte[] ext4 = Files.readAllBytes(folder.resolve("ext4"));
    for (String where : new String[] {file, set}) {
      // The last block of the range is not whole in the file, and not full in the set.
      DemoOptions options = borrowing().withSample(1_951_000);
      ByteRange range = new ByteRange(1 << 20, 3_000_300 - (1 << 20));
      DemoReport report = run(where, range, options, DemoListener.NONE);
      assertThat(report.verified()).isTrue();
      assertThat(report.ssds()).isEqualTo(where.equals(set) ? 2 : 1);
      assertThat(report.put().bytes()).isEqualTo(1_951_232);
      Files.delete(report.file());
    }
    assertThat(folder.resolve("ext4")).hasBinaryContent(ext4);
    assertThat(other).hasBinaryContent(before);
  }

  @Test
  void copiesThatWouldDifferAreNotWritten() throws IOException {
    Path other = Files.write(folder.resolve("other"), before);
    String set = "replica:%s,sim:file=%s".formatted(address(), other);
    DemoOptions options = borrowing();
    for (String where : new String[] {set, set + ":/data", set + "#1"}) {
      assertThat(StorageAddress.parse(where).hasCopies()).as(where).isTrue();
    }
    assertThatThrownBy(() -> run(set, RANGE, options, DemoListener.NONE))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("name one of them");
    assertThat(other).hasBinaryContent(before);
  }

  // ---- reading

  private RangeReport read(ByteRange range, DemoListener listener) throws IOException {
    try (Ssds ssds = Ssds.open(address().toString(), ControllerOptions.defaults(), "", 1)) {
      return RangeDemo.run(ssds, range, cpu().with(2, 8, 1), listener);
    }
  }

  @Test
  void whatIsThereIsReadTwice() throws IOException {
    RangeReport report = read(new ByteRange(512, 9766 * 512), DemoListener.NONE);
    assertThat(report.verified()).isTrue();
    assertThat(report.difference()).isNull();
    assertThat(report.get().commands()).isEqualTo(report.byCpu().commands()).isEqualTo(77);
    assertThat(report.get().queuePairs()).isEqualTo(2);
    assertThat(read(null, DemoListener.NONE).bytes()).isEqualTo(SIZE);
    assertThatThrownBy(() -> read(new ByteRange(512, 1000), DemoListener.NONE))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("end at a multiple");
  }

  @Test
  void aDifferenceIsFoundAndItsPlace() throws IOException {
    RangeReport report =
        read(
            new ByteRange(1 << 20, 8 << 20),
            at(
                DemoPhase.COMPARE,
                false,
                () -> ssd.faults().add("corrupt on read lba=8200 count=1")));
    assertThat(report.verified()).isFalse();
    assertThat(report.difference())
        .isEqualTo(new RangeReport.Difference(address().toString(), 8192));
  }

  @Test
  void setsAndFilesAreReadWhereTheyLie() throws IOException {
    Path data = Files.createDirectory(folder.resolve("source")).resolve("data");
    Files.write(data, Arrays.copyOf(before, 3_000_000));
    Images.ext4(folder.resolve("ext4"), "8M", data.getParent());
    String file = "sim:latency=0,lba=512,file=" + folder.resolve("ext4") + ":/data";
    String set = "stripe:%s,sim:size=16MiB,latency=0;unit=64KiB".formatted(address());
    for (String where : new String[] {file, set}) {
      try (Ssds ssds = Ssds.open(where, ControllerOptions.defaults(), "", 1)) {
        RangeReport report = RangeDemo.run(ssds, null, cpu().with(2, 8, 1), DemoListener.NONE);
        assertThat(report.verified()).isTrue();
        assertThat(report.bytes()).isEqualTo(where.equals(set) ? 2 * SIZE : 2_999_808);
        assertThat(report.ssds()).isEqualTo(where.equals(set) ? 2 : 1);
      }
    }
  }
}
