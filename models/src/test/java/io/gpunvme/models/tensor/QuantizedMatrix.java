package io.gpunvme.models.tensor;

import io.gpunvme.models.format.ElementType;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;

/**
 * A matrix in host memory for tests of those who make floats of it, and what these have to be.
 *
 * @param blockRows of a scale; 0: there are none
 */
record QuantizedMatrix(
    ElementType type,
    ElementType targetType,
    int rows,
    int columns,
    int blockRows,
    int blockColumns,
    byte[] stored,
    byte[] scales) {

  static QuantizedMatrix random(
      SplittableRandom random,
      ElementType type,
      ElementType targetType,
      int rows,
      int columns,
      int blockRows,
      int blockColumns) {
    int count =
        blockRows == 0 ? 0 : Math.ceilDiv(rows, blockRows) * Math.ceilDiv(columns, blockColumns);
    ByteBuffer scales = ByteBuffer.allocate(4 * count).order(ByteOrder.LITTLE_ENDIAN);
    for (int i = 0; i < count; i++) {
      boolean any = random.nextInt(8) == 0;
      scales.putFloat(any ? Float.intBitsToFloat(random.nextInt()) : random.nextFloat() - 0.5f);
    }
    byte[] stored = ReferenceFloats.random(random, type, (long) rows * columns);
    return new QuantizedMatrix(
        type, targetType, rows, columns, blockRows, blockColumns, stored, scales.array());
  }

  /** All pairs of types, with scales of each kind where there are any. */
  static List<QuantizedMatrix> all(SplittableRandom random) {
    List<QuantizedMatrix> all = new ArrayList<>();
    for (ElementType target : Quantized.TARGETS) {
      for (ElementType type : Quantized.TYPES) {
        int block = type.blockElements();
        all.add(random(random, type, target, 1, block, 0, 0));
        all.add(random(random, type, target, 3 + random.nextInt(30), 3 * block, 0, 0));
        if (block == 1) {
          int rows = 1 + random.nextInt(90);
          int columns = 1 + random.nextInt(300);
          all.add(random(random, type, target, rows, columns, 0, 0));
          all.add(random(random, type, target, rows, columns, rows, columns));
          all.add(random(random, type, target, rows, columns, 1, columns));
          all.add(random(random, type, target, rows, columns, 1, 1));
          all.add(random(random, type, target, rows, columns, rows, 1));
          all.add(random(random, type, target, 256, 384, 128, 128));
          all.add(random(random, type, target, 200, 333, 128, 128));
          all.add(
              random(
                  random,
                  type,
                  target,
                  rows,
                  columns,
                  1 + random.nextInt(rows),
                  1 + random.nextInt(columns)));
          all.add(random(random, type, target, 1 + random.nextInt(500), 3, 2, 2));
        }
      }
    }
    return all;
  }

  int elements() {
    return rows * columns;
  }

  byte[] expected() {
    ReferenceFloats reference = new ReferenceFloats(type, stored);
    ByteBuffer scale = ByteBuffer.wrap(scales).order(ByteOrder.LITTLE_ENDIAN);
    ByteBuffer floats =
        ByteBuffer.allocate((int) targetType.bytes(elements())).order(ByteOrder.LITTLE_ENDIAN);
    for (int i = 0; i < elements(); i++) {
      float value = reference.element(i);
      if (blockRows > 0) {
        int row = i / columns / blockRows;
        int column = i % columns / blockColumns;
        value *= scale.getFloat(4 * (row * Math.ceilDiv(columns, blockColumns) + column));
      }
      int bits = ReferenceFloats.rounded(value, targetType);
      if (targetType == ElementType.F32) {
        floats.putInt(bits);
      } else {
        floats.putShort((short) bits);
      }
    }
    return floats.array();
  }

  @Override
  public String toString() {
    return "%s to %s, %d x %d, a scale for %d x %d"
        .formatted(type, targetType, rows, columns, blockRows, blockColumns);
  }
}
