package io.gpunvme.bench;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Writes everything in docs/ that is made from result files: {@code BenchPages RESULTS DOCS}.
 *
 * <ul>
 *   <li>benchmark-tables.md: every result of every run
 *   <li>benchmarks.md: the tables of figures in the page that people wrote
 *   <li>images/paths.svg: the plot of the README
 * </ul>
 */
public final class BenchPages {
  private BenchPages() {}

  /** See the class. */
  public static void main(String[] args) throws IOException {
    for (Map.Entry<Path, String> page : pages(Path.of(args[0]), Path.of(args[1])).entrySet()) {
      Files.writeString(page.getKey(), page.getValue());
    }
  }

  /**
   * The text of each file.
   *
   * @param results the folder of result files
   * @param docs the folder of pages; its benchmarks.md is read
   * @throws IOException if a file cannot be read
   */
  static Map<Path, String> pages(Path results, Path docs) throws IOException {
    BenchResults runs = BenchResults.read(results);
    Path figures = docs.resolve("benchmarks.md");
    Map<Path, String> pages = new LinkedHashMap<>();
    pages.put(docs.resolve("benchmark-tables.md"), BenchTables.page(runs));
    pages.put(figures, BenchFigures.fill(Files.readString(figures), runs));
    pages.put(docs.resolve("images/paths.svg"), BenchPlot.svg(runs));
    return pages;
  }
}
