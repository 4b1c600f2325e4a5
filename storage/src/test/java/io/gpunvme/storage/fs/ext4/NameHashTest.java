package io.gpunvme.storage.fs.ext4;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class NameHashTest {
  private static final int[] NO_SEED = new int[4];
  // What debugfs makes of 11223344-5566-7788-99aa-bbccddeeff00.
  private static final int[] SEED = {0x44332211, 0x88776655, 0xCCBBAA99, 0x00FFEEDD};

  /** Expected: {@code debugfs -R "dx_hash -h VERSION -s SEED NAME"} of e2fsprogs 1.47.0. */
  @ParameterizedTest
  @CsvSource({
    "0, e74b53e2, a",
    "0, 75afd992, abc",
    "0, f52709c2, name-of-fifteen",
    "0, 2c19c100, name-of-16-bytes",
    "0, 2b144f8c, Größe-数据-a-name-longer-than-thirty-two-bytes",
    "1, 82170af6, a",
    "1, 38225da6, abc",
    "1, ba6c2910, name-of-fifteen",
    "1, f5f395be, name-of-16-bytes",
    "1, b3fb6aec, Größe-数据-a-name-longer-than-thirty-two-bytes",
    "2, bdaa08e6, a",
    "2, eb5d97d0, abc",
    "2, 4ed5988a, name-of-fifteen",
    "2, 920f00ea, name-of-16-bytes",
    "2, 65daf6c2, Größe-数据-a-name-longer-than-thirty-two-bytes",
    "3, 51effc28, Größe-数据-a-name-longer-than-thirty-two-bytes",
    "4, 1a697b8c, Größe-数据-a-name-longer-than-thirty-two-bytes",
    "5, 422febc6, Größe-数据-a-name-longer-than-thirty-two-bytes",
  })
  void namesHashAsE2fsprogsHashesThem(int version, String expected, String name) {
    assertThat(Integer.toHexString(NameHash.of(name.getBytes(UTF_8), version, false, SEED)))
        .isEqualTo(expected);
  }

  @Test
  void withoutASeedTheAlgorithmHasItsOwn() {
    assertThat(NameHash.of("abc".getBytes(UTF_8), 1, false, NO_SEED)).isEqualTo(0xD196A868);
  }

  @Test
  void whetherBytesHaveASignChangesNamesThatAreNotAscii() {
    byte[] plain = "abc".getBytes(UTF_8);
    byte[] other = "Größe".getBytes(UTF_8);
    for (int version = 0; version < 3; version++) {
      assertThat(NameHash.of(plain, version, true, SEED))
          .isEqualTo(NameHash.of(plain, version, false, SEED));
      assertThat(NameHash.of(other, version, true, SEED))
          .isNotEqualTo(NameHash.of(other, version, false, SEED))
          .isEqualTo(NameHash.of(other, version + 3, false, SEED));
    }
  }

  @Test
  void onlySixVersionsAreKnown() {
    for (int version = -1; version < 8; version++) {
      assertThat(NameHash.isKnown(version)).isEqualTo(version >= 0 && version <= 5);
    }
  }
}
