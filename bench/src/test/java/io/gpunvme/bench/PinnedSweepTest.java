package io.gpunvme.bench;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.storage.path.Range;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class PinnedSweepTest {
  private static final long BYTES = 16 << 20;

  @TempDir private Path directory;

  @Test
  void everySettingHasItsOwnNameAndValidOptions() {
    Set<String> ids = new HashSet<>();
    for (PinnedSweepCases.Case c : PinnedSweepCases.all()) {
      assertThat(ids.add(c.id())).as(c.id()).isTrue();
    }
    assertThat(ids).hasSizeGreaterThan(30);
  }

  @Test
  void wrongDataIsNoticed() throws Exception {
    PatternFile file = PatternFile.at(directory.resolve("pattern"), BYTES);
    byte[] content = Files.readAllBytes(file.path());
    try (CpuAccelerator cpu = CpuAccelerator.open();
        DeviceBuffer buffer = cpu.allocate(BYTES)) {
      buffer.copyFromHost(MemorySegment.ofArray(content), 0);
      Range range = new Range(0, buffer, 0, BYTES);
      file.require(range, 0, BYTES);
      Range shifted = new Range(8, buffer, 0, BYTES - 8);
      assertThatIllegalStateException().isThrownBy(() -> file.require(shifted, 0, 8));
      buffer.copyFromHost(MemorySegment.ofArray(new byte[] {content[4097]}), 4096);
      file.require(range, 4104, BYTES - 4104);
      assertThatIllegalStateException()
          .isThrownBy(() -> file.require(range, 0, BYTES))
          .withMessageContaining("4096");
    }
  }

  @Test
  void aFileThatIsThereIsKeptAndAnotherIsReplaced() throws Exception {
    Path path = directory.resolve("pattern");
    PatternFile.at(path, BYTES);
    var written = Files.getLastModifiedTime(path);
    PatternFile.at(path, BYTES);
    assertThat(Files.getLastModifiedTime(path)).isEqualTo(written);
    byte[] content = Files.readAllBytes(path);
    Files.write(path, new byte[(int) BYTES]);
    PatternFile.at(path, BYTES);
    assertThat(Files.readAllBytes(path)).isEqualTo(content);
  }

  @Test
  void resultsAreWritten() throws Exception {
    Path json = directory.resolve("sweep.json");
    PatternFile file = PatternFile.at(directory.resolve("pattern"), BYTES);
    try (CpuAccelerator cpu = CpuAccelerator.open()) {
      assertThat(PinnedSweep.sweep(file, cpu, 2, "pinned.rand4k.warm.threads", json)).isTrue();
    }
    JsonObject all = JsonParser.parseString(Files.readString(json)).getAsJsonObject();
    assertThat(all.getAsJsonArray("results")).hasSize(5);
    JsonObject first = all.getAsJsonArray("results").get(0).getAsJsonObject();
    assertThat(first.get("verified").getAsBoolean()).isTrue();
    assertThat(first.get("median").getAsDouble()).isPositive();
    assertThat(first.getAsJsonArray("samples")).hasSize(2);
  }
}
