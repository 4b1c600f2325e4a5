package io.gpunvme.tools.bench;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.gpunvme.base.ByteRange;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.gpu.transfer.InitiatorKind;
import io.gpunvme.gpu.transfer.InitiatorOptions;
import io.gpunvme.nvme.driver.ControllerOptions;
import io.gpunvme.storage.layer.LayerException;
import io.gpunvme.tools.ssd.Ssds;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Layers that are read while the CPU works with the one before. */
class SsdLayersTest {
  private static final int BYTES = 1 << 20;
  private static final InitiatorOptions CPU =
      InitiatorOptions.defaults().with(InitiatorKind.CPU, Placement.HOST).with(2, 8, 1);

  @TempDir private Path folder;
  private final CpuAccelerator cpu = CpuAccelerator.open();

  @BeforeEach
  void write() throws IOException {
    for (String name : List.of("a", "b")) {
      byte[] all = new byte[BYTES];
      new Random(name.hashCode()).nextBytes(all);
      Files.write(folder.resolve(name), all);
    }
  }

  @AfterEach
  void close() {
    cpu.close();
  }

  private String named(String address) {
    return address.replaceAll("file=(?=[a-z])", "latency=0,file=" + folder + "/");
  }

  private SsdLayers look(String address, ByteRange range) {
    try (Ssds ssds = Ssds.open(named(address), ControllerOptions.defaults(), "", 1)) {
      return SsdLayers.look(ssds, range, cpu);
    }
  }

  private List<Measurement> measure(SsdLayers layers, String address, String faults) {
    try (Ssds ssds = Ssds.open(named(address), ControllerOptions.defaults(), faults, 1, cpu, CPU)) {
      return layers.measure(ssds, CPU, Repetitions.of(1));
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"sim:file=a", "stripe:sim:file=a,sim:file=b;unit=8KiB"})
  void eachLayerIsWhatTheCpuReads(String address) {
    SsdLayers layers = look(address, new ByteRange(1000, 600_000));
    List<Measurement> all = measure(layers, address, "");
    assertThat(all)
        .extracting(Measurement::id)
        .containsExactly("layers.short", "layers.equal", "layers.long");
    for (Measurement one : all) {
      assertThat(one.median()).isGreaterThan(0.4);
      assertThat(one.conditions())
          .containsEntry("initiator", "CPU")
          .containsEntry("placement", "host")
          .containsEntry("layers", 8)
          .containsEntry("layer_bytes", 595904 / 8 / 4096 * 4096L)
          .containsEntry("work_by", "CPU");
      assertThat(String.valueOf(one.conditions().get("mode"))).contains("CPU-initiated");
    }
  }

  @Test
  void aLayerThatArrivesWrongIsSeen() {
    SsdLayers layers = look("sim:file=a", null);
    assertThatExceptionOfType(BenchException.class)
        .isThrownBy(() -> measure(layers, "sim:file=a", "corrupt on read every=3"))
        .withMessageContaining("has other words than those on the SSD");
  }

  @Test
  void aLayerThatDoesNotArriveIsTold() {
    SsdLayers layers = look("sim:file=a", null);
    assertThatExceptionOfType(LayerException.class)
        .isThrownBy(
            () ->
                measure(
                    layers, "sim:file=a", "status=media/unrecovered-read-error dnr on read nth=5"))
        .withMessageContaining("Unrecovered Read Error");
  }

  @Test
  void aRangeThatIsTooShortIsRefused() {
    assertThatExceptionOfType(InvalidRequestException.class)
        .isThrownBy(() -> look("sim:file=a", new ByteRange(0, 8 * 4096 - 1)))
        .withMessageContaining("no 8 layers");
  }

  @Test
  void sumsTellWordsAndPlaces() {
    long[] words = new Random(1).longs(1000).toArray();
    long sum = LayerSums.of(MemorySegment.ofArray(words), 5);
    assertThat(LayerSums.of(MemorySegment.ofArray(words), 6)).isNotEqualTo(sum);
    long kept = words[7];
    words[7] = words[8];
    words[8] = kept;
    assertThat(LayerSums.of(MemorySegment.ofArray(words), 5)).isNotEqualTo(sum);
    long[] hashed = new long[1000];
    for (int i = 0; i < hashed.length; i++) {
      hashed[i] = BlockPattern.hash(i + 5);
    }
    assertThat(LayerSums.of(MemorySegment.ofArray(hashed), 5))
        .isEqualTo(LayerSums.ofHashedWords(1000, 5));
  }
}
