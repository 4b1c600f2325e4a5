package io.gpunvme.tools.report;

import java.util.List;

/**
 * Plots with the numbers below them.
 *
 * @param note what is seen, in a sentence; may be empty
 */
record Block(String title, String note, List<Chart> charts, ReportTable table) {
  /** What is drawn beside a bar. */
  static final String MARKS =
      "Whiskers: slowest and fastest sample. Bold line: the limit, measured in the same run."
          + " ◇ the best peer, named in the table.";

  Block {
    charts = List.copyOf(charts);
  }
}
