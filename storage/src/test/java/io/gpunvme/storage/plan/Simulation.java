package io.gpunvme.storage.plan;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.base.Align;
import java.util.Arrays;

/** Carries plans out on arrays, byte by byte, and checks what every plan has to keep to. */
final class Simulation {
  /** No byte of a source is 0, so that what a plan left out of a target can be seen. */
  static byte[] source(int size) {
    byte[] source = new byte[size];
    for (int i = 0; i < size; i++) {
      source[i] = (byte) (1 + (i * 31 + i / 251) % 255);
    }
    return source;
  }

  private final byte[] source;
  private final Ranges ranges;
  private final PlanOptions options;
  private final Plan plan;

  /** How often each byte of the source is read, by member and offset there. */
  private final int[][] reads;

  Simulation(byte[] source, Ranges ranges, PlanOptions options) {
    this.source = source;
    this.ranges = ranges;
    this.options = options;
    this.plan = Planner.plan(ranges, options);
    Stripes stripes = options.stripes();
    reads = new int[stripes.members()][];
    for (int m = 0; m < reads.length; m++) {
      long size = Align.up(stripes.memberSize(m, source.length), options.alignment());
      reads[m] = new int[(int) size];
    }
  }

  Plan plan() {
    return plan;
  }

  /** Everything. */
  void check() {
    byte[][] targets = new byte[targets()][];
    int[] ends = new int[targets.length];
    for (int t = 0; t < targets.length; t++) {
      ends[t] = (int) ranges.targetEnd(t);
      targets[t] = new byte[ends[t]];
    }
    for (int io = 0; io < plan.ios(); io++) {
      checkIo(io);
      carryOut(io, targets);
    }
    for (int t = 0; t < targets.length; t++) {
      assertThat(targets[t]).as("target %d", t).isEqualTo(expected(t, ends[t]));
    }
    checkTotals();
    checkGaps();
    checkOrder();
  }

  private int targets() {
    int most = 0;
    for (int i = 0; i < ranges.size(); i++) {
      most = Math.max(most, ranges.target(i) + 1);
    }
    return most;
  }

  private byte[] expected(int target, int size) {
    byte[] bytes = new byte[size];
    for (int i = 0; i < ranges.size(); i++) {
      if (ranges.target(i) == target) {
        System.arraycopy(
            source,
            (int) ranges.offset(i),
            bytes,
            (int) Math.min(size, ranges.targetOffset(i)),
            (int) ranges.length(i));
      }
    }
    return bytes;
  }

  private void checkIo(int io) {
    long alignment = options.alignment();
    assertThat(plan.offset(io) % alignment).as("offset of I/O %d", io).isZero();
    assertThat(plan.length(io) % alignment).as("length of I/O %d", io).isZero();
    assertThat(plan.length(io)).as("I/O %d", io).isPositive().isLessThanOrEqualTo(maxBytes());
    assertThat(plan.member(io)).isBetween(0, options.stripes().members() - 1);
    assertThat(plan.offset(io) + plan.length(io))
        .isLessThanOrEqualTo(reads[plan.member(io)].length);
    assertThat(plan.firstPiece(io)).isLessThan(plan.endPiece(io));
    if (plan.isDirect(io)) {
      int piece = plan.firstPiece(io);
      assertThat(plan.endPiece(io)).isEqualTo(piece + 1);
      assertThat(plan.pieceOffset(piece)).isZero();
      assertThat(plan.pieceLength(piece)).isEqualTo(plan.length(io));
      assertThat(plan.targetOffset(piece) % options.targetAlignment()).isZero();
    }
  }

  private long maxBytes() {
    return options.maxBytes();
  }

  private void carryOut(int io, byte[][] targets) {
    int member = plan.member(io);
    for (int i = 0; i < plan.length(io); i++) {
      reads[member][(int) plan.offset(io) + i]++;
    }
    for (int piece = plan.firstPiece(io); piece < plan.endPiece(io); piece++) {
      assertThat(plan.pieceLength(piece)).isPositive();
      assertThat(plan.pieceOffset(piece)).isNotNegative();
      assertThat(plan.pieceOffset(piece) + plan.pieceLength(piece))
          .isLessThanOrEqualTo(plan.length(io));
      if (piece > plan.firstPiece(io)) {
        assertThat(plan.pieceOffset(piece)).isGreaterThanOrEqualTo(plan.pieceOffset(piece - 1));
      }
      for (int i = 0; i < plan.pieceLength(piece); i++) {
        long on = plan.offset(io) + plan.pieceOffset(piece) + i;
        long from = options.stripes().offset(member, on);
        int to = (int) plan.targetOffset(piece) + i;
        assertThat(targets[plan.target(piece)][to]).as("written once").isZero();
        targets[plan.target(piece)][to] = source[(int) from];
      }
    }
  }

  /** How often each byte of the members is asked for. */
  private int[][] asked() {
    int[][] asked = new int[reads.length][];
    Arrays.setAll(asked, m -> new int[reads[m].length]);
    Stripes stripes = options.stripes();
    for (int i = 0; i < ranges.size(); i++) {
      for (long at = ranges.offset(i); at < ranges.offset(i) + ranges.length(i); at++) {
        asked[stripes.member(at)][(int) stripes.memberOffset(at)]++;
      }
    }
    return asked;
  }

