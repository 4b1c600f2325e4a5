package io.gpunvme.storage.plan;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.base.InvalidRequestException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What plans look like, by example. */
class PlannerTest {
  private static final long SIZE = 1 << 20;

  private static PlanOptions.Builder options() {
    return PlanOptions.of(SIZE).gap(0);
  }

  /** Quadruples of offset, length, target and target offset. */
  private static Ranges ranges(long... numbers) {
    Ranges.Builder builder = Ranges.builder();
    for (int i = 0; i < numbers.length; i += 4) {
      builder.add(numbers[i], numbers[i + 1], (int) numbers[i + 2], numbers[i + 3]);
    }
    return builder.build();
  }

  /** {@code D offset+length} or {@code S offset+length offset+length>target:offset …}, by line. */
  private static String text(Plan plan) {
    StringBuilder text = new StringBuilder();
    for (int io = 0; io < plan.ios(); io++) {
      text.append(plan.isDirect(io) ? "D " : "S ");
      if (plan.options().stripes().members() > 1) {
        text.append(plan.member(io)).append('/');
      }
      text.append(plan.offset(io)).append('+').append(plan.length(io));
      for (int piece = plan.firstPiece(io); piece < plan.endPiece(io); piece++) {
        text.append(' ');
        if (!plan.isDirect(io)) {
          text.append(plan.pieceOffset(piece)).append('+').append(plan.pieceLength(piece));
        }
        text.append('>').append(plan.target(piece)).append(':').append(plan.targetOffset(piece));
      }
      text.append('\n');
    }
    return text.toString();
  }

  private static String plan(PlanOptions.Builder options, long... numbers) {
    return text(Planner.plan(ranges(numbers), options.build()));
  }

  @Test
  void nothingNeedsNothing() {
    Plan plan = Planner.plan(ranges(5, 0, 0, 0, 5, 0, 0, 0), options().build());

    assertThat(plan.ios()).isZero();
    assertThat(plan.pieces()).isZero();
    assertThat(plan.bytesRead()).isZero();
    assertThat(plan.ranges()).isEqualTo(2);
  }

  @Test
  void anAlignedRangeIsDirect() {
    assertThat(plan(options(), 4096, 8192, 1, 4096)).isEqualTo("D 4096+8192 >1:4096\n");
  }

  @Test
  void aLongUnalignedRangeIsDirectExceptAtItsEnds() {
    assertThat(plan(options(), 1000, 20000, 0, 1000))
        .isEqualTo("S 0+4096 1000+3096>0:1000\nD 4096+16384 >0:4096\nS 20480+4096 0+520>0:20480\n");
  }

  @Test
  void aLongRangeThatIsMisalignedInTheTargetIsStaged() {
    assertThat(plan(options().maxBytes(16384), 4096, 20480, 0, 8))
        .isEqualTo("S 4096+16384 0+16384>0:8\nS 20480+4096 0+4096>0:16392\n");
  }

  @Test
  void aRangeWithinTheGapIsNotTakenApart() {
    assertThat(plan(options().gap(16384), 1000, 20000, 0, 1000))
        .isEqualTo("S 0+24576 1000+20000>0:1000\n");
    assertThat(plan(options().gap(16383), 1000, 20000, 0, 1000)).contains("D 4096+16384");
  }

  @Test
  void directIosAreCutAtTheLongest() {
    assertThat(plan(options().maxBytes(10000), 0, 20480, 0, 0))
        .isEqualTo("D 0+8192 >0:0\nD 8192+8192 >0:8192\nD 16384+4096 >0:16384\n");
  }

  @Test
  void theTargetsAlignmentMayBeTheCoarserOne() {
    PlanOptions.Builder options = options().alignment(512).targetAlignment(4096);

    assertThat(plan(options, 512, 16384, 0, 512))
        .isEqualTo("S 512+3584 0+3584>0:512\nD 4096+12800 >0:4096\n");
    assertThat(plan(options, 512, 16384, 0, 256)).startsWith("S 512+16384 ");
    assertThat(plan(options.maxBytes(9000), 0, 16384, 0, 0))
        .isEqualTo("D 0+8192 >0:0\nD 8192+8192 >0:8192\n");
    assertThat(plan(options.maxBytes(2048), 0, 4096, 0, 0))
        .isEqualTo("S 0+2048 0+2048>0:0\nS 2048+2048 0+2048>0:2048\n");
  }

