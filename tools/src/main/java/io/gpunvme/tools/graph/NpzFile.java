package io.gpunvme.tools.graph;

import io.gpunvme.base.Reason;
import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.zip.ZipEntry;
import java.util.zip.ZipException;
import java.util.zip.ZipFile;

/**
 * A sparse matrix as scipy.sparse.save_npz writes it, in the format CSR: row i has an edge from i
 * to each of its columns. Values are left alone, or are weights.
 */
public final class NpzFile implements EdgeSource {
  private static final byte[] MAGIC = {(byte) 0x93, 'N', 'U', 'M', 'P', 'Y'};
  private static final int MOST_HEADER = 64 << 10;
  private static final int BUFFER = 1 << 20;
  private static final long MOST_VERTICES = (1L << 32) - 1;
  private static final int MOST_WEIGHT = 255;
  private static final Pattern TEXT = Pattern.compile("(?<width><U|\\|S)(?<letters>\\d)");
  private static final Pattern HEADER =
      Pattern.compile(
          "\\{\\s*'descr':\\s*'(?<type>[^']{1,8})',\\s*'fortran_order':\\s*(?:False|True),"
              + "\\s*'shape':\\s*\\((?<shape>(?:\\d{1,18}L?)?),?\\s*\\),?\\s*\\}\\s*");

  private final Path file;
  private final boolean weighted;
  private final long vertices;
  private final long edges;

  private NpzFile(Path file, boolean weighted, long vertices, long edges) {
    this.file = file;
    this.weighted = weighted;
    this.vertices = vertices;
    this.edges = edges;
  }

  /**
   * Looks what is there.
   *
   * @param weighted whether the values are weights: whole numbers from 1 to 255
   * @throws IOException if it cannot be read
   * @throws GraphException if it is no square CSR matrix with values
   */
  public static NpzFile open(Path file, boolean weighted) throws IOException {
    try (ZipFile zip = zip(file)) {
      String format = new String(text(zip, file), StandardCharsets.US_ASCII);
      if (!format.equals("csr")) {
        throw wrong(
            file, "is a matrix of format '%s': save it as CSR (matrix.tocsr())".formatted(format));
      }
      long rows;
      long columns;
      try (Npy shape = new Npy(zip, file, "shape")) {
        shape.require(2);
        rows = shape.whole();
        columns = shape.whole();
      }
      if (rows != columns || rows < 1 || rows > MOST_VERTICES) {
        throw wrong(
            file,
            "has %d rows and %d columns: a graph has as many of both, 1 to %d"
                .formatted(rows, columns, MOST_VERTICES));
      }
      try (Npy bounds = new Npy(zip, file, "indptr");
          Npy columnsOf = new Npy(zip, file, "indices");
          Npy values = new Npy(zip, file, "data")) {
        bounds.require(rows + 1);
        values.require(columnsOf.count);
        if (columnsOf.count == 0) {
          throw wrong(file, "has no element, so the graph has no edge");
        }
        return new NpzFile(file, weighted, rows, columnsOf.count);
      }
    }
  }

  private static ZipFile zip(Path file) throws IOException {
    try {
      return new ZipFile(file.toFile());
    } catch (ZipException | EOFException e) {
      throw wrong(file, "is no .npz file, or a damaged one: " + Reason.of(e));
    }
  }

  private static GraphException wrong(Path file, String what) {
    return new GraphException(GraphException.Kind.INPUT, file.toString(), what);
  }

  /** The format is a text of bytes, or of 4 bytes a letter. */
  private static byte[] text(ZipFile zip, Path file) throws IOException {
    try (Npy format = new Npy(zip, file, "format")) {
      Matcher letters = TEXT.matcher(format.type);
      if (!letters.matches()) {
        throw format.unknown();
      }
      int width = letters.group("width").equals("<U") ? Integer.BYTES : 1;
      byte[] all = new byte[Integer.parseInt(letters.group("letters")) * width];
      format.fill(all, all.length);
      byte[] narrow = new byte[all.length / width];
      for (int i = 0; i < narrow.length; i++) {
        narrow[i] = all[i * width];
      }
      return narrow;
    }
  }

  @Override
  public String name() {
    return file.toString();
  }

  @Override
  public long vertices() {
    return vertices;
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
    try (ZipFile zip = zip(file);
        Npy bounds = new Npy(zip, file, "indptr");
        Npy columns = new Npy(zip, file, "indices");
        Npy values = new Npy(zip, file, "data")) {
      long begin = bounds.whole();
      if (begin != 0) {
        throw wrong(file, "row 0 begins with element %d, and not with 0".formatted(begin));
      }
      for (long row = 0; row < vertices; row++) {
        long end = bounds.whole();
        if (end < begin || end > edges) {
          throw wrong(
              file,
              "row %d ends with element %d: from %d to %d is possible"
                  .formatted(row, end, begin, edges));
        }
        for (long i = begin; i < end; i++) {
          sink.edge(row, column(columns, row), weighted ? weight(values, row) : 1);
        }
        begin = end;
      }
      if (begin != edges) {
        throw wrong(
            file, "the last row ends with element %d, and there are %d".formatted(begin, edges));
      }
    }
  }

