package io.gpunvme.cli;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class NumberTextsTest {
  @ParameterizedTest
  @CsvSource({
    "0.0625, 0.06250",
    "1.98451, 1.985",
    "999.94, 999.9",
    "1000, 1000",
    "27510.4, 27510",
    "16777216.5, 16777217"
  })
  void conditionsAreReadWithoutExponents(double value, String text) {
    assertThat(NumberTexts.text(value)).isEqualTo(text);
  }
}
