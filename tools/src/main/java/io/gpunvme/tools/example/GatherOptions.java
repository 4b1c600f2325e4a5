package io.gpunvme.tools.example;

import io.gpunvme.base.InvalidRequestException;

/**
 * How large a table {@link Gather} walks through, and how far.
 *
 * @param rows rows of the table, 1..2^24
 * @param rowBytes bytes of a row, whole blocks, 512..65536
 * @param threads of the GPU, each on a walk of its own, 1..2^20; walks of the CPU
 * @param hops rows each of them reads, 1..2^20
 * @param seed of the table's contents
 */
public record GatherOptions(int rows, int rowBytes, int threads, int hops, int seed) {
  /** Checks the ranges. */
  public GatherOptions {
    range("rows", rows, 1 << 24);
    range("row bytes", rowBytes, 65536);
    range("threads", threads, 1 << 20);
    range("hops", hops, 1 << 20);
  }

  private static void range(String what, int value, int high) {
    if (value < 1 || value > high) {
      throw new InvalidRequestException(what + " " + value + " is outside 1.." + high);
    }
  }
}
