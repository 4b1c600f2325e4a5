package io.gpunvme.tools.graph;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Files of which images are made. */
class GraphInputTest {
  @TempDir Path folder;

  private static List<String> edges(EdgeSource source) throws IOException {
    List<String> all = new ArrayList<>();
    source.part(0, (from, to, weight) -> all.add(from + " " + to + " " + weight));
    return all;
  }

  private Path list(String text) throws IOException {
    return Files.writeString(folder.resolve("edges.txt"), text);
  }

  @Test
  void edgeListsAreReadInAllTheirForms() throws IOException {
    Path file =
        list("# a comment\n% another\n\n0 1 7\n  2\t3,8\r\n4,5,9 and more\n\n4294967294 0 255");
    EdgeListFile weighted = EdgeListFile.open(file, true);
    assertThat(edges(weighted)).containsExactly("0 1 7", "2 3 8", "4 5 9", "4294967294 0 255");
    assertThat(weighted.vertices()).isEqualTo(4294967295L);
    assertThat(weighted.edges()).isEqualTo(4);
    assertThat(edges(EdgeListFile.open(file, false)))
        .containsExactly("0 1 1", "2 3 1", "4 5 1", "4294967294 0 1");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "''             | false | has no edge",
        "'# nothing'    | false | has no edge",
        "'0 1\n2'       | false | line 2: a second vertex is wanted",
        "'0 1\n2\n3 4'  | false | line 2: a second vertex is wanted",
        "'0 -1'         | false | line 1: a second vertex is wanted",
        "'0 1.5'        | false | goes on with '.'",
        "'a b'          | false | a vertex is wanted",
        "'0 4294967295' | false | at most 4294967294",
        "'0 99999999999999999999999' | false | at most 4294967294",
        "'0 1'          | true  | a weight is wanted: 'FROM TO WEIGHT'",
        "'0 1 0'        | true  | a weight of 0",
        "'0 1 256'      | true  | at most 255",
        "'0 1 2.5'      | true  | goes on with '.'",
      })
  void aWrongLineIsSaid(String text, boolean weighted, String what) throws IOException {
    Path file = list(text.replace("\\n", "\n"));
    assertThatExceptionOfType(GraphException.class)
        .isThrownBy(() -> EdgeListFile.open(file, weighted))
        .withMessageStartingWith(file.toString())
        .withMessageContaining(what)
        .matches(e -> e.kind() == GraphException.Kind.INPUT);
  }

  @Test
  void whatIsNoEdgeListIsSaid() throws IOException {
    Path market = list("%%MatrixMarket matrix coordinate pattern general\n3 3 1\n1 2\n");
    assertThatExceptionOfType(GraphException.class)
        .isThrownBy(() -> EdgeListFile.open(market, false))
        .withMessageContaining("Matrix Market");
    assertThatExceptionOfType(GraphException.class)
        .isThrownBy(() -> EdgeListFile.open(Path.of("/dev/zero"), false))
        .withMessageContaining("no regular file");
  }

  /** The arrays of a matrix: of each the type, the shape, and the elements' bytes. */
  private static Map<String, Object[]> matrix() {
    Map<String, Object[]> all = new LinkedHashMap<>();
    all.put("indices", new Object[] {"<i4", "(4,)", ints(1, 2, 0, 2)});
    all.put("indptr", new Object[] {"<i4", "(4,)", ints(0, 2, 3, 4)});
    all.put("format", new Object[] {"|S3", "()", "csr".getBytes(StandardCharsets.US_ASCII)});
    all.put("shape", new Object[] {"<i8", "(2,)", longs(3, 3)});
    all.put("data", new Object[] {"<f8", "(4,)", doubles(7, 8, 9, 255)});
    return all;
  }

  private static byte[] ints(int... values) {
    ByteBuffer all = ByteBuffer.allocate(4 * values.length).order(ByteOrder.LITTLE_ENDIAN);
    for (int value : values) {
      all.putInt(value);
    }
    return all.array();
  }

  private static byte[] longs(long... values) {
    ByteBuffer all = ByteBuffer.allocate(8 * values.length).order(ByteOrder.LITTLE_ENDIAN);
    for (long value : values) {
      all.putLong(value);
    }
    return all.array();
  }

  private static byte[] doubles(double... values) {
    ByteBuffer all = ByteBuffer.allocate(8 * values.length).order(ByteOrder.LITTLE_ENDIAN);
    for (double value : values) {
      all.putDouble(value);
    }
    return all.array();
  }

  private Path npz(Map<String, Object[]> arrays) throws IOException {
    Path file = folder.resolve("matrix.npz");
    try (OutputStream out = Files.newOutputStream(file);
        ZipOutputStream zip = new ZipOutputStream(out)) {
      for (Map.Entry<String, Object[]> array : arrays.entrySet()) {
        zip.putNextEntry(new ZipEntry(array.getKey() + ".npy"));
        Object[] parts = array.getValue();
        String header =
            "{'descr': '%s', 'fortran_order': False, 'shape': %s, }\n"
                .formatted(parts[0], parts[1]);
        ByteBuffer start = ByteBuffer.allocate(10).order(ByteOrder.LITTLE_ENDIAN);
        start.put((byte) 0x93).put("NUMPY".getBytes(StandardCharsets.US_ASCII));
        start.put((byte) 1).put((byte) 0).putShort((short) header.length());
        zip.write(start.array());
        zip.write(header.getBytes(StandardCharsets.US_ASCII));
        zip.write((byte[]) parts[2]);
      }
    }
    return file;
  }

  @Test
  void matricesAreRead() throws IOException {
    NpzFile weighted = NpzFile.open(npz(matrix()), true);
    assertThat(weighted.vertices()).isEqualTo(3);
    assertThat(weighted.edges()).isEqualTo(4);
    assertThat(edges(weighted)).containsExactly("0 1 7", "0 2 8", "1 0 9", "2 2 255");
    assertThat(edges(NpzFile.open(npz(matrix()), false)))
        .containsExactly("0 1 1", "0 2 1", "1 0 1", "2 2 1");
    Map<String, Object[]> wide = matrix();
    wide.put("indices", new Object[] {"<i8", "(4,)", longs(1, 2, 0, 2)});
    wide.put("data", new Object[] {"|u1", "(4,)", new byte[] {1, 2, 3, (byte) 200}});
    byte[] text = {'c', 0, 0, 0, 's', 0, 0, 0, 'r', 0, 0, 0};
    wide.put("format", new Object[] {"<U3", "()", text});
    assertThat(edges(NpzFile.open(npz(wide), true)))
        .containsExactly("0 1 1", "0 2 2", "1 0 3", "2 2 200");
  }

  private void refused(Map<String, Object[]> arrays, String what) throws IOException {
    Path file = npz(arrays);
    assertThatExceptionOfType(GraphException.class)
        .as(what)
        .isThrownBy(() -> edges(NpzFile.open(file, true)))
        .withMessageStartingWith(file.toString())
        .withMessageContaining(what)
        .matches(e -> e.kind() == GraphException.Kind.INPUT);
  }

  private void refused(String array, String type, String shape, byte[] bytes, String what)
      throws IOException {
    Map<String, Object[]> all = matrix();
    all.put(array, new Object[] {type, shape, bytes});
    refused(all, what);
  }

  @Test
  void aWrongMatrixIsSaid() throws IOException {
    byte[] csc = "csc".getBytes(StandardCharsets.US_ASCII);
    refused("format", "|S3", "()", csc, "format 'csc': save it as CSR");
    refused("format", "<i4", "()", ints(1), "elements of type '<i4'");
    refused("shape", "<i8", "(2,)", longs(3, 4), "3 rows and 4 columns");
    refused("shape", "<i8", "(2,)", longs(0, 0), "0 rows");
    refused("shape", "<i8", "(2,)", longs(1L << 33, 1L << 33), "rows");
    refused("shape", "<i8", "(2,)", longs(3), "ends before its last element");
    refused("shape", "<i8", "(3,)", longs(3, 3, 3), "3 elements, and 2 are due");
    refused("indptr", "<i4", "(3,)", ints(0, 2, 4), "3 elements, and 4 are due");
    refused("indptr", "<i4", "(4,)", ints(1, 2, 3, 4), "row 0 begins with element 1");
    refused("indptr", "<i4", "(4,)", ints(0, 3, 2, 4), "row 1 ends with element 2");
    refused("indptr", "<i4", "(4,)", ints(0, 2, 3, 5), "row 2 ends with element 5");
    refused("indptr", "<i4", "(4,)", ints(0, 2, 3, 3), "the last row ends with element 3");
    refused("indices", "<i4", "(4,)", ints(1, 3, 0, 2), "column 3");
    refused("indices", "<i4", "(4,)", ints(1, -1, 0, 2), "column -1");
    refused("indices", "<i4", "(4,)", ints(1, 2, 0), "ends before its last element");
    refused("indices", ">i4", "(4,)", ints(1, 2, 0, 2), "'>i4', which is not known");
    refused("indices", "<i4", "(2,2)", ints(1, 2, 0, 2), "one dimension");
    refused("indices", "<i4", "(0,)", ints(), "data.npy has 4 elements, and 0 are due");
    refused("data", "<f8", "(4,)", doubles(1, 2, 0, 4), "a weight of 0.0");
    refused("data", "<f8", "(4,)", doubles(1, 2, 2.5, 4), "a weight of 2.5");
    refused("data", "<f8", "(4,)", doubles(1, 2, Double.NaN, 4), "a weight of NaN");
    refused("data", "<f8", "(4,)", doubles(1, 2, 256, 4), "a weight of 256.0");
    refused("data", "<c16", "(4,)", new byte[64], "'<c16', which is not known");
    for (String array : matrix().keySet()) {
      Map<String, Object[]> all = matrix();
      all.remove(array);
      refused(all, "has no " + array + ".npy");
    }
  }

  /** Whatever is wrong with it, it is said as it should be. */
  @Test
  void damagedFilesEndInTypedErrors() throws IOException {
    byte[] good = Files.readAllBytes(npz(matrix()));
    Random random = new Random(8);
    for (int i = 0; i < 2000; i++) {
      byte[] bad = good.clone();
      for (int n = 0; n <= random.nextInt(3); n++) {
        bad[random.nextInt(bad.length)] = (byte) random.nextInt();
      }
      Path file = Files.write(folder.resolve("bad.npz"), bad);
      try {
        edges(NpzFile.open(file, true));
      } catch (GraphException e) {
        assertThat(e.kind()).isEqualTo(GraphException.Kind.INPUT);
      }
    }
  }
}
