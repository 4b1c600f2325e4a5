package io.gpunvme.tools.fleet;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.tools.fleet.Parameters.Kind;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

final class ParametersTest {
  @TempDir Path folder;

  private Path file(String text) throws IOException {
    return Files.writeString(folder.resolve("machine.json"), text);
  }

  @Test
  void allHaveAValueAndASource() {
    assertThat(Parameters.defaults().values()).containsOnlyKeys(Parameter.values());
    assertThat(Parameters.defaults().values().values())
        .allSatisfy(value -> assertThat(value.source()).isNotBlank());
  }

  @ParameterizedTest
  @CsvSource({
    "nic=100GB/s, NIC, 100e9",
    "nic=100, NIC, 100e9",
    "pin=5.5ms, PIN, 5.5e-3",
    "bucket=8192MiB, BUCKET, 8589934592",
    "hop=2us, HOP, 2e-6",
    "target-ssds=24, TARGET_SSDS, 24"
  })
  void oneIsSet(String assignment, Parameter parameter, double value) {
    Parameters set = Parameters.defaults().with(assignment);

    assertThat(set.get(parameter)).isEqualTo(value);
    assertThat(set.values().get(parameter).kind()).isEqualTo(Kind.GIVEN);
  }

  @Test
  void aFileTakesThePlaceOfSome() throws IOException {
    Path file =
        file(
            """
            {"nic": {"value": 25, "kind": "measured", "source": "ib_write_bw"},
             "hop": {"value": 3}}
            """);
    Parameters read = Parameters.defaults().with(file);

    assertThat(read.values().get(Parameter.NIC))
        .isEqualTo(new Parameters.Value(25, Kind.MEASURED, "ib_write_bw"));
    assertThat(read.values().get(Parameter.HOP))
        .isEqualTo(new Parameters.Value(3, Kind.GIVEN, file.toString()));
    assertThat(read.get(Parameter.SSD_READ)).isEqualTo(7e9);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '`',
      value = {
        "                                        | is not a JSON object",
        "[]                                      | is not a JSON object",
        "{\"nic\": {\"value\": NaN}}             | is not a JSON object",
        "{\"nic\": 1} x                          | is not a JSON object",
        "{\"nic\": 100}                          | nic is not an object with a number 'value'",
        "{\"nic\": {\"value\": \"100\"}}         | nic is not an object with a number 'value'",
        "{\"nic\": {\"value\": -1}}              | nic=-1: must be from 0.001 to 100000 GB/s",
        "{\"nic\": {\"value\": 1e999}}           | nic=",
        "{\"nick\": {\"value\": 1}}              | no parameter 'nick' of a fleet; there are ssd",
        "{\"nic\": {\"value\": 1, \"unit\": 1}}  | nic has 'unit'; there are value, kind, source",
        "{\"nic\": {\"value\": 1, \"kind\": \"guess\"}} | kind 'guess' is not one of measured",
        "{\"nic\": {\"value\": 1, \"source\": 5}} | 'source' is not a text of at most 300",
      })
  void otherFilesAreRefusedByName(String text, String what) throws IOException {
    Path file = file(text == null ? "" : text);

    assertThatThrownBy(() -> Parameters.defaults().with(file))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageStartingWith(file.toString())
        .hasMessageContaining(what);
  }

  @Test
  void aLongFileIsNotRead() throws IOException {
    Path file = file(" ".repeat((1 << 20) + 1));

    assertThatThrownBy(() -> Parameters.defaults().with(file))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("more than 1 MiB");
  }
}
