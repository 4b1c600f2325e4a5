package io.gpunvme.tools.graph;

import java.io.BufferedInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * Edges as text: a line each, with the two vertices and, if wanted, a weight from 1 to 255, apart
 * by spaces, tabs or commas. Lines that begin with # or % are comments; what follows the numbers is
 * left alone.
 */
public final class EdgeListFile implements EdgeSource {
  private static final int BUFFER = 1 << 20;
  private static final long MOST_VERTEX = (1L << 32) - 2;
  private static final int MOST_WEIGHT = 255;
  private static final int NEWLINE = '\n';
  private static final String MATRIX_MARKET = "%%MatrixMarket";

  private final Path file;
  private final boolean weighted;
  private long highest = -1;
  private long edges;

  private EdgeListFile(Path file, boolean weighted) {
    this.file = file;
    this.weighted = weighted;
  }

  /**
   * Reads it once, to know how large it is.
   *
   * @param weighted whether there is a weight in each line
   * @throws IOException if it cannot be read
   * @throws GraphException if a line is none of an edge list, or there is no edge
   */
  public static EdgeListFile open(Path file, boolean weighted) throws IOException {
    EdgeListFile list = new EdgeListFile(file, weighted);
    if (Files.exists(file) && !Files.isRegularFile(file)) {
      throw new GraphException(
          GraphException.Kind.INPUT,
          list.name(),
          "is no regular file, and it is read several times: write it to a file first");
    }
    try (InputStream stream = Files.newInputStream(file)) {
      byte[] begin = stream.readNBytes(MATRIX_MARKET.length());
      if (MATRIX_MARKET.equals(new String(begin, StandardCharsets.ISO_8859_1))) {
        throw new GraphException(
            GraphException.Kind.INPUT,
            list.name(),
            "is a Matrix Market file: scipy.sparse.save_npz(\"graph.npz\","
                + " scipy.io.mmread(FILE).tocsr()) makes a file that can be converted");
      }
    }
    list.part(
        0,
        (from, to, weight) -> {
          list.highest = Math.max(list.highest, Math.max(from, to));
          list.edges++;
        });
    if (list.edges == 0) {
      throw new GraphException(GraphException.Kind.INPUT, list.name(), "has no edge");
    }
    return list;
  }

  @Override
  public String name() {
    return file.toString();
  }

  @Override
  public long vertices() {
    return highest + 1;
  }

  @Override
  public long edges() {
    return edges;
  }

  @Override
  public boolean weighted() {
    return weighted;
  }

  @Override
  public void part(int part, Sink sink) throws IOException {
    try (InputStream stream = new BufferedInputStream(Files.newInputStream(file), BUFFER)) {
      Lines lines = new Lines(stream);
      while (lines.next()) {
        long from = lines.number("a vertex", MOST_VERTEX);
        long to = lines.number("a second vertex", MOST_VERTEX);
        long weight = weighted ? lines.number("a weight", MOST_WEIGHT) : 1;
        if (weight == 0) {
          throw lines.wrong("a weight of 0: weights are whole numbers from 1 to 255");
        }
        sink.edge(from, to, (int) weight);
        lines.skip();
      }
    }
  }

  /** Lines with numbers. */
  private final class Lines {
    private final InputStream stream;
    private long line = 1;
    private int at;

    Lines(InputStream stream) throws IOException {
      this.stream = stream;
      at = stream.read();
    }

    /** Goes to the next line that has something; false if there is none. */
    boolean next() throws IOException {
      while (at >= 0) {
        if (at == '#' || at == '%') {
          skip();
        } else if (at == NEWLINE || isSpace()) {
          step();
        } else {
          return true;
        }
      }
      return false;
    }

    private boolean isSpace() {
      return at == ' ' || at == '\t' || at == ',' || at == '\r';
    }

    private void step() throws IOException {
      line += at == NEWLINE ? 1 : 0;
      at = stream.read();
    }

    /** Leaves out the rest of the line. */
    void skip() throws IOException {
      while (at >= 0 && at != NEWLINE) {
        at = stream.read();
      }
    }

    long number(String what, long most) throws IOException {
      while (isSpace()) {
        step();
      }
      if (at < '0' || at > '9') {
        throw wrong(
            what
                + " is wanted: 'FROM TO"
                + (weighted ? " WEIGHT" : "")
                + "', whole numbers in decimal");
      }
      long value = 0;
      while (at >= '0' && at <= '9') {
        value = value * 10 + at - '0';
        if (value > most) {
          throw wrong("%s of %d or more: at most %d is possible".formatted(what, value, most));
        }
        step();
      }
      if (at >= 0 && at != NEWLINE && !isSpace()) {
        throw wrong(
            "%s that goes on with '%c': whole numbers are wanted".formatted(what, (char) at));
      }
      return value;
    }

    GraphException wrong(String what) {
      return new GraphException(GraphException.Kind.INPUT, file + ", line " + line, what);
    }
  }
}
