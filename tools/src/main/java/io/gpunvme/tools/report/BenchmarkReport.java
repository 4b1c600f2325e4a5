package io.gpunvme.tools.report;

import java.io.IOException;
import java.nio.file.Path;
import java.util.List;

/**
 * The result files of a folder as one HTML page that needs nothing else.
 *
 * @param files how many were read
 * @param results how many are in them
 * @param html the page; written as UTF-8
 */
public record BenchmarkReport(int files, int results, String html) {
  /**
   * Reads every {@code *.json} of the folder and of the folders in it (four levels; at most 500
   * files of at most 8 MiB).
   *
   * @throws ResultFileException if a file is not a result file, or there is none
   * @throws java.nio.file.NoSuchFileException if there is no such folder
   */
  public static BenchmarkReport of(Path folder) throws IOException {
    List<ResultFile> files = ResultFiles.read(folder);
    int results = files.stream().mapToInt(f -> f.results().size()).sum();
    return new BenchmarkReport(files.size(), results, Page.of(MachineReport.of(files)));
  }
}
