package io.gpunvme.bench;

import java.nio.file.Path;
import java.util.List;

/**
 * What {@link GpuBench} is told.
 *
 * @param out folder of the result files
 * @param repetitions counted ones of each result
 * @param prefixes of the results to take; one is empty: all of them
 * @param folder where the paths' file is made, on the disk to be measured
 * @param file whether to write a file; a quick look leaves none unless told where
 */
record GpuBenchOptions(
    Path out, int repetitions, List<String> prefixes, Path folder, boolean file) {
  static final String USAGE =
      """
      usage: GpuBench [--out FOLDER] [--only PREFIX,…] [--reps N] [--quick] [--folder FOLDER]
        --out    folder of the result files (bench/results)
        --only   take results whose names start so: ceiling.h2d,weights.
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
    List<String> prefixes = List.of("");
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
        case "--only" -> prefixes = List.of(value(args, ++i).split(","));
        case "--folder" -> folder = Path.of(value(args, ++i));
        case "--reps" -> repetitions = number(value(args, ++i));
        default -> throw new IllegalArgumentException("unknown option " + option);
      }
    }
    if (ofPaths(prefixes) && repetitions == REPETITIONS) {
      repetitions = REPETITIONS_OF_PATHS;
    }
    return new GpuBenchOptions(out, repetitions, prefixes, folder, placed || !quick);
  }

  /** Whether it is {@code PathBench} that is asked for, which takes minutes. */
  boolean ofPaths() {
    return ofPaths(prefixes);
  }

  private static boolean ofPaths(List<String> prefixes) {
    return prefixes.getFirst().startsWith(PATHS);
  }

  /** Whether a result is asked for. */
  boolean wants(String id) {
    return prefixes.stream().anyMatch(id::startsWith);
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
