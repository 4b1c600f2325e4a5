package io.gpunvme.storage.kind;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.storage.plan.Plan;
import io.gpunvme.storage.plan.PlanOptions;
import io.gpunvme.storage.plan.Planner;
import io.gpunvme.storage.plan.Ranges;
import java.io.IOException;
import java.io.Reader;
import java.io.StringReader;
import java.util.SplittableRandom;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class ReadRequestTest {
  private static final ReadRequest KINDS =
      ReadRequest.builder()
          .blocks("tokens", 8, 16, 512, 1000)
          .bytes(7, 100, 80, 8)
          .bytes("labels", 100, 81, 8)
          .build();

  private static void refused(ThrowingCallable call, String what) {
    assertThatThrownBy(call).isInstanceOf(InvalidRequestException.class).hasMessageContaining(what);
  }

  private static ReadRequest parse(String json) throws IOException {
    return ReadRequest.parse(new StringReader(json.replace('\'', '"')));
  }

  @Test
  void kindsHaveNamesAndNumbers() {
    assertThat(KINDS.kinds()).extracting(Kind::number).containsExactly(0, 7, 8);
    assertThat(KINDS.kind("tokens")).isEqualTo(new Kind(0, "tokens", 4096, 8192, 1000));
    assertThat(KINDS.kind(0)).isSameAs(KINDS.kind("tokens")).isSameAs(KINDS.kind("0"));
    assertThat(KINDS.kind("7")).isSameAs(KINDS.kind(7));
    assertThat(KINDS.kind("labels").number()).isEqualTo(8);
    assertThat(KINDS.kind("tokens").count()).isEqualTo(8);
    assertThat(KINDS.kind("labels").count()).isEqualTo(10);
    assertThat(KINDS.kind("labels"))
        .hasToString("kind 'labels' (8): 10 elements of 8 bytes at 100");
  }

  @Test
  void aReadIsOneRange() {
    Ranges ranges = KINDS.ranges("tokens", 2, 3);

    assertThat(ranges.size()).isEqualTo(1);
    assertThat(ranges.offset(0)).isEqualTo(4096 + 2000);
    assertThat(ranges.length(0)).isEqualTo(3000);
    assertThat(ranges.target(0)).isZero();
    assertThat(ranges.targetOffset(0)).isZero();
    assertThat(KINDS.ranges(7, 10, 0).length(0)).isZero();
  }

  @Test
  void manyReadsArePacked() {
    int[] kinds = {7, 0, 8};
    long[] indexes = {1, 0, 9};
    long[] lengths = {2, 1, 1};

    Ranges ranges = KINDS.packed(kinds, indexes, lengths, 1);
    assertThat(ranges.size()).isEqualTo(3);
    assertThat(ranges.offset(2)).isEqualTo(172);
    assertThat(ranges.targetOffset(1)).isEqualTo(16);
    assertThat(ranges.targetOffset(2)).isEqualTo(1016);
    assertThat(ranges.targetEnd(0)).isEqualTo(1024);

    Ranges aligned = KINDS.packed(kinds, indexes, lengths, 256);
    assertThat(aligned.targetOffset(1)).isEqualTo(256);
    assertThat(aligned.targetOffset(2)).isEqualTo(1280);
  }

  @Test
  void orGoWhereTheCallerSays() {
    Ranges ranges =
        KINDS.ranges(
            new int[] {7, 0},
            new long[] {0, 1},
            new long[] {1, 1},
            new int[] {3, 0},
            new long[] {5, 6});

    assertThat(ranges.target(0)).isEqualTo(3);
    assertThat(ranges.targetOffset(0)).isEqualTo(5);
    assertThat(ranges.offset(1)).isEqualTo(5096);
    assertThat(ranges.targetOffset(1)).isEqualTo(6);
  }

  /** Elements that are their own index, through ranges and a plan and back. */
  @Test
  void whatIsReadIsWhatWasAskedFor() {
    long seed = Long.getLong("gpunvme.seed", System.nanoTime());
    SplittableRandom random = new SplittableRandom(seed);
    int elements = 5000;
    ReadRequest request = ReadRequest.builder().bytes("x", 77, elements * 2L, 2).build();
    byte[] source = new byte[77 + 2 * elements];
    for (int i = 0; i < elements; i++) {
      source[77 + 2 * i] = (byte) i;
      source[78 + 2 * i] = (byte) (i >> 8);
    }
    long[] indexes = new long[300];
    long[] lengths = new long[300];
    for (int i = 0; i < indexes.length; i++) {
      indexes[i] = random.nextInt(elements);
      lengths[i] = random.nextLong(Math.min(50, elements - indexes[i]) + 1);
    }
    Ranges ranges = request.packed(new int[indexes.length], indexes, lengths, 1);
    Plan plan = Planner.plan(ranges, PlanOptions.of(source.length).alignment(512).gap(0).build());
    byte[] target = new byte[(int) ranges.targetEnd(0)];
    for (int io = 0; io < plan.ios(); io++) {
      for (int p = plan.firstPiece(io); p < plan.endPiece(io); p++) {
        int from = (int) (plan.offset(io) + plan.pieceOffset(p));
        System.arraycopy(
            source, from, target, (int) plan.targetOffset(p), (int) plan.pieceLength(p));
      }
    }
    int at = 0;
    for (int i = 0; i < indexes.length; i++) {
      for (long e = indexes[i]; e < indexes[i] + lengths[i]; e++) {
        int value = target[at++] & 0xFF | (target[at++] & 0xFF) << 8;
        assertThat(value).as("seed %d, read %d", seed, i).isEqualTo((int) e);
      }
    }
  }

  @ParameterizedTest
  @CsvSource({
    "8, 1",
    "0, 9",
    "-1, 1",
    "1, -1",
    "9, 0",
    "9223372036854775807, 2",
    "1, 9223372036854775807"
  })
  void whatIsNotInsideIsRefused(long index, long length) {
    refused(
        () -> KINDS.ranges("tokens", index, length),
        "kind 'tokens' (0): index " + index + ", length " + length + ": it has only 8 elements");
    refused(
        () -> KINDS.packed(new int[] {0}, new long[] {index}, new long[] {length}, 1),
        "it has only 8 elements");
  }

  @Test
  void kindsThatAreNotThereAreRefused() {
    refused(() -> KINDS.ranges("nonsense", 0, 1), "no kind 'nonsense'; the kinds are: tokens, 7");
    refused(() -> KINDS.ranges(5, 0, 1), "no kind 5");
    refused(() -> KINDS.ranges("-1", 0, 1), "no kind '-1'");
    refused(() -> KINDS.ranges("99999999999", 0, 1), "no kind '99999999999'");
  }

  @Test
  void arraysThatDoNotFitAreRefused() {
    refused(() -> KINDS.packed(new int[2], new long[2], new long[1], 1), "[2, 2, 1]");
    refused(
        () -> KINDS.ranges(new int[1], new long[1], new long[1], new int[1], new long[0]),
        "[1, 1, 1, 1, 0]");
    refused(() -> KINDS.packed(new int[1], new long[1], new long[1], 3), "alignment 3");
    refused(() -> KINDS.packed(new int[1], new long[1], new long[1], 0), "alignment 0");
    refused(
        () -> KINDS.packed(new int[1], new long[1], new long[1], Long.MIN_VALUE), "power of two");
  }

  @Test
  void kindsThatMakeNoSenseAreRefused() {
    ReadRequest.Builder builder = ReadRequest.builder().bytes("a", 0, 10, 1);
    refused(() -> builder.bytes("a", 0, 10, 1), "two kinds have the name 'a'");
    refused(() -> builder.bytes(0, 0, 10, 1), "two kinds have the number 0");
    refused(() -> builder.bytes("12", 0, 10, 1), "is a number, not a name");
    refused(() -> builder.bytes(-1, 0, 10, 1), "kind number -1 is negative");
    refused(() -> builder.bytes("b", -1, 10, 1), "'b'");
    refused(() -> builder.bytes("b", 0, -1, 1), "are not possible");
    refused(() -> builder.bytes("b", 0, 10, 0), "are not possible");
    refused(() -> builder.bytes("b", 1, Long.MAX_VALUE, 1), "are not possible");
    refused(() -> builder.blocks("b", 1L << 60, 1, 512, 1), "2^63 bytes or more");
    refused(() -> builder.blocks("b", 0, 1L << 60, 512, 1), "2^63 bytes or more");
    refused(() -> builder.blocks("b", -1, 1, 512, 1), "are not possible");
    refused(() -> builder.blocks("b", 0, 1, 0, 1), "blocks of 0 bytes");
    assertThat(builder.bytes("b", 5, 10, 3).build().kind("b").number()).isEqualTo(1);
  }

  @Test
  void kindsComeFromJson() throws IOException {
    ReadRequest request =
        parse(
            "{'block_size': 512, 'kinds': {"
                + "'tokens': {'start_lba': 8, 'blocks': 16, 'element': 1000},"
                + "'7': {'offset': 100, 'length': 80, 'element': 8},"
                + "'labels': {'offset': 100, 'length': 81, 'element': 8},"
                + "'far': {'offset': 1, 'length': 2, 'element': 1, 'number': 2147483646}}}");

    assertThat(request.kinds()).startsWith(KINDS.kinds().toArray(new Kind[0]));
    assertThat(request.kind("far")).isEqualTo(new Kind(Integer.MAX_VALUE - 1, "far", 1, 2, 1));
    assertThat(parse("{'kinds': {}}").kinds()).isEmpty();
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '`',
      value = {
        "``                                                            | not JSON of kinds",
        "[]                                                            | not JSON of kinds",
        "{                                                             | not JSON of kinds",
        "{'kinds': 5}                                                  | not JSON of kinds",
        "{'kinds': {'a': [1]}}                                         | not JSON of kinds",
        "{kinds: {}}                                                   | not JSON of kinds",
        "{}                                                            | 'kinds' is missing",
        "{'kinds': {}} {}                                              | not JSON of kinds",
        "{'kinds': {}, 'kinds': {}}                                    | 'kinds' is unknown or"
            + " out of order",
        "{'kinds': {}, 'block_size': 512}                              | out of order",
        "{'block_size': 512, 'block_size': 512, 'kinds': {}}           | out of order",
        "{'block_size': 0, 'kinds': {}}                                | block size of 0",
        "{'block_size': 4294967808, 'kinds': {}}                       | block size of 4294967808",
        "{'block_size': '512', 'kinds': {}}                            | a number is expected",
        "{'sizes': {}}                                                 | 'sizes' is unknown",
        "{'kinds': {'': {'offset': 0, 'length': 1, 'element': 1}}}     | without a name",
        "{'kinds': {'a': {'offset': 0, 'length': 1}}}                  | kind 'a' needs element",
        "{'kinds': {'a': {'offset': 0, 'element': 1}}}                 | kind 'a'",
        "{'kinds': {'a': {'offset': 0, 'blocks': 1, 'element': 1}}}    | kind 'a'",
        "{'kinds': {'a': {'start_lba': 0, 'blocks': 1, 'element': 1}}} | no block_size",
        "{'kinds': {'a': {'offset': 0, 'length': 1, 'element': 1, 'blocks': 1}}} | kind 'a'",
        "{'kinds': {'3': {'offset': 0, 'length': 1, 'element': 1, 'number': 4}}} | second number",
        "{'kinds': {'a': {'offset': 0, 'length': 1, 'element': 1, 'number': -1}}} | number of -1",
        "{'kinds': {'a': {'offset': 0, 'length': 1, 'element': 1, 'number': 2147483647}}}"
            + " | outside 0..2147483646",
        "{'kinds': {'a': {'offset': 0, 'offset': 1}}}                  | 'offset' is there twice",
        "{'kinds': {'a': {'ofset': 0}}}                                | 'ofset' is unknown",
        "{'kinds': {'a': {'offset': 1.5}}}                             | $.kinds.a.offset: 1.5 is",
        "{'kinds': {'a': {'offset': 9223372036854775808}}}             | 9223372036854775808 is"
            + " not",
        "{'kinds': {'a': {'offset': 1e3}}}                             | 1e3 is not",
        "{'kinds': {'a': {'offset': -1, 'length': 1, 'element': 1}}}   | are not possible",
        "{'kinds': {'a': {'offset': 0, 'length': 1, 'element': 0}}}    | are not possible",
      })
  void jsonThatMakesNoSenseIsRefused(String json, String why) {
    refused(() -> parse(json), why);
  }

  @ParameterizedTest
  @ValueSource(strings = {"a", "5"})
  void aKindThatIsThereTwiceIsRefused(String name) {
    String kind = "'" + name + "': {'offset': 0, 'length': 1, 'element': 1}";
    refused(() -> parse("{'kinds': {" + kind + ", " + kind + "}}"), "two kinds have the n");
  }

  @Test
  void whatTheReaderThrowsIsThrown() {
    IOException broken = new IOException("broken");
    Reader reader =
        new Reader() {
          @Override
          public int read(char[] into, int offset, int length) throws IOException {
            throw broken;
          }

          @Override
          public void close() {}
        };
    assertThatThrownBy(() -> ReadRequest.parse(reader)).isSameAs(broken);
  }
}
