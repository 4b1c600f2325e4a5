package io.gpunvme.bench;

import io.gpunvme.base.ByteSize;
import io.gpunvme.base.InvalidRequestException;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;

/**
 * What {@link BindingsBench} is told.
 *
 * @param accelerator {@code gpu} or {@code cpu}
 * @param out folder of the result files
 * @param repetitions counted turns of each side
 * @param size of a read and of the embedded SSDs, bytes, a multiple of 4096
 * @param prefixes of the results to take; one is empty: all of them
 * @param capi folder of the C library and of {@code bindings}, the program of {@code bindings.c}
 * @param home folder of the jars that all sides use
 * @param python command
 * @param sources folder of the Python package
 */
record BindingsBenchOptions(
    String accelerator,
    Path out,
    int repetitions,
    long size,
    List<String> prefixes,
    Path capi,
    Path home,
    String python,
    Path sources) {
  static final String USAGE =
      """
      usage: BindingsBench [--accelerator gpu|cpu] [--out FOLDER] [--reps N] [--size SIZE] [--only PREFIX,…]
                           [--capi FOLDER] [--python COMMAND] [--package FOLDER]
        --accelerator  what is read to: a GPU (the default), or the stand-in in host memory
        --out          folder of the result files (bench/results)
        --reps         repetitions of each (20); ten more come first and are not counted
        --size         of a read, and of the embedded SSD that each side has (1GiB)
        --only         take results whose names start so: bindings.call.,bindings.read.python
                       those of Java, beside which the others are, are always taken with them
        --capi         folder of libgpunvme.so and of the program bindings (capi/target)
        --python       an interpreter that has PyTorch (python3)
        --package      folder of the Python package (python/src)
      The jars are in GPUNVME_HOME, or in the folder app beside the library. Each side holds up to three times
      the size, in memory of the host and of the GPU.\
      """;

  private static final int REPETITIONS = 20;
  private static final int BLOCK = 4096;

  /**
   * Reads arguments.
   *
   * @param environment GPUNVME_HOME is looked at
   * @throws IllegalArgumentException if they make no sense
   */
  static BindingsBenchOptions parse(List<String> args, Map<String, String> environment) {
    String accelerator = "gpu";
    Path out = Path.of("bench", "results");
    int repetitions = REPETITIONS;
    long size = 1L << 30;
    List<String> prefixes = List.of("");
    Path capi = Path.of("capi", "target");
    String python = "python3";
    Path sources = Path.of("python", "src");
    for (int i = 0; i < args.size(); i += 2) {
      String option = args.get(i);
      if (!option.startsWith("--")) {
        throw new IllegalArgumentException("unknown argument " + option);
      }
      switch (option) {
        case "--accelerator" -> accelerator = accelerator(value(args, i));
        case "--out" -> out = Path.of(value(args, i));
        case "--reps" -> repetitions = number(value(args, i));
        case "--size" -> size = size(value(args, i));
        case "--only" -> prefixes = prefixes(value(args, i));
        case "--capi" -> capi = Path.of(value(args, i));
        case "--python" -> python = value(args, i);
        case "--package" -> sources = Path.of(value(args, i));
        default -> throw new IllegalArgumentException("unknown option " + option);
      }
    }
    String home = environment.get("GPUNVME_HOME");
    return new BindingsBenchOptions(
        accelerator,
        out,
        repetitions,
        size,
        prefixes,
        capi,
        home == null ? capi.resolve("app") : Path.of(home),
        python,
        sources);
  }

  /** Whether results of a kind are asked for: {@link BindingsSide#CALL} or READ. */
  boolean wantsAny(String kind) {
    return List.of(BindingsSide.values()).stream().anyMatch(side -> wants(kind + side));
  }

  /** Whether anything of a side is asked for, or it is the one that the others are beside. */
  boolean wants(BindingsSide side) {
    return side == BindingsSide.JAVA || wants(side.call()) || wants(side.read());
  }

  private boolean wants(String id) {
    return prefixes.stream().anyMatch(id::startsWith);
  }

  /** The same for one kind. */
  boolean wants(BindingsSide side, String kind) {
    return side == BindingsSide.JAVA ? wantsAny(kind) : wants(kind + side);
  }

  private static String value(List<String> args, int index) {
    if (index + 1 >= args.size()) {
      throw new IllegalArgumentException(args.get(index) + " needs a value");
    }
    return args.get(index + 1);
  }

  private static String accelerator(String text) {
    if (!text.equals("gpu") && !text.equals("cpu")) {
      throw new IllegalArgumentException("--accelerator " + text + " is neither gpu nor cpu");
    }
    return text;
  }

  private static int number(String text) {
    if (!text.matches("[1-9]\\d{0,3}")) {
      throw new IllegalArgumentException("--reps " + text + " is not a number from 1 to 9999");
    }
    return Integer.parseInt(text);
  }

  private static long size(String text) {
    long size;
    try {
      size = ByteSize.parse(text);
    } catch (InvalidRequestException e) {
      throw new IllegalArgumentException("--size " + text + ": " + e.getMessage(), e);
    }
    if (size == 0 || size % BLOCK != 0) {
      throw new IllegalArgumentException(
          "--size " + text + " is not a multiple of " + BLOCK + " bytes");
    }
    return size;
  }

  private static List<String> prefixes(String text) {
    List<String> prefixes = List.of(text.split(","));
    for (String prefix : prefixes) {
      boolean known =
          List.of(BindingsSide.values()).stream()
              .anyMatch(s -> s.call().startsWith(prefix) || s.read().startsWith(prefix));
      if (!known) {
        throw new IllegalArgumentException("--only " + prefix + ": no result starts so");
      }
    }
    return prefixes;
  }
}
