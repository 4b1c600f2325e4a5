package io.gpunvme.bench;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class CuFileBenchTest {
  @Test
  void whatIsNotSaidIsChosen() {
    CuFileBenchOptions options = CuFileBenchOptions.parse(List.of());
    assertThat(options.ours()).isEqualTo(Path.of("capi/target/cufile/libcufile.so.0"));
    assertThat(options.program()).endsWithRaw(Path.of("capi/target/cufile-bench"));
    assertThat(options.nvidia()).isEmpty();
    assertThat(options.device()).isTrue();
    assertThat(options.bytes()).isEqualTo(1L << 30);
  }

  @Test
  void whatIsSaidIsTaken() {
    CuFileBenchOptions options =
        CuFileBenchOptions.parse(
            List.of("--nvidia", "/n/libcufile.so.0", "--size", "64MiB", "--memory", "host"));
    assertThat(options.nvidia()).contains(Path.of("/n/libcufile.so.0"));
    assertThat(options.bytes()).isEqualTo(64L << 20);
    assertThat(options.device()).isFalse();
  }

  @ParameterizedTest
  @CsvSource({"seq 1 4096,true", "batch 64 4096,true", "cold 8 4096,false", "stream 16 4096,false"})
  void storageOfOursIsAskedForWhatItTakes(String command, boolean can) {
    assertThat(CuFileBench.isForStorage(command)).isEqualTo(can);
  }

  @ParameterizedTest
  @CsvSource({
    "--size,63MiB,64MiB",
    "--size,much,--size",
    "--memory,disk,device or host",
    "--reps,0,from 1",
    "--what,1,unknown option"
  })
  void whatMakesNoSenseIsTold(String option, String value, String message) {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> CuFileBenchOptions.parse(List.of(option, value)))
        .withMessageContaining(message);
    assertThatIllegalArgumentException()
        .isThrownBy(() -> CuFileBenchOptions.parse(List.of(option)))
        .withMessageContaining("needs a value");
  }
}
