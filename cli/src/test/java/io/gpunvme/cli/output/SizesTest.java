package io.gpunvme.cli.output;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class SizesTest {
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
    assertThat(Sizes.parse(text)).isEqualTo(bytes);
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
    assertThatThrownBy(() -> Sizes.parse(text))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("'" + text + "' is not a size");
  }

  @ParameterizedTest
  @CsvSource({
    "0, 0B",
    "1, 1B",
    "1023, 1023B",
    "1024, 1KiB",
    "1536, 1.50KiB",
    "67108864, 64MiB",
    "1610612736, 1.50GiB",
    "1125899906842624, 1024TiB"
  })
  void prints(long bytes, String text) {
    assertThat(Sizes.format(bytes)).isEqualTo(text);
  }

  @Test
  void whatIsPrintedWithoutDecimalsReadsBack() {
    for (long bytes = 1; bytes > 0; bytes <<= 1) {
      assertThat(Sizes.parse(Sizes.format(bytes))).isEqualTo(bytes);
    }
  }
}
