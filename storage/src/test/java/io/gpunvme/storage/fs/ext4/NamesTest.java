package io.gpunvme.storage.fs.ext4;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;

class NamesTest {
  @Test
  void validNamesAreThemselves() {
    for (String name :
        new String[] {"", "a", "Größe", "数据", "🚀", "a\\b", "\\x", "\\xg0", "a b\n"}) {
      assertThat(Names.text(name.getBytes(UTF_8))).isEqualTo(name);
      assertThat(Names.bytes(name)).isEqualTo(name.getBytes(UTF_8));
    }
  }

  @Test
  void bytesThatAreNoTextAreShownInHexadecimal() {
    assertThat(Names.text(new byte[] {'a', (byte) 0xFF, 'b'})).isEqualTo("a\\xffb");
    assertThat(Names.bytes("a\\xffb")).isEqualTo(new byte[] {'a', (byte) 0xFF, 'b'});
    assertThat(Names.bytes("\\xFF")).isEqualTo(new byte[] {(byte) 0xFF});
    assertThat(Names.text(new byte[] {(byte) 0xC3})).isEqualTo("\\xc3");
    assertThat(Names.text(new byte[] {(byte) 0xED, (byte) 0xA0, (byte) 0x80}))
        .isEqualTo("\\xed\\xa0\\x80");
  }

  @Test
  void aNameThatLooksLikeOneOfThoseIsToldApart() {
    assertThat(Names.text("\\xff".getBytes(UTF_8))).isEqualTo("\\x5cxff");
    assertThat(Names.bytes("\\x5cxff")).isEqualTo("\\xff".getBytes(UTF_8));
  }

  @Test
  void halfASurrogatePairIsNoName() {
    assertThat(Names.bytes("\ud800")).isNull();
    assertThat(Names.bytes("a\\xff\udc00")).isNull();
  }

  @Test
  void eachNameHasOneTextThatLeadsBackToIt() {
    SplittableRandom random = new SplittableRandom(5);
    byte[] alphabet = {'\\', 'x', 'f', '5', 'c', (byte) 0xFF, (byte) 0xC3, (byte) 0xA9, 'g'};
    for (int i = 0; i < 100_000; i++) {
      byte[] name = new byte[random.nextInt(12)];
      for (int k = 0; k < name.length; k++) {
        name[k] = alphabet[random.nextInt(alphabet.length)];
      }
      assertThat(Names.bytes(Names.text(name))).isEqualTo(name);
    }
  }
}
