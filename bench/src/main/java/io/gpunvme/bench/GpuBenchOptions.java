package io.gpunvme.bench;

import java.nio.file.Path;
import java.util.List;

/**
 * What {@link GpuBench} is told.
 *
 * @param out folder of the result files
 * @param repetitions counted ones of each result
 * @param prefix of the results to take; empty: all of them
 * @param file whether to write a file; a quick look leaves none unless told where
 */
record GpuBenchOptions(Path out, int repetitions, String prefix, boolean file) {
  static final String USAGE =
      """
      usage: GpuBench [--out FOLDER] [--only PREFIX] [--reps N] [--quick]
        --out    folder of the result files (bench/results)
        --only   take results whose name starts so: queue.host.exclusive
        --reps   repetitions of each (20); one more comes first and is not counted
        --quick  3 repetitions, and a file only with --out\
      """;

  private static final int REPETITIONS = 20;
  private static final int QUICK = 3;

  /**
   * Reads arguments.
   *
   * @throws IllegalArgumentException if they make no sense
   */
  static GpuBenchOptions parse(List<String> args) {
    Path out = Path.of("bench", "results");
    int repetitions = REPETITIONS;
    String prefix = "";
    boolean quick = false;
    boolean placed = false;
    for (int i = 0; i < args.size(); i++) {
      String option = args.get(i);
      switch (option) {
        case "--quick" -> {
          repetitions = QUICK;
          quick = true;
        }
        case "--out" -> {
          out = Path.of(value(args, ++i));
          placed = true;
        }
        case "--only" -> prefix = value(args, ++i);
        case "--reps" -> repetitions = number(value(args, ++i));
        default -> throw new IllegalArgumentException("unknown option " + option);
      }
    }
    return new GpuBenchOptions(out, repetitions, prefix, placed || !quick);
  }

  private static String value(List<String> args, int index) {
    if (index >= args.size()) {
      throw new IllegalArgumentException(args.getLast() + " needs a value");
    }
    return args.get(index);
  }

  private static int number(String text) {
    if (!text.matches("[1-9]\\d{0,3}")) {
      throw new IllegalArgumentException("--reps " + text + " is not a number from 1 to 9999");
    }
    return Integer.parseInt(text);
  }
}
