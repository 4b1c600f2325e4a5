package io.gpunvme.tools.bench;

/** The kernels that {@link QueueBench} measures queues with. */
enum BenchKernel {
  /** One warp per queue, kept full. */
  EXCLUSIVE("gpunvme_bench_exclusive", false, false),
  /** A block of {@link QueueCase#WARPS_PER_OWNER} warps per queue, kept full. */
  BLOCK("gpunvme_bench_block", false, false),
  /** Any number of warps on all queues. */
  SHARED("gpunvme_bench_shared", true, false),
  /** The same, and others that serve the queues. */
  SERVED("gpunvme_bench_served", true, false),
  /** One command at a time on one exclusive queue. */
  EXCLUSIVE_QD1("gpunvme_bench_qd1", false, true),
  /** One thread's commands, one at a time, on one shared queue. */
  SHARED_QD1("gpunvme_bench_shared_qd1", true, true),
  /** The same, and a warp that serves it. */
  SERVED_QD1("gpunvme_bench_served_qd1", true, true);

  private final String symbol;
  private final boolean shared;
  private final boolean latency;

  BenchKernel(String symbol, boolean shared, boolean latency) {
    this.symbol = symbol;
    this.shared = shared;
    this.latency = latency;
  }

  /** Its name in the device code. */
  String symbol() {
    return symbol;
  }

  /** Whether it needs queues for any number of threads. */
  boolean shared() {
    return shared;
  }

  /** Whether it records what every command took. */
  boolean latency() {
    return latency;
  }

  /** Whether any number of warps call, so that a queue's commands come in any order. */
  boolean crowded() {
    return this == SHARED || this == SERVED;
  }

  /** Whether warps of their own serve the queues. */
  boolean served() {
    return this == SERVED || this == SERVED_QD1;
  }
}