  private void checkTotals() {
    int[][] asked = asked();
    long askedBytes = 0;
    long readBytes = 0;
    long overread = 0;
    for (int m = 0; m < reads.length; m++) {
      for (int i = 0; i < reads[m].length; i++) {
        assertThat(reads[m][i]).as("reads of byte %d of member %d", i, m).isLessThanOrEqualTo(1);
        askedBytes += asked[m][i];
        readBytes += reads[m][i];
        overread += reads[m][i] == 1 && asked[m][i] == 0 ? 1 : 0;
      }
    }
    assertThat(plan.bytesAsked()).isEqualTo(askedBytes);
    assertThat(plan.bytesRead()).isEqualTo(readBytes);
    assertThat(plan.bytesOverread()).isEqualTo(overread);
    long direct = 0;
    int directIos = 0;
    for (int io = 0; io < plan.ios(); io++) {
      direct += plan.isDirect(io) ? plan.length(io) : 0;
      directIos += plan.isDirect(io) ? 1 : 0;
    }
    assertThat(plan.directBytes()).isEqualTo(direct);
    assertThat(plan.stagedBytes()).isEqualTo(askedBytes - direct);
    assertThat(plan.directIos()).isEqualTo(directIos);
    assertThat(plan.ranges()).isEqualTo(ranges.size());
  }

  /**
   * Inside an I/O, whole blocks that nobody asks for are at most the gap together, and it neither
   * begins nor ends with one. Between two staged ones there is more than the gap, or they would be
   * too long together.
   */
  private void checkGaps() {
    boolean[][] wanted = wantedBlocks();
    int block = (int) options.alignment();
    for (int io = 0; io < plan.ios(); io++) {
      boolean[] here = wanted[plan.member(io)];
      int first = (int) (plan.offset(io) / block);
      int end = first + (int) (plan.length(io) / block);
      assertThat(here[first]).as("I/O %d begins with what is asked for", io).isTrue();
      assertThat(here[end - 1]).as("I/O %d ends with what is asked for", io).isTrue();
      long unwanted = 0;
      for (int b = first; b < end; b++) {
        unwanted = here[b] ? 0 : unwanted + block;
        assertThat(unwanted).as("gap in I/O %d", io).isLessThanOrEqualTo(options.gap());
      }
      checkNext(io, here, block);
    }
  }

  private boolean[][] wantedBlocks() {
    int[][] asked = asked();
    boolean[][] wanted = new boolean[asked.length][];
    int block = (int) options.alignment();
    for (int m = 0; m < asked.length; m++) {
      wanted[m] = new boolean[asked[m].length / block];
      for (int i = 0; i < asked[m].length; i++) {
        wanted[m][i / block] |= asked[m][i] > 0;
      }
    }
    return wanted;
  }

  private void checkNext(int io, boolean[] wanted, int block) {
    if (plan.isDirect(io)) {
      return;
    }
    long end = plan.offset(io) + plan.length(io);
    for (int other = 0; other < plan.ios(); other++) {
      long distance = plan.offset(other) - end;
      if (plan.member(other) == plan.member(io)
          && !plan.isDirect(other)
          && distance >= 0
          && distance <= options.gap()) {
        int next = (int) (plan.offset(other) / block);
        while (next < wanted.length && wanted[next]) {
          next++;
        }
        long together = (long) next * block - plan.offset(io);
        assertThat(together).as("I/Os %d and %d", io, other).isGreaterThan(longest());
      }
    }
  }

  private long longest() {
    return Align.down(options.maxBytes(), options.alignment());
  }

  private void checkOrder() {
    for (int io = 1; io < plan.ios(); io++) {
      long before = key(io - 1);
      long here = key(io);
      assertThat(here).as("I/O %d in order", io).isGreaterThanOrEqualTo(before);
      if (here == before) {
        assertThat(sourceOffset(io)).isGreaterThan(sourceOffset(io - 1));
      }
    }
  }

  private long key(int io) {
    return options.order() == IoOrder.OFFSET ? sourceOffset(io) : firstRange(io);
  }

  private long sourceOffset(int io) {
    return options.stripes().offset(plan.member(io), plan.offset(io));
  }

  /** The first range with a byte among the pieces of an I/O. */
  private long firstRange(int io) {
    for (int i = 0; i < ranges.size(); i++) {
      for (int piece = plan.firstPiece(io); piece < plan.endPiece(io); piece++) {
        long start = Math.max(plan.targetOffset(piece), ranges.targetOffset(i));
        long end =
            Math.min(
                plan.targetOffset(piece) + plan.pieceLength(piece),
                ranges.targetOffset(i) + ranges.length(i));
        if (plan.target(piece) == ranges.target(i) && start < end) {
          return i;
        }
      }
    }
    throw new AssertionError("I/O " + io + " serves nobody");
  }
}
