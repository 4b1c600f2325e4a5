package io.gpunvme.core.report;

import java.util.List;

/**
 * Plots with the numbers below them.
 *
 * @param note what is seen, in a sentence; may be empty
 */
record Block(String title, String note, List<Chart> charts, Table table) {
  Block {
    charts = List.copyOf(charts);
  }
}
