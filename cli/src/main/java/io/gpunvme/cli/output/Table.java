package io.gpunvme.cli.output;

import java.io.PrintStream;
import java.util.ArrayList;
import java.util.List;

/**
 * Rows of cells, printed in columns two spaces apart. The last column is not padded. A cell that is
 * too wide for its column pushes the rest of its row to the right.
 */
public final class Table {
  private static final int GAP = 2;
  private static final int WIDEST = 48;

  private final List<String[]> rows = new ArrayList<>();
  private final int indent;

  /** An empty table, {@code indent} spaces from the left. */
  public Table(int indent) {
    this.indent = indent;
  }

  /** Adds a row; rows may have different numbers of cells. */
  public Table row(Object... cells) {
    String[] texts = new String[cells.length];
    for (int i = 0; i < cells.length; i++) {
      texts[i] = cells[i].toString();
    }
    rows.add(texts);
    return this;
  }

  /** Prints the rows. */
  public void print(PrintStream out) {
    int[] widths = widths();
    for (String[] row : rows) {
      StringBuilder line = new StringBuilder(" ".repeat(indent));
      for (int i = 0; i < row.length; i++) {
        line.append(row[i]);
        if (i < row.length - 1) {
          line.append(" ".repeat(Math.max(0, widths[i] - row[i].length()) + GAP));
        }
      }
      out.println(line.toString().stripTrailing());
    }
  }

  private int[] widths() {
    int[] widths = new int[rows.stream().mapToInt(row -> row.length).max().orElse(0)];
    for (String[] row : rows) {
      for (int i = 0; i < row.length - 1; i++) {
        widths[i] = Math.max(widths[i], Math.min(WIDEST, row[i].length()));
      }
    }
    return widths;
  }
}
