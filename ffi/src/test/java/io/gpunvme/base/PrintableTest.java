package io.gpunvme.base;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class PrintableTest {
  @Test
  void controlCharactersAndHalvesOfPairsBecomeNumbers() {
    assertThat(Printable.of("\u001b[2J \u007f \u009b é 😀")).isEqualTo("\\x1B[2J \\x7F \\x9B é 😀");
    assertThat(Printable.of("\ud83d \ude00\ud83d")).isEqualTo("\\uD83D \\uDE00\\uD83D");
  }

  @Test
  void aQuoteIsShortAndCutsNoPair() {
    String most = "😀".repeat(80);
    assertThat(Printable.quote(most)).isEqualTo(most);
    assertThat(Printable.quote(most + "a")).isEqualTo(most + "…");
    assertThat(Printable.quote("\n")).isEqualTo("\\x0A");
  }
}
