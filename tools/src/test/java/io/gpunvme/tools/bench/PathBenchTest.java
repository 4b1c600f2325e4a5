package io.gpunvme.tools.bench;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.storage.path.StorageException;
import java.io.IOException;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Stream;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Every path measured once, small, on the CPU stand-in. */
class PathBenchTest {
  @TempDir Path folder;

  private PathBenchOptions options() {
    return new PathBenchOptions(
        folder,
        16 << 20,
        PathBenchOptions.ALL_PATHS,
        List.of(1 << 20, 4 << 20),
        512,
        List.of(1, 2),
        Repetitions.of(1),
        1);
  }

  @Test
  void everyPathThatIsPossibleIsMeasuredAndComparedWithTheOthers() throws IOException {
    List<String> skipped = new ArrayList<>();
    List<Measurement> told = new ArrayList<>();
    List<Measurement> results;
    AtomicLong announced = new AtomicLong();
    AtomicLong moved = new AtomicLong();
    PathBenchListener listener =
        new PathBenchListener() {
          @Override
          public void begins(String what, long bytes) {
            announced.addAndGet(bytes);
          }

          @Override
          public void moved(long bytes) {
            moved.addAndGet(bytes);
          }

          @Override
          public void measured(Measurement result) {
            told.add(result);
          }

          @Override
          public void skipped(String id, String why) {
            skipped.add(id + ": " + why);
          }
        };
    try (Accelerator cpu = CpuAccelerator.open();
        PathBench bench = new PathBench(cpu, options(), listener)) {
      results = bench.run();
    }
    assertThat(moved.get()).isPositive().isLessThanOrEqualTo(announced.get());
    List<String> ids = results.stream().map(Measurement::id).toList();
    assertThat(ids).doesNotHaveDuplicates();
    for (String path : List.of("direct", "pinned", "mmap", "auto")) {
      for (String rest : List.of("seq.cold", "seq.warm", "rand4k.cold", "rand4k.warm")) {
        assertThat(ids).contains("paths." + path + "." + rest);
      }
    }
    assertThat(ids).contains("paths.pinned.seq.warm.4m", "limit.cache.seq");
    assertThat(skipped).anyMatch(s -> s.contains("cufile"));
    assertThat(told.stream().map(Measurement::id)).containsExactlyInAnyOrderElementsOf(ids);
    for (Measurement m : results) {
      if (m.id().startsWith("paths.")) {
        assertThat(m.median()).isPositive();
        assertThat(m.peer()).as(m.id()).isNotNull();
        assertThat(m.conditions())
            .containsKeys("mode", "cpu_seconds_per_gb", "latency_ns", "latency_mean_ns", "threads");
        if (m.id().contains(".cold")) {
          assertThat((double) m.conditions().get("resident_before")).isLessThan(0.02);
        }
        assertThat(m.conditions().get("latency_ns")).isInstanceOf(Map.class);
      }
    }
    assertThat(told.stream().filter(m -> m.id().equals("paths.mmap.seq.warm")).findFirst())
        .hasValueSatisfying(
            m -> assertThat((double) m.conditions().get("resident_before")).isEqualTo(1.0));
    try (Stream<Path> left = Files.list(folder)) {
      assertThat(left).isEmpty();
    }
  }

  @Test
  void whatIsInMemoryIsNeverCold() throws IOException {
    Path memory = Path.of("/dev/shm");
    Assumptions.assumeTrue(
        Files.isWritable(memory) && Files.getFileStore(memory).type().equals("tmpfs"),
        "/dev/shm is not a tmpfs");
    List<String> skipped = new ArrayList<>();
    PathBenchListener listener =
        new PathBenchListener() {
          @Override
          public void skipped(String id, String why) {
            skipped.add(id + ": " + why);
          }
        };
    PathBenchOptions options =
        new PathBenchOptions(
            memory, 16 << 20, List.of("mmap"), List.of(), 64, List.of(1), Repetitions.of(1), 1);
    List<Measurement> results;
    try (Accelerator cpu = CpuAccelerator.open();
        PathBench bench = new PathBench(cpu, options, listener)) {
      results = bench.run();
    }
    assertThat(results)
        .map(Measurement::id)
        .filteredOn(id -> id.startsWith("paths."))
        .containsExactly("paths.mmap.seq.warm", "paths.mmap.rand4k.warm");
    assertThat(skipped).anyMatch(s -> s.startsWith("paths.mmap.seq.cold: ") && s.contains("100 %"));
  }

  @Test
  void aFolderWithoutRoomGetsNoFile() throws IOException {
    long size = Math.ceilDiv(folder.toFile().getTotalSpace() + 1, 16L << 20) * (16L << 20);
    PathBenchOptions small = options();
    PathBenchOptions large =
        new PathBenchOptions(
            folder,
            size,
            small.paths(),
            small.blocks(),
            small.randomReads(),
            small.cufileThreads(),
            small.repetitions(),
            small.workers());
    try (Accelerator cpu = CpuAccelerator.open()) {
      assertThatExceptionOfType(StorageException.class)
          .isThrownBy(() -> new PathBench(cpu, large, new PathBenchListener() {}))
          .satisfies(e -> assertThat(e.kind()).isEqualTo(StorageException.Kind.NO_SPACE))
          .withMessageContaining(folder.toString())
          .withMessageContaining("another folder");
    }
    assertThat(folder).isEmptyDirectory();
  }

  @Test
  void aWrongByteIsNoNumber() {
    long[] offsets = {8 * 4096L, 0};
    try (Accelerator cpu = CpuAccelerator.open();
        DeviceBuffer buffer = cpu.allocate(8192)) {
      for (int i = 0; i < 2; i++) {
        for (int w = 0; w < 512; w++) {
          buffer
              .segment()
              .set(
                  ValueLayout.JAVA_LONG, i * 4096L + w * 8L, BlockPattern.hash(offsets[i] / 8 + w));
        }
      }
      PathFile.check("x", buffer, buffer, offsets);
      buffer
          .segment()
          .set(
              ValueLayout.JAVA_BYTE,
              8191,
              (byte) (buffer.segment().get(ValueLayout.JAVA_BYTE, 8191) ^ 1));
      assertThatExceptionOfType(BenchException.class)
          .isThrownBy(() -> PathFile.check("x", buffer, buffer, offsets))
          .withMessageContaining("1 of 2 blocks");
    }
  }
}
