package io.gpunvme.base;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class ByteSizeTest {
  @ParameterizedTest
  @CsvSource({
    "0, 0",
    "4096, 4096",
    "17B, 17",
    "1K, 1024",
    "1kib, 1024",
    "64MiB, 67108864",
    "64M, 67108864",
    "1.5GiB, 1610612736",
    "0.5KiB, 512",
    "2T, 2199023255552",
    "1 MiB, 1048576",
    "9223372036854775807, 9223372036854775807"
  })
  void reads(String text, long bytes) {
    assertThat(ByteSize.parse(text)).isEqualTo(bytes);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "",
        "x",
        "-1",
        "1Q",
        "MiB",
        "1.5",
        "0.3KiB",
        "1e3",
        "0x10",
        "1MiB2",
        "9223372036854775808",
        "8388608TiB",
        "1,5MiB"
      })
  void refuses(String text) {
    assertThatThrownBy(() -> ByteSize.parse(text))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("'" + text + "' is not a size");
  }
}
