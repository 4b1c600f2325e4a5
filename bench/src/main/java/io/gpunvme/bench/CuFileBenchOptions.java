package io.gpunvme.bench;

import io.gpunvme.base.ByteSize;
import io.gpunvme.base.InvalidRequestException;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;

/**
 * What {@link CuFileBench} is told.
 *
 * @param ours gpunvme's library
 * @param nvidia the one that it is compared with
 * @param program of {@code cufile.c}
 * @param folder of the file that is read
 * @param bytes of it, a multiple of 1 MiB, 64 MiB or more
 * @param device whether it is read into GPU memory, else into the host's
 * @param repetitions counted turns of each
 * @param out folder of the result files
 */
record CuFileBenchOptions(
    Path ours,
    Optional<Path> nvidia,
    Path program,
    Path folder,
    long bytes,
    boolean device,
    int repetitions,
    Path out) {
  static final String USAGE =
      """
      usage: CuFileBench [--nvidia LIBRARY] [--capi FOLDER] [--folder FOLDER] [--size SIZE] [--memory device|host]
                         [--reps N] [--out FOLDER]
        --nvidia  the library to compare with, a libcufile.so.0 (none)
        --capi    folder of cufile/libcufile.so.0 and of the program cufile-bench (capi/target)
        --folder  where the file is made that is read, and removed at the end (.): on a disk, since cold reads are measured, too
        --size    of it, a multiple of 1MiB, at least 64MiB (1GiB)
        --memory  read into memory of the GPU (device, the default), or the host
        --reps    repetitions of each (7); one more comes first and is not counted
        --out     folder of the result files (bench/results)\
      """;

  private static final long LEAST_BYTES = 64L << 20;
  private static final long STEP = 1 << 20;
  private static final int REPETITIONS = 7;

  /**
   * Reads arguments.
   *
   * @throws IllegalArgumentException if they make no sense
   */
  static CuFileBenchOptions parse(List<String> args) {
    Optional<Path> nvidia = Optional.empty();
    Path capi = Path.of("capi", "target");
    Path folder = Path.of(".");
    long bytes = 1L << 30;
    boolean device = true;
    int repetitions = REPETITIONS;
    Path out = Path.of("bench", "results");
    for (int i = 0; i < args.size(); i += 2) {
      String option = args.get(i);
      if (i + 1 == args.size()) {
        throw new IllegalArgumentException(option + " needs a value");
      }
      String value = args.get(i + 1);
      switch (option) {
        case "--nvidia" -> nvidia = Optional.of(Path.of(value));
        case "--capi" -> capi = Path.of(value);
        case "--folder" -> folder = Path.of(value);
        case "--size" -> bytes = size(value);
        case "--memory" -> device = device(value);
        case "--reps" -> repetitions = number(value);
        case "--out" -> out = Path.of(value);
        default -> throw new IllegalArgumentException("unknown option " + option);
      }
    }
    return new CuFileBenchOptions(
        capi.resolve("cufile").resolve("libcufile.so.0"),
        nvidia,
        capi.resolve("cufile-bench").toAbsolutePath(),
        folder,
        bytes,
        device,
        repetitions,
        out);
  }

  private static long size(String text) {
    long bytes;
    try {
      bytes = ByteSize.parse(text);
    } catch (InvalidRequestException e) {
      throw new IllegalArgumentException("--size: " + e.getMessage(), e);
    }
    if (bytes < LEAST_BYTES || bytes % STEP != 0) {
      throw new IllegalArgumentException(
          "--size %s: a multiple of 1MiB, at least 64MiB".formatted(text));
    }
    return bytes;
  }

  private static boolean device(String text) {
    return switch (text) {
      case "device" -> true;
      case "host" -> false;
      default -> throw new IllegalArgumentException("--memory " + text + ": device or host");
    };
  }

  private static int number(String text) {
    int number;
    try {
      number = Integer.parseInt(text);
    } catch (NumberFormatException e) {
      number = 0;
    }
    if (number < 1) {
      throw new IllegalArgumentException("--reps " + text + ": a number from 1");
    }
    return number;
  }
}
