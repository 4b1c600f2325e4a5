package io.gpunvme.tools.bench;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.gpunvme.base.ByteRange;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.queue.FakeGpu;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.gpu.transfer.InitiatorKind;
import io.gpunvme.gpu.transfer.InitiatorOptions;
import io.gpunvme.nvme.CommandAbortedException;
import io.gpunvme.nvme.NvmeException;
import io.gpunvme.nvme.driver.ControllerOptions;
import io.gpunvme.storage.BlockRun;
import io.gpunvme.testing.Images;
import io.gpunvme.tools.ssd.Ssds;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Benchmarks of SSDs that somebody else has filled. */
@Timeout(120)
class SsdBenchTest {
  private static final int BYTES = 2 << 20;

  @TempDir Path folder;

  private final Accelerator accelerator = CpuAccelerator.open();

  @AfterEach
  void close() {
    accelerator.close();
  }

  private static InitiatorOptions cpu() {
    return InitiatorOptions.defaults().with(InitiatorKind.CPU, Placement.HOST).with(2, 8, 1);
  }

  private String image(String name, int seed) throws IOException {
    byte[] bytes = new byte[BYTES];
    new Random(seed).nextBytes(bytes);
    return "sim:latency=0,file=" + Files.write(folder.resolve(name), bytes);
  }

  private static Ssds open(String address, String faults) {
    return Ssds.open(address, ControllerOptions.defaults(), faults, 1);
  }

  private static Ssds open(String address) {
    return open(address, "");
  }