  @Test
  void orTheFinerOne() {
    PlanOptions.Builder options = options().targetAlignment(4);

    assertThat(plan(options, 4096, 8192, 0, 12)).isEqualTo("D 4096+8192 >0:12\n");
    assertThat(plan(options, 4096, 8192, 0, 13)).startsWith("S ");
  }

  @Test
  void neighboursInABlockAreReadTogether() {
    assertThat(plan(options(), 100, 10, 0, 0, 4000, 200, 1, 5))
        .isEqualTo("S 0+8192 100+10>0:0 4000+200>1:5\n");
  }

  @Test
  void neighboursAreReadTogetherUpToTheGap() {
    long[] ranges = {0, 10, 0, 0, 12288, 10, 0, 10};

    assertThat(plan(options().gap(8192), ranges)).isEqualTo("S 0+16384 0+10>0:0 12288+10>0:10\n");
    assertThat(plan(options().gap(8191), ranges))
        .isEqualTo("S 0+4096 0+10>0:0\nS 12288+4096 0+10>0:10\n");
  }

  @Test
  void aGapIsNotReadIfWhatFollowsDoesNotFit() {
    assertThat(plan(options().gap(8192).maxBytes(20480), 0, 10, 0, 0, 12288, 10000, 0, 10))
        .isEqualTo("S 0+4096 0+10>0:0\nS 12288+12288 0+10000>0:10\n");
  }

  @Test
  void rangesThatGoOnInSourceAndTargetAreOne() {
    assertThat(plan(options(), 4096, 96, 0, 4096, 0, 4096, 0, 0, 4192, 4000, 0, 4192))
        .isEqualTo("D 0+8192 >0:0\n");
  }

  @Test
  void whatTwoRangesAskForIsReadOnce() {
    assertThat(plan(options(), 0, 8192, 0, 0, 0, 8192, 1, 0))
        .isEqualTo("S 0+8192 0+8192>0:0 0+8192>1:0\n");
  }

  @Test
  void onlyWhatTwoRangesAskForIsStaged() {
    assertThat(plan(options(), 0, 40960, 0, 0, 8192, 10, 1, 0))
        .isEqualTo("D 0+8192 >0:0\nS 8192+4096 0+4096>0:8192 0+10>1:0\nD 12288+28672 >0:12288\n");
  }

  @Test
  void theLastBlockMayEndPastTheSource() {
    Plan plan = Planner.plan(ranges(0, 5000, 0, 0), PlanOptions.of(5000).gap(0).build());

    assertThat(text(plan)).isEqualTo("D 0+4096 >0:0\nS 4096+4096 0+904>0:4096\n");
    assertThat(plan.bytesRead()).isEqualTo(8192);
    assertThat(plan.bytesAsked()).isEqualTo(5000);
    assertThat(plan.bytesOverread()).isEqualTo(3192);
    assertThat(plan.directBytes()).isEqualTo(4096);
    assertThat(plan.stagedBytes()).isEqualTo(904);
  }

  @Test
  void stripesTakeTurns() {
    Stripes stripes = new Stripes(2, 8192);

    assertThat(plan(options().stripes(stripes), 4096, 24576, 0, 4096))
        .isEqualTo(
            "D 0/4096+4096 >0:4096\nD 1/0+8192 >0:8192\nD 0/8192+8192 >0:16384\n"
                + "D 1/8192+4096 >0:24576\n");
  }

  @Test
  void unitsOfAMemberAreReadTogetherWithinTheGap() {
    assertThat(plan(options().stripes(new Stripes(2, 4096)).gap(4096), 0, 16384, 0, 0))
        .isEqualTo(
            "S 0/0+8192 0+4096>0:0 4096+4096>0:8192\nS 1/0+8192 0+4096>0:4096 4096+4096>0:12288\n");
  }