  private long column(Npy columns, long row) throws IOException {
    long column = columns.whole();
    if (column < 0 || column >= vertices) {
      throw wrong(
          file,
          "row %d has an element in column %d: there are %d columns"
              .formatted(row, column, vertices));
    }
    return column;
  }

  private int weight(Npy values, long row) throws IOException {
    double weight = values.number();
    if (!(weight >= 1 && weight <= MOST_WEIGHT && weight == Math.rint(weight))) {
      throw wrong(
          file,
          "row %d has a weight of %s: weights are whole numbers from 1 to 255"
              .formatted(row, weight));
    }
    return (int) weight;
  }

  /** An array of one dimension, from its first element on. */
  private static final class Npy implements AutoCloseable {
    private final Path file;
    private final String name;
    private final DataInputStream stream;
    private final ByteBuffer element = ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN);
    private final String type;
    private final long count;

    Npy(ZipFile zip, Path file, String array) throws IOException {
      this.file = file;
      name = array + ".npy";
      ZipEntry entry = zip.getEntry(name);
      if (entry == null) {
        throw wrong(file, "has no " + name + ": it is not of scipy.sparse.save_npz, or not CSR");
      }
      try {
        stream = new DataInputStream(new BufferedInputStream(zip.getInputStream(entry), BUFFER));
      } catch (ZipException | EOFException e) {
        throw wrong(file, name + " is damaged: " + Reason.of(e));
      }
      try {
        Matcher header = HEADER.matcher(header());
        if (!header.matches()) {
          throw wrong(file, name + " has a header that is none of an array of one dimension");
        }
        type = header.group("type");
        String shape = header.group("shape").replace("L", "");
        // The format is an array without a dimension.
        count = shape.isEmpty() ? 1 : Long.parseLong(shape);
      } catch (RuntimeException | IOException e) {
        stream.close();
        throw e;
      }
    }

    private String header() throws IOException {
      byte[] start = new byte[MAGIC.length + 2];
      fill(start, start.length);
      if (!Arrays.equals(MAGIC, Arrays.copyOf(start, MAGIC.length))) {
        throw wrong(file, name + " is no array of NumPy");
      }
      int version = start[MAGIC.length];
      if (version < 1 || version > 3) {
        throw wrong(file, name + " has version " + version + ", and 1 to 3 are known");
      }
      long length = little(version == 1 ? Short.BYTES : Integer.BYTES);
      if (length > MOST_HEADER) {
        throw wrong(file, name + " has a header of " + length + " bytes");
      }
      byte[] text = new byte[(int) length];
      fill(text, text.length);
      return new String(text, StandardCharsets.ISO_8859_1);
    }

    private long little(int bytes) throws IOException {
      element.clear().putLong(0, 0);
      fill(element.array(), bytes);
      return element.getLong(0);
    }

    private void fill(byte[] to, int bytes) throws IOException {
      try {
        stream.readFully(to, 0, bytes);
      } catch (EOFException e) {
        throw wrong(file, name + " ends before its last element");
      } catch (ZipException e) {
        throw wrong(file, name + " is damaged: " + Reason.of(e));
      }
    }

    void require(long elements) {
      if (count != elements) {
        throw wrong(file, "%s has %d elements, and %d are due".formatted(name, count, elements));
      }
    }

    GraphException unknown() {
      return wrong(file, "%s has elements of type '%s', which is not known".formatted(name, type));
    }

    /** The next element, a whole number. */
    long whole() throws IOException {
      return switch (type) {
        case "<i4" -> (int) little(Integer.BYTES);
        case "<u4" -> little(Integer.BYTES);
        case "<i8", "<u8" -> little(Long.BYTES);
        default -> throw unknown();
      };
    }

    /** The next element, any number. */
    double number() throws IOException {
      return switch (type) {
        case "|b1", "|u1" -> little(Byte.BYTES);
        case "|i1" -> (byte) little(Byte.BYTES);
        case "<u2" -> little(Short.BYTES);
        case "<i2" -> (short) little(Short.BYTES);
        case "<f4" -> Float.intBitsToFloat((int) little(Float.BYTES));
        case "<f8" -> Double.longBitsToDouble(little(Double.BYTES));
        default -> whole();
      };
    }

    @Override
    public void close() throws IOException {
      stream.close();
    }
  }
}
