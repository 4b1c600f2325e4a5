package io.gpunvme.storage.plan;

/** The I/Os and pieces of a plan while they are written, and then for ever. */
final class PlanArrays {
  final int[] member;
  final long[] offset;
  final long[] length;
  final boolean[] direct;

  /** For each I/O, and one past the last. */
  final int[] firstPiece;

  final long[] pieceOffset;
  final long[] pieceLength;
  final int[] target;
  final long[] targetOffset;

  PlanArrays(int ios, int pieces) {
    member = new int[ios];
    offset = new long[ios];
    length = new long[ios];
    direct = new boolean[ios];
    firstPiece = new int[ios + 1];
    pieceOffset = new long[pieces];
    pieceLength = new long[pieces];
    target = new int[pieces];
    targetOffset = new long[pieces];
  }
}
