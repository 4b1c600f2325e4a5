package io.gpunvme.tools.graph;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;

/** Images, and edges of which they are made. */
final class GraphImages {
  private GraphImages() {}

  /** An edge. */
  record Edge(long from, long to, int weight) {}

  /** Edges in memory, in some parts. */
  record Edges(long vertices, List<Edge> all, boolean weighted) implements EdgeSource {
    static Edges random(int vertices, int edges, Random random) {
      List<Edge> all = new ArrayList<>();
      for (int i = 0; i < edges; i++) {
        // Some have many edges, many have few.
        int from = random.nextInt(1 + random.nextInt(vertices));
        all.add(new Edge(from, random.nextInt(vertices), 1 + random.nextInt(255)));
      }
      return new Edges(vertices, all, true);
    }

    @Override
    public String name() {
      return "made up";
    }

    @Override
    public long edges() {
      return all.size();
    }

    @Override
    public int parts() {
      return 3;
    }

    @Override
    public void part(int part, Sink sink) {
      for (int i = part; i < all.size(); i += parts()) {
        Edge edge = all.get(i);
        sink.edge(edge.from, edge.to, edge.weight);
      }
    }
  }

  /** Writes an image; three times so many edges are in memory at a time. */
  static GraphHeader write(Path image, EdgeSource source, boolean symmetric, int room)
      throws IOException {
    try (FileChannel out =
        FileChannel.open(image, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE)) {
      return GraphBuilder.build(source, symmetric, out, GraphListener.NONE, 3L * room, room);
    }
  }

  /** Its bytes. */
  static ByteBuffer bytes(Path image) throws IOException {
    return ByteBuffer.wrap(Files.readAllBytes(image)).order(ByteOrder.LITTLE_ENDIAN);
  }

  /** Changes bytes of an image. */
  static void patch(Path image, long at, byte... bytes) throws IOException {
    try (FileChannel out = FileChannel.open(image, StandardOpenOption.WRITE)) {
      out.write(ByteBuffer.wrap(bytes), at);
    }
  }
}
