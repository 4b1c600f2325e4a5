package io.gpunvme.bench;

import java.nio.file.Path;
import java.util.List;

/**
 * What {@link GpuBench} is told.
 *
 * @param out folder of the result files
 * @param repetitions counted ones of each result
 * @param prefix of the results to take; empty: all of them
 * @param folder where the paths' file is made, on the disk to be measured
 * @param file whether to write a file; a quick look leaves none unless told where
 */
record GpuBenchOptions(Path out, int repetitions, String prefix, Path folder, boolean file) {
  static final String USAGE =
      """
      usage: GpuBench [--out FOLDER] [--only PREFIX] [--reps N] [--quick] [--folder FOLDER]
        --out    folder of the result files (bench/results)
        --only   take results whose name starts so: queue.host.exclusive
                 paths: a file of 1 GiB by every path, which takes minutes and is not done otherwise
        --reps   repetitions of each (20; paths 5); one more comes first and is not counted
        --quick  3 repetitions, and a file only with --out
        --folder where the file of --only paths is made (the folder for temporary files)\
      """;

  private static final int REPETITIONS = 20;
  private static final int REPETITIONS_OF_PATHS = 5;
  private static final int QUICK = 3;

  /** What the names of {@code PathBench}'s results start with. */
  static final String PATHS = "paths";

  /**
   * Reads arguments.
   *
   * @throws IllegalArgumentException if they make no sense
   */
  static GpuBenchOptions parse(List<String> args) {
    Path out = Path.of("bench", "results");
    int repetitions = REPETITIONS;
    String prefix = "";
    Path folder = Path.of(System.getProperty("java.io.tmpdir"));
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
        case "--folder" -> folder = Path.of(value(args, ++i));
        case "--reps" -> repetitions = number(value(args, ++i));
        default -> throw new IllegalArgumentException("unknown option " + option);
      }
    }
    if (prefix.startsWith(PATHS) && repetitions == REPETITIONS) {
      repetitions = REPETITIONS_OF_PATHS;
    }
    return new GpuBenchOptions(out, repetitions, prefix, folder, placed || !quick);
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
