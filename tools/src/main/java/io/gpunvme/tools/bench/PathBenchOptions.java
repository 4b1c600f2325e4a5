package io.gpunvme.tools.bench;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.storage.path.PathKind;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Stream;

/**
 * What {@link PathBench} measures.
 *
 * @param folder where its file is made, on the disk to be measured
 * @param fileBytes of that file, a multiple of 16 MiB
 * @param paths by name: {@code auto} or one of {@link PathKind}
 * @param blocks bytes of each read of the sequential sweep, powers of two from 64 KiB to 16 MiB
 * @param randomReads of 4 KiB in one transfer; of those past the page cache an eighth
 * @param cufileThreads numbers of threads tried for cuFile, of which the best counts
 * @param repetitions of each measurement
 * @param workers threads of the embedded controller
 */
public record PathBenchOptions(
    Path folder,
    long fileBytes,
    List<String> paths,
    List<Integer> blocks,
    int randomReads,
    List<Integer> cufileThreads,
    Repetitions repetitions,
    int workers) {
  private static final long UNIT = 16 << 20;
  private static final int MEBIBYTE = 1 << 20;
  private static final int KIBIBYTE = 1 << 10;
  private static final int MOST_THREADS = 256;

  /** Next to the limits, which it is measured by. */
  private static final Comparator<String> PINNED_FIRST =
      Comparator.comparing(p -> !p.equals(PathKind.PINNED.toString()));

  /** Every path. */
  public static final List<String> ALL_PATHS = allPaths();

  private static List<String> allPaths() {
    return Stream.concat(
            Arrays.stream(PathKind.values()).map(PathKind::toString).sorted(PINNED_FIRST),
            Stream.of("auto"))
        .toList();
  }

  /** Checks. */
  public PathBenchOptions {
    if (fileBytes < UNIT || fileBytes % UNIT != 0) {
      throw new InvalidRequestException(
          "a file of " + fileBytes + " bytes is not a multiple of 16 MiB");
    }
    for (String path : paths) {
      if (!ALL_PATHS.contains(path)) {
        throw new InvalidRequestException(
            "no path '" + path + "': the paths are " + String.join(", ", ALL_PATHS));
      }
    }
    requireDistinct("paths", paths);
    requireDistinct("blocks", blocks);
    for (int threads : cufileThreads) {
      if (threads < 1 || threads > MOST_THREADS) {
        throw new InvalidRequestException(
            threads + " threads for cuFile: must be 1 to " + MOST_THREADS);
      }
    }
    requireDistinct("numbers of threads", cufileThreads);
    if (workers < 1 || workers > MOST_THREADS) {
      throw new InvalidRequestException(
          workers + " threads of the embedded controller: must be 1 to " + MOST_THREADS);
    }
    for (int block : blocks) {
      if (Integer.bitCount(block) != 1 || block < 64 * KIBIBYTE || block > UNIT) {
        throw new InvalidRequestException(
            "blocks of " + block + " bytes: must be a power of two from 64 KiB to 16 MiB");
      }
    }
    if (randomReads < 64) {
      throw new InvalidRequestException(randomReads + " random reads: must be 64 or more");
    }
    if (paths.isEmpty() || cufileThreads.isEmpty()) {
      throw new InvalidRequestException("no path is named, or no number of threads for cuFile");
    }
    paths = List.copyOf(paths);
    blocks = List.copyOf(blocks);
    cufileThreads = List.copyOf(cufileThreads);
  }

  private static void requireDistinct(String what, List<?> all) {
    if (all.size() != all.stream().distinct().count()) {
      throw new InvalidRequestException(what + " " + all + ": one of them is named twice");
    }
  }

  /** The same in another folder. */
  public PathBenchOptions at(Path other) {
    return new PathBenchOptions(
        other, fileBytes, paths, blocks, randomReads, cufileThreads, repetitions, workers);
  }

  /** The same, repeated otherwise. */
  public PathBenchOptions with(Repetitions times) {
    return new PathBenchOptions(
        folder, fileBytes, paths, blocks, randomReads, cufileThreads, times, workers);
  }

  /** Everything as the kept results have it. */
  public static PathBenchOptions in(Path folder) {
    return new PathBenchOptions(
        folder,
        1L << 30,
        ALL_PATHS,
        List.of(256 * KIBIBYTE, 4 * MEBIBYTE, 16 * MEBIBYTE),
        200_000,
        List.of(1, 4, 8, 16, 32),
        Repetitions.of(5),
        Math.clamp(Runtime.getRuntime().availableProcessors() - 2, 1, 12));
  }
}