  private Measurement random(Ssds ssds, int block) {
    try (SsdBench bench = SsdBench.open(ssds.blocks(null), accelerator, cpu())) {
      return bench.random(block, Repetitions.of(1));
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {512, 4096, 65536})
  void randomBlocksOfAnySize(int block) throws IOException {
    try (Ssds ssds = open(image("one", 1))) {
      Measurement m = random(ssds, block);
      assertThat(m.id())
          .isEqualTo("random.%s.cpu".formatted(block < 1024 ? block : block / 1024 + "k"));
      assertThat(m.unit()).isEqualTo("commands/s");
      assertThat(m.median()).isPositive();
      assertThat((double) m.conditions().get("gb_per_s"))
          .isBetween(m.median() * block / 1e9 * 0.999, m.median() * block / 1e9 * 1.001);
      assertThat(m.conditions())
          .containsEntry("block_bytes", block)
          .hasEntrySatisfying(
              "commands",
              n -> assertThat((long) n).isBetween(2048L, Math.max(2048, (128L << 20) / block)))
          .containsEntry("range_bytes", (long) BYTES)
          .containsEntry("checked_against", "what the CPU reads");
    }
  }

  @Test
  void streamsGoOnWhereTheLastOneEndedAndBeginAgain() throws IOException {
    try (Ssds ssds = open(image("one", 1));
        SsdBench bench = SsdBench.open(ssds.blocks(null), accelerator, cpu())) {
      Measurement m = bench.stream(Repetitions.of(3));
      assertThat(m.id()).isEqualTo("stream.512k.cpu");
      // All of it each time: it is shorter than what is read at a time.
      assertThat(m.conditions()).containsEntry("commands", 3L * BYTES / (512 << 10));
    }
  }

  @Test
  void setsAreReadAtOnce() throws IOException {
    String both = image("one", 1) + "," + image("two", 2);
    try (Ssds ssds = open("stripe:" + both + ";unit=64KiB")) {
      assertThat(ssds.blocks(new ByteRange(0, 64 << 10))).hasSize(1);
      Measurement m = random(ssds, 4096);
      assertThat(m.conditions()).containsEntry("ssds", 2);
      assertThat((long) m.conditions().get("commands")).isGreaterThanOrEqualTo(2 * 2048);
    }
    Files.copy(folder.resolve("one"), folder.resolve("copy"));
    String copies = image("one", 1) + "," + image("copy", 1);
    try (Ssds ssds = open("replica:" + copies)) {
      assertThat(random(ssds, 512).conditions()).containsEntry("range_bytes", 2L * BYTES);
    }
  }

  @Test
  void filesOnAnSsd() throws IOException {
    Path source = Files.createDirectory(folder.resolve("source"));
    byte[] content = new byte[300_000];
    new Random(5).nextBytes(content);
    Files.write(source.resolve("data"), content);
    Images.ext4(folder.resolve("ext4"), "8M", source);
    try (Ssds ssds = open("sim:lba=512,file=" + folder.resolve("ext4") + ":/data")) {
      assertThat(ssds.size()).isEqualTo(300_000);
      assertThat(ssds.blocks(null).stream().mapToLong(BlockRun::bytes).sum()).isEqualTo(299_520);
      assertThat(random(ssds, 4096).median()).isPositive();
    }
    assertThatExceptionOfType(InvalidRequestException.class)
        .isThrownBy(() -> open(source.resolve("data").toString()))
        .withMessageContaining("a file of a mounted file system");
  }

  @Test
  void wrongDataIsNoResult() throws IOException {
    try (Ssds ssds = open(image("one", 1), "corrupt on read every=500")) {
      assertThatExceptionOfType(BenchException.class)
          .isThrownBy(() -> random(ssds, 4096))
          .withMessageMatching(".*random.4k.cpu on .*: what arrived from LBA \\d+ is not.*");
    }
  }

  @Test
  void anSsdThatFailsIsNoResult() throws IOException {
    try (Ssds ssds =
        open(image("one", 1), "status=media/unrecovered-read-error dnr on read nth=1500")) {
      assertThatExceptionOfType(NvmeException.class).isThrownBy(() -> random(ssds, 4096));
    }
  }

  @Test
  void aMeasurementEndsEarlyIfItIsToldTo() throws IOException {
    AtomicInteger asked = new AtomicInteger();
    try (Ssds ssds = open(image("one", 1));
        SsdBench bench =
            SsdBench.open(
                ssds.blocks(null), accelerator, cpu(), () -> asked.incrementAndGet() > 1)) {
      assertThatExceptionOfType(CommandAbortedException.class)
          .isThrownBy(() -> bench.random(4096, Repetitions.of(1000)))
          .withMessageContaining("cancelled");
    }
  }

  @Test
  void retriesAreTold() throws IOException {
    try (Ssds ssds =
        open(image("one", 1), "status=generic/namespace-not-ready on read every=1000")) {
      assertThat((long) random(ssds, 4096).conditions().get("retries")).isPositive();
    }
  }

  @Test
  void whatDoesNotFitIsRefused() throws IOException {
    try (Ssds ssds = open(image("one", 1))) {
      assertThatExceptionOfType(InvalidRequestException.class)
          .isThrownBy(() -> random(ssds, 1000))
          .withMessageContaining("multiples of 512");
      assertThatExceptionOfType(InvalidRequestException.class)
          .isThrownBy(() -> random(ssds, 0))
          .withMessageContaining("blocks of 0 bytes");
      assertThatExceptionOfType(InvalidRequestException.class)
          .isThrownBy(() -> random(ssds, 2 << 20))
          .withMessageContaining("at most");
      assertThatExceptionOfType(InvalidRequestException.class)
          .isThrownBy(() -> ssds.blocks(new ByteRange(BYTES - 512, 1024)))
          .withMessageContaining("not inside");
      assertThatExceptionOfType(InvalidRequestException.class)
          .isThrownBy(() -> ssds.blocks(new ByteRange(1, 512)))
          .withMessageContaining("no whole block");
      List<BlockRun> few = ssds.blocks(new ByteRange(512, 4096));
      try (SsdBench bench = SsdBench.open(few, accelerator, cpu())) {
        assertThatExceptionOfType(InvalidRequestException.class)
            .isThrownBy(() -> bench.random(4096, Repetitions.of(1)))
            .withMessageContaining("no block of 4096 bytes");
      }
      InitiatorOptions onGpu = cpu().with(InitiatorKind.CPU, Placement.VRAM_DATA);
      assertThatExceptionOfType(InvalidRequestException.class)
          .isThrownBy(() -> SsdBench.open(few, accelerator, onGpu))
          .withMessageContaining("needs a GPU");
    }
    assertThatExceptionOfType(InvalidRequestException.class)
        .isThrownBy(() -> open("stripe:sim:size=1MiB,sim:size=1MiB", "corrupt on read"))
        .withMessageContaining("faults");
  }

  // ---- writing

  private static Ssds writable(String address, String faults) {
    ControllerOptions writing = ControllerOptions.builder().allowWrite(true).build();
    return Ssds.open(address, writing, faults, 1);
  }

  private Measurement mixed(Ssds ssds, ByteRange range, int block, int percent, int repetitions) {
    try (SsdBench bench = SsdBench.open(ssds.blocks(range), accelerator, cpu())) {
      return bench.random(block, new Mix(percent), Repetitions.of(repetitions));
    }
  }

  private static long count(Measurement m, String name) {
    return (long) m.conditions().get(name);
  }

  @ParameterizedTest
  @ValueSource(ints = {70, 33, 0})
  void readsAndWritesAreMixedExactly(int percent) throws IOException {
    Path image = folder.resolve("one");
    try (Ssds ssds = writable(image("one", 1), "")) {
      byte[] before = Files.readAllBytes(image);
      Measurement m = mixed(ssds, new ByteRange(1 << 20, 1 << 20), 4096, percent, 3);
      assertThat(m.id()).isEqualTo("random.4k.mix" + percent + ".cpu");
      long reads = count(m, "read_commands");
      long writes = count(m, "written_commands");
      assertThat(reads * 100).isEqualTo((reads + writes) * percent);
      assertThat(count(m, "commands")).isEqualTo(reads + writes);
      assertThat(m.conditions())
          .containsEntry("mix", percent)
          .containsEntry("checked_against", "what the CPU reads, and what was written")
          .containsKey("write_latency_p99_us");
      assertThat(m.conditions().containsKey("read_latency_p99_us")).isEqualTo(percent > 0);
      assertThat((double) m.conditions().get("reads_per_s"))
          .isEqualTo(m.median() * (percent / 100.0));
      // Only the range, of which no place is used twice in a repetition.
      byte[] after = Files.readAllBytes(image);
      assertThat(Arrays.mismatch(before, after)).isGreaterThanOrEqualTo(1 << 20);
      assertThat(reads + writes).isLessThanOrEqualTo(3 * 256);
    }
  }

  @Test
  void streamsMayWrite() throws IOException {
    Path image = folder.resolve("one");
    try (Ssds ssds = writable(image("one", 1), "");
        SsdBench bench = SsdBench.open(ssds.blocks(null), accelerator, cpu())) {
      byte[] before = Files.readAllBytes(image);
      Measurement m = bench.stream(new Mix(0), Repetitions.of(2));
      assertThat(m.id()).isEqualTo("stream.512k.mix0.cpu");
      assertThat(count(m, "written_commands")).isEqualTo(2L * BYTES / (512 << 10));
      assertThat(Files.readAllBytes(image)).isNotEqualTo(before);
      assertThatExceptionOfType(InvalidRequestException.class)
          .isThrownBy(() -> bench.stream(new Mix(70), Repetitions.of(2)))
          .withMessageContaining("100 or 0");
    }
  }

  @Test
  void whatWasNotWrittenIsNoResult() throws IOException {
    try (Ssds ssds = writable(image("one", 1), "corrupt on write every=100")) {
      assertThatExceptionOfType(BenchException.class)
          .isThrownBy(() -> mixed(ssds, null, 4096, 50, 1))
          .withMessageMatching(".*what was written to LBA \\d+ is not there");
    }
  }

  @Test
  void whatCannotBeWrittenIsRefused() throws IOException {
    try (Ssds ssds = open(image("one", 1))) {
      assertThatExceptionOfType(InvalidRequestException.class)
          .isThrownBy(() -> mixed(ssds, null, 4096, 50, 1))
          .withMessageContaining("--allow-write");
    }
    try (Ssds ssds = writable(image("one", 1), "")) {
      assertThatExceptionOfType(InvalidRequestException.class)
          .isThrownBy(() -> mixed(ssds, new ByteRange(0, 9 * 4096), 4096, 70, 1))
          .withMessageContaining("need 10 blocks of 4096 bytes")
          .withMessageContaining("the range has 9");
      assertThat(mixed(ssds, new ByteRange(0, 19 * 4096), 4096, 70, 1).conditions())
          .containsEntry("read_commands", 7L)
          .containsEntry("written_commands", 3L);
    }
  }

  @Test
  void whatIsWrittenMayLieInMemoryOfAGpu() throws IOException {
    try (FakeGpu gpu = new FakeGpu();
        Ssds ssds = writable(image("one", 1), "");
        SsdBench bench =
            SsdBench.open(
                ssds.blocks(null), gpu, cpu().with(InitiatorKind.CPU, Placement.VRAM_DATA))) {
      Measurement m = bench.random(4096, new Mix(50), Repetitions.of(1));
      assertThat(m.conditions()).containsEntry("placement", "vram-data");
    }
  }

  @Test
  void somebodyIsToldHowLongRepetitionsTook() throws IOException {
    AtomicInteger told = new AtomicInteger();
    try (Ssds ssds = open(image("one", 1));
        SsdBench bench = SsdBench.open(ssds.blocks(null), accelerator, cpu())) {
      bench.stream(Repetitions.of(4).telling(nanos -> told.addAndGet(nanos > 0 ? 1 : 100)));
    }
    assertThat(told).hasValue(5);
  }

  /** Memory that the CPU does not address: what arrives is copied before it is compared. */
  @Test
  void dataMayLieInMemoryOfAGpu() throws IOException {
    try (FakeGpu gpu = new FakeGpu();
        Ssds ssds = open(image("one", 1));
        SsdBench bench =
            SsdBench.open(
                ssds.blocks(null), gpu, cpu().with(InitiatorKind.CPU, Placement.VRAM_DATA))) {
      Measurement m = bench.random(4096, Repetitions.of(1));
      assertThat(m.conditions()).containsEntry("placement", "vram-data");
    }
  }
}
