package io.gpunvme.tools.graph;

/**
 * The structures of {@code kernels/graph.cu}, where the fields are explained: sizes and offsets in
 * bytes, little endian; a test compares both sides.
 */
final class GraphLayout {
  private GraphLayout() {}

  /** {@code struct GraphArgs}. */
  static final class GraphArgs {
    static final long SIZE = 168;
    static final long EDGES = 0;
    static final long WEIGHTS = 8;
    static final long OFFSETS = 16;
    static final long OUTCOME = 24;
    static final long VALUES = 32;
    static final long MARKS = 40;
    static final long RANKS = 48;
    static final long NEXT_RANKS = 56;
    static final long SHARES = 64;
    static final long FRONTIER = 72;
    static final long NEXT_FRONTIER = 80;
    static final long FRONTIER_COUNT = 88;
    static final long CAPACITY = 96;
    static final long VERTICES = 104;
    static final long EDGE_COUNT = 112;
    static final long PAGE_SHIFT = 120;
    static final long ROUND = 124;
    static final long NEAR = 128;
    static final long SOURCE = 132;
    static final long BASE = 136;
    static final long DAMPING = 144;
    static final long SEEN = 152;
    static final long TRACE = 160;

    private GraphArgs() {}
  }

  /** {@code struct GraphOutcome}. */
  static final class GraphOutcome {
    static final long SIZE = 64;
    static final long NEXT_COUNT = 0;
    static final long EDGES = 8;
    static final long FAILURE = 16;
    static final long STATUS = 20;
    static final long EDGE = 24;
    static final long VALUE = 32;
    static final long CHANGE = 40;
    static final long NEAREST = 48;
    static final long TRACED = 56;

    private GraphOutcome() {}
  }
}
