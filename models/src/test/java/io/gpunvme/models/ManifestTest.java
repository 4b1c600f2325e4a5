package io.gpunvme.models;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.gpunvme.base.InvalidRequestException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Files of checksums: what is read, and what is refused with its place. */
class ManifestTest {
  @TempDir private Path folder;

  private Manifest read(String json) throws IOException {
    return Manifest.read(Files.writeString(folder.resolve("m.json"), json));
  }

  @Test
  void whatIsWrittenIsRead() throws IOException {
    Manifest written =
        new Manifest(
            Map.of("a", new Manifest.Entry(0, 0), "b", new Manifest.Entry(1L << 40, 0xFEDC_BA98)));
    assertThat(read(written.toJson().toString()).entries()).isEqualTo(written.entries());
  }

  @Test
  void otherMembersAreSkipped() throws IOException {
    String json =
        """
        {"by": {"x": [1, null]}, "tensors": {"a": {"crc32c": "0000000f", "bytes": 7, "x": 1.5}},
         "algorithm": "crc32c"}\
        """;
    assertThat(read(json).entries()).isEqualTo(Map.of("a", new Manifest.Entry(7, 15)));
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "",
        "[]",
        "{}",
        "{\"algorithm\": {}, \"tensors\": {}}",
        "{\"algorithm\": \"md5\", \"tensors\": {}}",
        "{\"algorithm\": \"crc32c\"}",
        "{\"algorithm\": \"crc32c\", \"tensors\": []}",
        "{\"algorithm\": \"crc32c\", \"tensors\": {\"a\": {}}}",
        "{\"algorithm\": \"crc32c\", \"tensors\": {\"a\": {\"bytes\": 1}}}",
        "{\"algorithm\": \"crc32c\", \"tensors\": {\"a\": {\"bytes\": {}, \"crc32c\":"
            + " \"00000000\"}}}",
        "{\"algorithm\": \"crc32c\", \"tensors\": {\"a\": {\"bytes\": -1, \"crc32c\":"
            + " \"00000000\"}}}",
        "{\"algorithm\": \"crc32c\", \"tensors\": {\"a\": {\"bytes\": 1, \"crc32c\": {}}}}",
        "{\"algorithm\": \"crc32c\", \"tensors\": {\"a\": {\"bytes\": 1, \"crc32c\": []}}}",
        "{\"algorithm\": \"crc32c\", \"tensors\": {\"a\": {\"bytes\": 1, \"crc32c\": \"0\"}}}",
        "{\"algorithm\": \"crc32c\", \"tensors\": {\"a\": {\"bytes\": 1, \"crc32c\": null}}}",
        "{\"algorithm\": \"crc32c\", \"tensors\": {}} x"
      })
  void whatIsNoManifestIsRefused(String json) {
    assertThatExceptionOfType(InvalidRequestException.class)
        .isThrownBy(() -> read(json))
        .withMessageContaining("m.json")
        .withMessageContaining("manifest of gpunvme")
        .withMessageNotContaining("json.org")
        .withMessageNotContaining("Exception");
  }

  @Test
  void anotherEncodingIsRefused() throws IOException {
    Path file = Files.write(folder.resolve("m.json"), new byte[] {'{', '"', (byte) 0xFF, '"'});
    assertThatExceptionOfType(InvalidRequestException.class)
        .isThrownBy(() -> Manifest.read(file))
        .withMessageContaining("UTF-8");
  }
}
