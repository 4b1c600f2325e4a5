package io.gpunvme.gpu.transfer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.base.InvalidRequestException;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class TransferPlanTest {
  private static TransferPlan plan(int blockSize, long blocks, long max, Extent... extents) {
    return TransferPlan.of(Direction.READ, 1, blockSize, blocks, max, List.of(extents));
  }

  @Test
  void anExtentIsCutAtTheTransferSize() {
    TransferPlan plan = plan(512, 1000, 4096, new Extent(10, 17, 64));
    assertThat(plan.commands()).isEqualTo(3);
    assertThat(plan.slba(0)).isEqualTo(10);
    assertThat(plan.blocks(0)).isEqualTo(8);
    assertThat(plan.bufferOffset(0)).isEqualTo(64);
    assertThat(plan.slba(1)).isEqualTo(18);
    assertThat(plan.bufferOffset(1)).isEqualTo(64 + 4096);
    assertThat(plan.slba(2)).isEqualTo(26);
    assertThat(plan.blocks(2)).isEqualTo(1);
    assertThat(plan.bytes(2)).isEqualTo(512);
    assertThat(plan.bytes()).isEqualTo(17 * 512);
    assertThat(plan.bufferEnd(0)).isEqualTo(64 + 17 * 512);
  }

  @Test
  void noCommandHasMoreBlocksThanNlbCanSay() {
    TransferPlan plan = plan(512, 1 << 20, 1L << 30, new Extent(0, 65537, 0));
    assertThat(plan.commands()).isEqualTo(2);
    assertThat(plan.blocks(0)).isEqualTo(65536);
    assertThat(plan.blocks(1)).isEqualTo(1);
  }

  @Test
  void anEmptyPlanHasNothingToDo() {
    TransferPlan plan = plan(4096, 10, 4096);
    assertThat(plan.commands()).isZero();
    assertThat(plan.bytes()).isZero();
    assertThat(plan.bufferEnd(0)).isZero();
  }

  @Test
  void commandsKnowTheirBuffers() {
    TransferPlan.Builder builder = TransferPlan.builder(Direction.READ, 1, 512, 1000, 4096);
    for (int i = 0; i < 20; i++) {
      builder.add(i, 1, 512L * i);
    }
    assertThat(builder.build().hasTargets()).isFalse();
    builder.add(100, 17, 3, 64);
    builder.add(200, 1, 1, 0);
    TransferPlan plan = builder.build();
    assertThat(plan.hasTargets()).isTrue();
    assertThat(plan.buffers()).isEqualTo(4);
    assertThat(plan.bufferEnd(0)).isEqualTo(20 * 512);
    assertThat(plan.bufferEnd(1)).isEqualTo(512);
    assertThat(plan.bufferEnd(2)).isZero();
    assertThat(plan.bufferEnd(3)).isEqualTo(64 + 17 * 512);
    assertThat(plan.buffer(0)).isZero();
    assertThat(plan.buffer(19)).isZero();
    assertThat(plan.buffer(20)).isEqualTo(3);
    assertThat(plan.buffer(22)).isEqualTo(3);
    assertThat(plan.buffer(23)).isEqualTo(1);
    assertThat(plan.toJson().toString()).contains("\"buffer\":3");
    assertThatThrownBy(() -> builder.add(0, 1, -1, 0))
        .isInstanceOf(IndexOutOfBoundsException.class);
  }

  @Test
  void eachCommandHasADirection() {
    TransferPlan.Builder builder = TransferPlan.builder(Direction.READ, 1, 512, 1 << 20, 1 << 30);
    builder.add(0, 65536, 0);
    TransferPlan reads = builder.build();
    assertThat(reads.writes()).isFalse();
    builder.add(Direction.WRITE, 65536, 65537, 0, 65536 * 512L);
    TransferPlan both = builder.build();
    assertThat(both.writes()).isTrue();
    assertThat(both.direction(0)).isEqualTo(Direction.READ);
    assertThat(both.direction(1)).isEqualTo(both.direction(2)).isEqualTo(Direction.WRITE);
    assertThat(both.blocks(0)).isEqualTo(both.blocks(1)).isEqualTo(65536);
    assertThat(both.blocks(2)).isEqualTo(1);
    assertThat(both.bytes(1)).isEqualTo(65536 * 512L);
    assertThat(TransferPlan.join(List.of(reads, both)).writes()).isTrue();
    assertThat(TransferPlan.join(List.of(reads, reads)).writes()).isFalse();
  }

  @Test
  void randomPlansCoverTheirExtentsExactly() {
    long seed = Long.getLong("gpunvme.seed", System.nanoTime());
    SplittableRandom random = new SplittableRandom(seed);
    for (int round = 0; round < 500; round++) {
      int blockSize = 512 << random.nextInt(4);
      long namespaceBlocks = 1 + random.nextLong(1 << 20);
      long max = Math.max(blockSize, 4096L << random.nextInt(9));
      List<Extent> extents = new ArrayList<>();
      long offset = 0;
      for (int i = random.nextInt(6); i > 0; i--) {
        long slba = random.nextLong(namespaceBlocks);
        long blocks = 1 + random.nextLong(Math.min(5000, namespaceBlocks - slba));
        extents.add(new Extent(slba, blocks, offset));
        offset += blocks * blockSize + 4L * random.nextInt(100);
      }
      TransferPlan plan =
          TransferPlan.of(Direction.WRITE, 1, blockSize, namespaceBlocks, max, extents);
      int command = 0;
      for (Extent e : extents) {
        long done = 0;
        while (done < e.blocks()) {
          String at = "seed " + seed + ", round " + round + ", command " + command;
          assertThat(plan.slba(command)).as(at).isEqualTo(e.slba() + done);
          assertThat(plan.bufferOffset(command))
              .as(at)
              .isEqualTo(e.bufferOffset() + done * blockSize);
          assertThat(plan.bytes(command)).as(at).isPositive().isLessThanOrEqualTo(max);
          done += plan.blocks(command++);
        }
        assertThat(done).as("seed " + seed).isEqualTo(e.blocks());
      }
      assertThat(plan.commands()).as("seed " + seed).isEqualTo(command);
    }
  }

  @ParameterizedTest(name = "LBA {0}, {1} blocks, offset {2}")
  @CsvSource({
    "0, 0, 0",
    "0, -1, 0",
    "-1, 1, 0",
    "99, 2, 0",
    "100, 1, 0",
    "0, 101, 0",
    "9223372036854775807, 1, 0",
    "1, 9223372036854775807, 0",
    "0, 1, -4",
    "0, 1, 2",
    "0, 1, 9223372036854775804"
  })
  void extentsOutsideAreRefused(long slba, long blocks, long offset) {
    assertThatThrownBy(() -> plan(512, 100, 4096, new Extent(slba, blocks, offset)))
        .isInstanceOf(InvalidRequestException.class);
  }

  @Test
  void aTransferSizeBelowABlockIsRefused() {
    assertThatThrownBy(() -> plan(8192, 100, 4096, new Extent(0, 1, 0)))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("4096")
        .hasMessageContaining("8192");
  }

  @Test
  void jsonSaysEverything() {
    assertThat(plan(512, 100, 4096, new Extent(1, 9, 0)).toJson())
        .hasToString(
            "{\"nsid\":1,\"block_size\":512,\"bytes\":4608,\"commands\":["
                + "{\"direction\":\"read\",\"slba\":1,\"blocks\":8,\"buffer_offset\":0},"
                + "{\"direction\":\"read\",\"slba\":9,\"blocks\":1,\"buffer_offset\":4096}]}");
  }

  @Test
  void bytesThatALongCannotCountAreRefused() {
    for (int shift = 52; shift < 63; shift++) {
      Extent tooLong = new Extent(0, 1L << shift, 0);
      assertThatExceptionOfType(InvalidRequestException.class)
          .isThrownBy(
              () ->
                  TransferPlan.of(
                      Direction.READ, 1, 4096, Long.MAX_VALUE, 1 << 20, List.of(tooLong)));
    }
  }
}
