package io.gpunvme.tools.graph;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.gpunvme.tools.graph.GraphImages.Edge;
import io.gpunvme.tools.graph.GraphImages.Edges;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Images, compared with what a map of maps has of the same edges. */
class GraphBuilderTest {
  @TempDir Path folder;

  private static Map<Long, Map<Long, Integer>> model(Edges edges, boolean symmetric) {
    Map<Long, Map<Long, Integer>> all = new TreeMap<>();
    for (Edge edge : edges.all()) {
      if (edge.from() != edge.to()) {
        put(all, edge.from(), edge.to(), edge.weight());
        if (symmetric) {
          put(all, edge.to(), edge.from(), edge.weight());
        }
      }
    }
    return all;
  }

  private static void put(Map<Long, Map<Long, Integer>> all, long from, long to, int weight) {
    all.computeIfAbsent(from, _ -> new TreeMap<>()).merge(to, weight, Math::min);
  }

  private void check(Edges edges, boolean symmetric, int room) throws IOException {
    Path image = folder.resolve("%d-%s".formatted(edges.vertices(), symmetric));
    GraphHeader header = GraphImages.write(image, edges, symmetric, room);
    ByteBuffer bytes = GraphImages.bytes(image);
    byte[] head = new byte[GraphHeader.BYTES];
    bytes.get(0, head);
    assertThat(GraphHeader.read(head, bytes.capacity(), "it")).isEqualTo(header);
    assertThat(header.vertices()).isEqualTo(edges.vertices());
    assertThat(header.symmetric()).isEqualTo(symmetric);
    assertThat(header.bytes()).isEqualTo(bytes.capacity());
    assertThat(bytes.capacity() % GraphHeader.ALIGNMENT).isZero();
    Map<Long, Map<Long, Integer>> model = model(edges, symmetric);
    long edge = 0;
    for (long v = 0; v < header.vertices(); v++) {
      assertThat(bytes.getLong((int) (header.offsetsAt() + v * 8))).isEqualTo(edge);
      for (Map.Entry<Long, Integer> to : model.getOrDefault(v, Map.of()).entrySet()) {
        assertThat(bytes.getInt((int) (header.edgesAt() + edge * 4)))
            .isEqualTo(to.getKey().intValue());
        if (edges.weighted()) {
          assertThat(Byte.toUnsignedInt(bytes.get((int) (header.weightsAt() + edge))))
              .isEqualTo(to.getValue());
        }
        edge++;
      }
    }
    assertThat(bytes.getLong((int) (header.offsetsAt() + header.vertices() * 8)))
        .isEqualTo(edge)
        .isEqualTo(header.edges());
  }

  @ParameterizedTest
  @ValueSource(ints = {1 << 20, 700, 301})
  void hasWhatItIsMadeOf(int room) throws IOException {
    Random random = new Random(5);
    Edges edges = Edges.random(1000, 9000, random);
    check(edges, true, room);
    check(edges, false, room);
    check(new Edges(40, List.of(new Edge(39, 0, 1)), false), true, room);
  }

  /** Whatever fits into memory at a time, the image is the same. */
  @Test
  void memoryMakesNoDifference() throws IOException {
    Edges edges = Edges.random(500, 4000, new Random(6));
    GraphImages.write(folder.resolve("large"), edges, true, 1 << 20);
    GraphImages.write(folder.resolve("small"), edges, true, 400);
    assertThat(Files.mismatch(folder.resolve("large"), folder.resolve("small"))).isEqualTo(-1);
  }

  @Test
  void whatCannotBeAnImageIsSaid() {
    Edges many = Edges.random(3, 100, new Random(7));
    assertThatExceptionOfType(GraphException.class)
        .isThrownBy(() -> GraphImages.write(folder.resolve("a"), many, true, 10))
        .withMessageContaining("-Xmx")
        .matches(e -> e.kind() == GraphException.Kind.TOO_LARGE);
    Edges own = new Edges(9, List.of(new Edge(4, 4, 1)), false);
    assertThatExceptionOfType(GraphException.class)
        .isThrownBy(() -> GraphImages.write(folder.resolve("b"), own, true, 10))
        .withMessageContaining("at least one")
        .matches(e -> e.kind() == GraphException.Kind.INPUT);
  }
}
