package io.gpunvme.cli.output;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.base.ByteSize;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class SizesTest {
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
      assertThat(ByteSize.parse(Sizes.format(bytes))).isEqualTo(bytes);
    }
  }
}
