package io.gpunvme.nvme.pci;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.base.InvalidRequestException;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class PciAddressTest {
  @ParameterizedTest
  @CsvSource({
    "0000:01:00.0,     0000:01:00.0",
    "01:00.0,          0000:01:00.0",
    "0000:AF:1F.7,     0000:af:1f.7",
    "10000:e1:00.0,    10000:e1:00.0",
    "FFFFFFFF:00:00.0, ffffffff:00:00.0",
  })
  void isReadAndWritten(String text, String canonical) {
    PciAddress address = PciAddress.parse(text);

    assertThat(address).hasToString(canonical);
    assertThat(PciAddress.parse(canonical)).isEqualTo(address);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "",
        "nvme0",
        "0000:01:00",
        "1:0.0",
        "01:20.0",
        "01:00.8",
        "0000:01:00.0 ",
        "0:01:00.0"
      })
  void refusesWhatIsNone(String text) {
    assertThatThrownBy(() -> PciAddress.parse(text))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("'" + text + "'")
        .hasMessageContaining("0000:01:00.0");
  }

  @Test
  void isOrderedByItsParts() {
    assertThat(
            Stream.of("0001:00:00.0", "0000:02:00.0", "0000:01:01.0", "0000:01:00.1", "01:00.0")
                .map(PciAddress::parse)
                .sorted()
                .map(PciAddress::toString))
        .containsExactly(
            "0000:01:00.0", "0000:01:00.1", "0000:01:01.0", "0000:02:00.0", "0001:00:00.0");
  }

  @Test
  void refusesPartsOutOfRange() {
    assertThatThrownBy(() -> new PciAddress(0, 256, 0, 0))
        .isInstanceOf(InvalidRequestException.class);
    assertThatThrownBy(() -> new PciAddress(0, 0, 32, 0))
        .isInstanceOf(InvalidRequestException.class);
    assertThatThrownBy(() -> new PciAddress(0, 0, 0, 8))
        .isInstanceOf(InvalidRequestException.class);
  }
}
