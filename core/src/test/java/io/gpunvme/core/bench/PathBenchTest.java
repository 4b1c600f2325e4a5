package io.gpunvme.core.bench;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.gpunvme.core.accel.Accelerator;
import io.gpunvme.core.accel.CpuAccelerator;
import io.gpunvme.core.accel.DeviceBuffer;
import java.io.IOException;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
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
    try (Accelerator cpu = CpuAccelerator.open();
        PathBench bench = new PathBench(cpu, options())) {
      results = bench.run(told::add, skipped::add);
    }
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
        assertThat(m.conditions()).containsKeys("mode", "cpu_seconds_per_gb", "latency_ns");
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