  @Test
  void iosComeByOffsetOrAsGiven() {
    long[] ranges = {65536, 4096, 0, 0, 0, 4096, 0, 8192, 32768, 4096, 0, 20480, 0, 0, 0, 0};

    assertThat(plan(options(), ranges))
        .isEqualTo("D 0+4096 >0:8192\nD 32768+4096 >0:20480\nD 65536+4096 >0:0\n");
    assertThat(plan(options().order(IoOrder.GIVEN), ranges))
        .isEqualTo("D 65536+4096 >0:0\nD 0+4096 >0:8192\nD 32768+4096 >0:20480\n");
  }

  @Test
  void rangesThatGoOnAreNotOneIfThatBreaksTheirOrder() {
    long[] ranges = {4096, 4096, 0, 4096, 0, 4096, 0, 0};

    assertThat(plan(options(), ranges)).isEqualTo("D 0+8192 >0:0\n");
    assertThat(plan(options().order(IoOrder.GIVEN), ranges))
        .isEqualTo("D 4096+4096 >0:4096\nD 0+4096 >0:0\n");
  }

  @Test
  void aPlanIsTheSameEveryTime() {
    long[] ranges = {9000, 30000, 0, 0, 500, 400, 1, 7, 700, 20000, 2, 0};

    assertThat(plan(options(), ranges)).isEqualTo(plan(options(), ranges));
  }

  @Test
  void jsonHasTheTotalsAndTheFirstIos() {
    Plan plan = Planner.plan(ranges(4096, 4096, 0, 0, 9000, 10, 1, 3), options().build());

    assertThat(plan.toJson(1))
        .hasToString(
            "{\"options\":{\"source_size\":1048576,\"alignment\":4096,\"target_alignment\":4096,"
                + "\"max_bytes\":1048576,\"gap\":0,\"stripe_members\":1,\"order\":\"offset\"},"
                + "\"ranges\":2,\"bytes_asked\":4106,\"bytes_read\":8192,\"bytes_overread\":4086,"
                + "\"bytes_direct\":4096,\"bytes_staged\":10,\"ios\":2,\"ios_direct\":1,"
                + "\"pieces\":2,\"plan\":[{\"member\":0,\"offset\":4096,\"length\":4096,"
                + "\"direct\":true,\"pieces\":[{\"offset\":0,\"length\":4096,\"target\":0,"
                + "\"target_offset\":0}]}],\"ios_left_out\":1}");
    assertThat(plan.toJson(5).getAsJsonArray("plan")).hasSize(2);
    assertThat(plan.toJson(0).get("ios_left_out").getAsInt()).isEqualTo(2);
  }

  @ParameterizedTest(name = "{0}+{1} to {2}:{3}")
  @CsvSource({
    "-1, 1, 0, 0, negative",
    "0, -1, 0, 0, negative",
    "0, 1, -1, 0, negative",
    "0, 1, 0, -1, negative",
    "9223372036854775807, 1, 0, 0, too large",
    "0, 2, 0, 9223372036854775806, too large",
    "0, 1048577, 0, 0, 'past the source''s end, 1048576'",
    "1048576, 1, 0, 0, past the source",
    "1048577, 0, 0, 0, past the source",
    "1, 1048576, 0, 0, past the source",
    "9223372036854775806, 1, 0, 0, past the source",
  })
  void rangesThatMakeNoSenseAreRefused(long offset, long length, int target, long at, String why) {
    assertThatThrownBy(
            () ->
                Planner.plan(
                    Ranges.builder().add(0, 1, 7, 0).add(offset, length, target, at).build(),
                    options().build()))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("range 1")
        .hasMessageContaining(why);
  }

  @Test
  void rangesThatOverlapInATargetAreRefused() {
    assertThatThrownBy(() -> plan(options(), 0, 10, 0, 20, 100, 10, 0, 0, 50, 1, 0, 29))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("range 2 (1 bytes at 50, to 29 of target 0)")
        .hasMessageContaining("range 0 (10 bytes at 0, to 20 of target 0)");
    // Each of these is next to the other, in another target, or empty.
    assertThat(plan(options(), 0, 10, 0, 20, 0, 10, 0, 30, 0, 10, 0, 10, 0, 9, 1, 20, 0, 0, 0, 25))
        .isNotEmpty();
  }

