package io.gpunvme.tools.bench;

/**
 * The arguments of the benchmark kernels: sizes and offsets in bytes, little endian. What the
 * fields mean is said in {@code kernels/bench.cu}, {@code reads.cu}, {@code arrays.cu} and {@code
 * responder.cu}; a test compares both sides.
 */
final class BenchLayout {
  private BenchLayout() {}

  /** {@code struct BenchArgs} of {@code kernels/bench.cu}. */
  static final class BenchArgs {
    static final long SIZE = 64;
    static final long QUEUES = 0;
    static final long DONE = 8;
    static final long FAILED = 16;
    static final long LATENCIES = 24;
    static final long QUEUE_COUNT = 32;
    static final long COMMANDS = 36;
    static final long NSID = 40;
    static final long LANES = 44;
    static final long MODE = 48;
    static final long SERVERS = 52;
    static final long CALLERS = 56;

    private BenchArgs() {}
  }

  /** {@code struct RandomArgs} of {@code kernels/reads.cu}. */
  static final class RandomArgs {
    static final long SIZE = 80;
    static final long QUEUES = 0;
    static final long BUFFER = 8;
    static final long PLACES = 16;
    static final long DONE = 24;
    static final long FAILED = 32;
    static final long BLOCKS = 40;
    static final long NEXT = 48;
    static final long COMMANDS = 56;
    static final long NSID = 60;
    static final long BLOCK_SHIFT = 64;
    static final long SEED = 68;

    private RandomArgs() {}
  }

  /** {@code struct ArrayArgs} of {@code kernels/arrays.cu}. */
  static final class ArrayArgs {
    static final long SIZE = 48;
    static final long ARRAY = 0;
    static final long RESULT = 8;
    static final long STORAGE = 16;
    static final long PAGE_WORDS = 24;
    static final long ROUNDS = 28;
    static final long SEED = 32;
    static final long LANES = 36;
    static final long CHECKS = 40;

    private ArrayArgs() {}
  }

  /** {@code struct ResponderArgs} of {@code kernels/responder.cu}. */
  static final class ResponderArgs {
    static final long SIZE = 64;
    static final long QUEUES = 0;
    static final long ANSWERED = 8;
    static final long WRONG = 16;
    static final long DOORBELLS = 24;
    static final long STOP = 32;
    static final long END_NS = 40;
    static final long QUEUE_COUNT = 48;
    static final long NSID = 52;
    static final long SUMS = 56;

    private ResponderArgs() {}
  }
}
