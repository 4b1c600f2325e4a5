package io.gpunvme.models;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.models.TensorPieces.Piece;
import io.gpunvme.models.format.Cases;
import io.gpunvme.models.format.ElementType;
import io.gpunvme.models.format.ModelFiles.Placed;
import io.gpunvme.models.format.TensorInfo;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;

/** Random tensors are cut into pieces that follow each other without gaps. */
class TensorPiecesTest {
  private static final ElementType[] TYPES = {
    ElementType.F32, ElementType.U8, ElementType.Q4_0, ElementType.F4, ElementType.Q6_K
  };

  @Test
  void piecesFollowEachOther() {
    Cases cases = Cases.announce("tensors in pieces");
    for (int number : cases.numbers(2000)) {
      SplittableRandom random = cases.random(number);
      List<TensorInfo> tensors = new ArrayList<>();
      for (int i = random.nextInt(1, 6); i > 0; i--) {
        tensors.add(tensor(random, "t" + i));
      }
      long most = random.nextLong(1, 100_000);
      check(cases.describe(number), tensors, TensorPieces.batches(tensors, most), most);
    }
  }

  private static TensorInfo tensor(SplittableRandom random, String name) {
    ElementType type = TYPES[random.nextInt(TYPES.length)];
    long[] shape = new long[random.nextInt(4)];
    long elements = 1;
    for (int d = 0; d < shape.length; d++) {
      shape[d] = random.nextInt(8) == 0 ? 0 : random.nextInt(3) == 0 ? 1 : random.nextInt(1, 60);
      elements *= shape[d];
    }
    if (elements % type.blockElements() != 0) {
      return shape.length == 0
          ? new TensorInfo(name, ElementType.F32, shape, 0, 4)
          : lastWhole(name, type, shape);
    }
    return new TensorInfo(name, type, shape, 4096, type.bytes(elements));
  }

  private static TensorInfo lastWhole(String name, ElementType type, long[] shape) {
    shape[shape.length - 1] *= type.blockElements();
    long elements = 1;
    for (long d : shape) {
      elements *= d;
    }
    return new TensorInfo(name, type, shape, 4096, type.bytes(elements));
  }

  private static void check(
      String what, List<TensorInfo> tensors, List<List<Piece>> batches, long most) {
    long[] done = new long[tensors.size()];
    for (List<Piece> batch : batches) {
      assertThat(batch.stream().map(Piece::tensor).collect(Collectors.toSet()))
          .as(what)
          .hasSameSizeAs(batch);
      long bytes = 0;
      for (Piece p : batch) {
        TensorInfo t = tensors.get(p.tensor());
        assertThat(p.offset()).as(what).isEqualTo(done[p.tensor()]);
        Part part = Part.of(new Placed(0, t), p.slice());
        assertThat(part.isContiguous()).as(what).isTrue();
        assertThat(part.bytes()).as(what).isEqualTo(p.bytes());
        if (p.bytes() > 0) {
          assertThat(part.offset()).as(what).isEqualTo(t.offset() + p.offset());
        }
        done[p.tensor()] += p.bytes();
        bytes += p.bytes();
      }
      assertThat(batch.size() == 1 || bytes <= most).as(what).isTrue();
    }
    for (int i = 0; i < done.length; i++) {
      assertThat(done[i]).as(what).isEqualTo(tensors.get(i).bytes());
    }
  }
}