  @Test
  void bytesThatCannotBeCountedAreRefused() {
    Ranges huge = ranges(0, Long.MAX_VALUE / 2, 0, 0, 0, Long.MAX_VALUE / 2, 1, 0, 0, 2, 2, 0);
    PlanOptions options = PlanOptions.of(Long.MAX_VALUE - 4096).maxBytes(Long.MAX_VALUE).build();

    assertThatThrownBy(() -> Planner.plan(huge, options))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("2^63");
  }

  @Test
  void plansThatAreTooLongAreRefusedBeforeTheyAreMade() {
    long size = 1L << 60;
    PlanOptions striped = PlanOptions.of(size).stripes(new Stripes(2, 4096)).maxBytes(size).build();
    tooLong(ranges(0, size, 0, 0), striped);
    tooLong(ranges(0, size, 0, 0), PlanOptions.of(size).build());
    tooLong(ranges(0, size, 0, 1), PlanOptions.of(size).build());
    // Few I/Os, and each of them serves many ranges.
    Ranges.Builder everyone = Ranges.builder();
    for (int i = 0; i < 200; i++) {
      everyone.add(0, 1L << 30, i, 0);
    }
    tooLong(everyone.build(), PlanOptions.of(size).maxBytes(4096).build());
  }

  private static void tooLong(Ranges ranges, PlanOptions options) {
    assertThatThrownBy(() -> Planner.plan(ranges, options))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("split the request");
  }

  @Test
  void theLargestSourceCanBePlanned() {
    long size = Long.MAX_VALUE - 4096;
    Plan plan =
        Planner.plan(
            ranges(size - 5000, 5000, 0, 0, 0, 8192, 1, 0), PlanOptions.of(size).gap(0).build());

    assertThat(text(plan)).isEqualTo("D 0+8192 >1:0\nS 9223372036854763520+8192 3191+5000>0:0\n");
    Plan one =
        Planner.plan(ranges(0, size, 0, 0), PlanOptions.of(size).maxBytes(Long.MAX_VALUE).build());
    assertThat(one.ios()).isEqualTo(2);
  }

  @ParameterizedTest(name = "size {0}, alignments {1} and {2}, max {3}, gap {4}, {5}x{6}")
  @CsvSource({
    "-1, 4096, 4096, 4096, 0, 1, 1, source of -1 bytes",
    "9223372036854775807, 4096, 4096, 4096, 0, 1, 1, source of",
    "0, 0, 4096, 4096, 0, 1, 1, alignment 0 is not a power of two",
    "0, 3, 4096, 4096, 0, 1, 1, alignment 3 is not a power of two",
    "0, -4096, 4096, 4096, 0, 1, 1, alignment -4096 is not",
    "0, -9223372036854775808, 4096, 4096, 0, 1, 1, is not a power of two",
    "0, 4096, 0, 4096, 0, 1, 1, target alignment 0 is not",
    "0, 4096, 24, 4096, 0, 1, 1, target alignment 24 is not",
    "0, 4096, 4096, 4095, 0, 1, 1, longest I/O of 4095 bytes is below the alignment",
    "0, 4096, 4096, -1, 0, 1, 1, longest I/O of -1",
    "0, 4096, 4096, 4096, -1, 1, 1, gap of -1 bytes is negative",
    "0, 4096, 4096, 4096, 0, 2, 4097, not a multiple of 4096",
    "0, 4096, 4096, 4096, 0, 2, 512, not a multiple of 4096",
    "0, 4096, 4096, 4096, 0, 0, 4096, are not possible",
    "0, 4096, 4096, 4096, 0, 2, 0, are not possible",
    "0, 4096, 4096, 4096, 0, -1, 4096, are not possible",
    "0, 4096, 4096, 4096, 0, 2, 4611686018427387904, are not possible",
  })
  void optionsThatMakeNoSenseAreRefused(
      long size,
      long alignment,
      long targetAlignment,
      long max,
      long gap,
      int members,
      long unit,
      String why) {
    assertThatThrownBy(
            () ->
                PlanOptions.of(size)
                    .alignment(alignment)
                    .targetAlignment(targetAlignment)
                    .maxBytes(max)
                    .gap(gap)
                    .stripes(new Stripes(members, unit))
                    .build())
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining(why);
  }
}
