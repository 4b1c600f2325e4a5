package io.gpunvme.tools.graph;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.within;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.cuda.FakeDriver;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.queue.CpuCuda;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.gpu.transfer.InitiatorKind;
import io.gpunvme.gpu.transfer.InitiatorOptions;
import io.gpunvme.nvme.NvmeException;
import io.gpunvme.nvme.NvmeStatusException;
import io.gpunvme.nvme.driver.ControllerOptions;
import io.gpunvme.storage.GpuStorage;
import io.gpunvme.storage.StorageAddress;
import io.gpunvme.storage.StorageOptions;
import io.gpunvme.tools.graph.GraphImages.Edge;
import io.gpunvme.tools.graph.GraphImages.Edges;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/** The real kernels, on the CPU, beside the simplest way to each result. */
@Timeout(180)
class GraphProgramTest {
  private static final int PAGE = 512;

  /** So that few pages are in memory, and sweeps are better than frontiers. */
  private static final GraphOptions SMALL =
      GraphOptions.in(Placement.HOST).withCache(16 * PAGE, PAGE).with(2, 32, 512);

  /** So that all are, and frontiers are followed. */
  private static final GraphOptions LARGE =
      GraphOptions.in(Placement.HOST).withCache(1 << 20, PAGE).with(2, 32, 512);

  @TempDir Path folder;
  private GpuAccelerator gpu;

  @BeforeEach
  void open() {
    gpu = GpuAccelerator.open(FakeDriver.load(CpuCuda.library()).device(0));
  }

  @AfterEach
  void close() {
    if (gpu != null) {
      gpu.close();
    }
  }

  private Path image(EdgeSource source, boolean symmetric) throws IOException {
    Path image = folder.resolve("image");
    GraphImages.write(image, source, symmetric, 1 << 20);
    return image;
  }

  /** What is done with an open image. */
  private interface Use {
    void of(GraphReader graph);
  }

  private void use(Path image, String keys, Use use) {
    // Where commands are lost, nobody is to wait for long.
    Duration limit = keys.contains("drop") ? Duration.ofMillis(300) : Duration.ofSeconds(30);
    StorageOptions options =
        StorageOptions.defaults()
            .with(ControllerOptions.builder().ioTimeout(limit).recoveryTimeout(limit).build())
            .with(InitiatorOptions.defaults().with(InitiatorKind.CPU, Placement.HOST));
    String address = "sim:latency=0,readonly=on" + keys + ",file=" + image;
    try (GpuStorage storage = GpuStorage.open(StorageAddress.parse(address), gpu, options);
        GraphReader graph = GraphReader.open(storage)) {
      use.of(graph);
    }
  }

  private GraphReport run(
      GraphAlgorithm algorithm, long source, GraphReader graph, GraphOptions options) {
    return GraphProgram.run(algorithm, source, graph, gpu, options, GraphListener.NONE);
  }

  @ParameterizedTest
  @CsvSource({
    "BFS,true",
    "BFS,false",
    "CC,true",
    "CC,false",
    "SSSP,true",
    "SSSP,false",
    "PAGERANK,true",
    "PAGERANK,false"
  })
  void findsWhatTheCpuFinds(GraphAlgorithm algorithm, boolean symmetric) throws IOException {
    Edges edges = Edges.random(2000, 12000, new Random(11));
    use(
        image(edges, symmetric),
        "",
        graph -> {
          for (GraphOptions options :
              List.of(SMALL, LARGE, LARGE.with(EdgePlace.VRAM), LARGE.with(EdgePlace.HOST))) {
            GraphReport report = run(algorithm, -1, graph, options);
            GraphProgram.verify(report, graph, GraphListener.NONE);
            GraphReport.Reads reads = report.reads();
            if (options.place() == EdgePlace.SSD) {
              assertThat(reads).isNotNull();
              assertThat(reads.cacheBytes()).isEqualTo(options.cacheBytes());
              assertThat(reads.counters().reads()).isPositive();
            } else {
              assertThat(reads).isNull();
            }
            assertThat(report.place()).isEqualTo(options.place());
            assertThat(report.result().edges()).isPositive();
            assertThat(report.result().rounds()).isPositive();
          }
        });
  }

  /**
   * Each page of edges is read once, although the cache has few of them; but for some that a thread
   * of the machine was in the middle of, and had to wait.
   */
  @Test
  void componentsTakeOneReadOfEachPage() throws IOException {
    Edges edges = Edges.random(2000, 12000, new Random(12));
    use(
        image(edges, true),
        "",
        graph -> {
          GraphReport report = run(GraphAlgorithm.CC, -1, graph, SMALL.withCache(64 * PAGE, PAGE));
          long pages = Math.ceilDiv(graph.header().edges() * 4, (long) PAGE);
          assertThat(report.reads()).isNotNull();
          assertThat(report.reads().counters().reads()).isBetween(pages, pages * 3 / 2);
          assertThat(report.result().edges()).isEqualTo(graph.header().edges());
        });
  }

  /** A sweep begins with what the one before it has left in the cache. */
  @Test
  void ranksTakeFewMoreReadsThanTheLeast() throws IOException {
    int frames = 128;
    Edges edges = Edges.random(2000, 24000, new Random(15));
    use(
        image(edges, true),
        "",
        graph -> {
          GraphOptions options = SMALL.withCache(frames * PAGE, PAGE);
          GraphReport report = run(GraphAlgorithm.PAGERANK, -1, graph, options);
          long pages = Math.ceilDiv(graph.header().edges() * 4, (long) PAGE);
          int rounds = report.result().rounds();
          long least = pages + (rounds - 1) * (pages - frames);
          assertThat(report.reads()).isNotNull();
          assertThat(report.reads().counters().reads()).isBetween(least, Math.round(1.3 * least));
        });
  }

  /** Small caches sweep and large ones follow; with either, kernels note what they want. */
  @ParameterizedTest
  @EnumSource(GraphAlgorithm.class)
  void tellsTheFewestReads(GraphAlgorithm algorithm) throws IOException {
    Edges edges = Edges.random(2000, 12000, new Random(16));
    use(
        image(edges, true),
        "",
        graph -> {
          long pages = Math.ceilDiv(graph.header().edges() * 4, (long) PAGE);
          boolean weighted = algorithm == GraphAlgorithm.SSSP;
          long all = pages + (weighted ? Math.ceilDiv(graph.header().edges(), (long) PAGE) : 0);
          for (GraphOptions options : List.of(SMALL, LARGE)) {
            GraphReport report = run(algorithm, -1, graph, options.withLeast());
            GraphProgram.verify(report, graph, GraphListener.NONE);
            GraphReport.Reads reads = report.reads();
            assertThat(reads).isNotNull();
            assertThat(reads.least()).isLessThanOrEqualTo(reads.counters().reads());
            if (options == LARGE) {
              // Everything fits: what was wanted at all.
              assertThat(reads.least()).isEqualTo(reads.counters().reads()).isBetween(2L, all);
            } else if (algorithm == GraphAlgorithm.CC) {
              assertThat(reads.least()).isEqualTo(pages);
            } else {
              assertThat(reads.least()).isGreaterThan(all);
            }
          }
        });
  }

  /** A chain with a shortcut, a vertex by itself, and two that only a direction joins. */
  private static Edges small() {
    List<Edge> all = new ArrayList<>();
    for (int v = 0; v < 300; v++) {
      all.add(new Edge(v, v + 1, 1));
    }
    all.add(new Edge(0, 200, 250));
    all.add(new Edge(302, 303, 9));
    return new Edges(305, all, true);
  }

  @Test
  void findsWhatOneCanSee() throws IOException {
    use(
        image(small(), false),
        "",
        graph -> {
          for (GraphOptions options : List.of(SMALL, LARGE)) {
            GraphResult levels = run(GraphAlgorithm.BFS, 0, graph, options).result();
            assertThat(levels.value(199)).isEqualTo(199);
            assertThat(levels.value(200)).isEqualTo(1);
            assertThat(levels.value(300)).isEqualTo(101);
            assertThat(levels.value(301)).isEqualTo(0xFFFFFFFFL);
            assertThat(levels.amount()).isEqualTo(301);
            GraphResult distances = run(GraphAlgorithm.SSSP, 0, graph, options).result();
            assertThat(distances.value(200)).isEqualTo(200);
            assertThat(distances.value(300)).isEqualTo(300);
            assertThat(distances.value(303)).isEqualTo(0xFFFFFFFFL);
            GraphResult components = run(GraphAlgorithm.CC, -1, graph, options).result();
            assertThat(components.value(300)).isZero();
            assertThat(components.value(301)).isEqualTo(301);
            assertThat(components.value(303)).isEqualTo(302);
            assertThat(components.amount()).isEqualTo(4);
          }
          GraphResult nowhere = run(GraphAlgorithm.BFS, 301, graph, LARGE).result();
          assertThat(nowhere.amount()).isOne();
          assertThat(nowhere.rounds()).isZero();
        });
  }

  @Test
  void ranksAreThoseOfTheFormula() throws IOException {
    Edges edges = new Edges(3, List.of(new Edge(0, 1, 1), new Edge(1, 2, 1)), true);
    use(
        image(edges, false),
        "",
        graph -> {
          GraphResult ranks = run(GraphAlgorithm.PAGERANK, -1, graph, LARGE).result();
          assertThat(ranks.rank(0)).isCloseTo(0.05, within(1e-12));
          assertThat(ranks.rank(1)).isCloseTo(0.05 + 0.85 * 0.05, within(1e-12));
          assertThat(ranks.rank(2)).isCloseTo(0.05 + 0.85 * 0.0925, within(1e-12));
          assertThat(ranks.rounds()).isEqualTo(4);
        });
  }

  @Test
  void whatCannotBeIsRefused() throws IOException {
    Edges edges = new Edges(3, List.of(new Edge(0, 1, 1), new Edge(1, 2, 1)), false);
    use(
        image(edges, false),
        "",
        graph -> {
          assertThatExceptionOfType(InvalidRequestException.class)
              .isThrownBy(() -> run(GraphAlgorithm.BFS, 3, graph, LARGE))
              .withMessageContaining("vertices 0 to 2");
          assertThatExceptionOfType(InvalidRequestException.class)
              .isThrownBy(() -> run(GraphAlgorithm.SSSP, 0, graph, LARGE))
              .withMessageContaining("--weights");
        });
  }

  /** Whoever reads it, the GPU or the CPU. */
  private void damaged(Path image, GraphAlgorithm algorithm, String what) {
    use(
        image,
        "",
        graph -> {
          for (GraphOptions options : List.of(SMALL, LARGE, LARGE.with(EdgePlace.VRAM))) {
            assertThatExceptionOfType(GraphException.class)
                .isThrownBy(() -> run(algorithm, 0, graph, options))
                .withMessageContaining("is damaged")
                .withMessageContaining(what)
                .matches(e -> e.kind() == GraphException.Kind.DAMAGED);
          }
          assertThatExceptionOfType(GraphException.class)
              .isThrownBy(() -> GraphProgram.runByCpu(algorithm, 0, graph, GraphListener.NONE))
              .withMessageContaining(what);
        });
  }

  @ParameterizedTest
  @EnumSource(GraphAlgorithm.class)
  void anEdgeToNowhereIsFound(GraphAlgorithm algorithm) throws IOException {
    Path image = image(small(), false);
    GraphHeader header = GraphHeader.plan(305, 302, false, true);
    GraphImages.patch(image, header.edgesAt() + 4 * 250, (byte) 0x31, (byte) 1);
    damaged(image, algorithm, "edge 250 leads to vertex 305, and there are 305");
  }

  @Test
  void aWeightOfNothingIsFound() throws IOException {
    Path image = image(small(), false);
    GraphImages.patch(image, GraphHeader.plan(305, 302, false, true).weightsAt() + 7, (byte) 0);
    damaged(image, GraphAlgorithm.SSSP, "edge 7 has a weight of 0");
  }

  @ParameterizedTest
  @CsvSource({
    "0,1,the edges of vertex 0 begin with edge 1: 0 is possible",
    "5,7,the edges of vertex 6 begin with edge 7: 8 to 302 is possible",
    "9,-1,the edges of vertex 9 begin with edge -1",
    "9,303,the edges of vertex 9 begin with edge 303: 9 to 302 is possible",
    "305,301,the edges of vertex 305 begin with edge 301"
  })
  void aWrongOffsetIsFound(int vertex, long offset, String what) throws IOException {
    Path image = image(small(), false);
    byte[] bytes = new byte[8];
    ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN).putLong(vertex == 5 ? 8 : offset);
    GraphImages.patch(image, GraphHeader.ALIGNMENT + 8L * vertex, bytes);
    damaged(image, GraphAlgorithm.BFS, what);
  }

  /** What passes is tried again. */
  @Test
  void readsThatFailNowAndThenAreRepeated() throws IOException {
    Edges edges = Edges.random(2000, 12000, new Random(13));
    use(
        image(edges, true),
        ",faults=status=generic/namespace-not-ready on read every=7",
        graph -> {
          for (GraphAlgorithm algorithm : GraphAlgorithm.values()) {
            GraphReport report = run(algorithm, 0, graph, SMALL);
            GraphProgram.verify(report, graph, GraphListener.NONE);
            assertThat(report.reads()).isNotNull();
            assertThat(report.reads().counters().readFailures()).isPositive();
          }
        });
  }

  @ParameterizedTest
  @EnumSource(GraphAlgorithm.class)
  void aReadThatFailsIsTold(GraphAlgorithm algorithm) throws IOException {
    Edges edges = Edges.random(2000, 12000, new Random(14));
    use(
        image(edges, true),
        ",faults=status=media/unrecovered-read dnr on read after=40",
        graph ->
            assertThatExceptionOfType(NvmeStatusException.class)
                .isThrownBy(() -> run(algorithm, 0, graph, SMALL))
                .withMessageContaining("Unrecovered Read Error")
                .withMessageContaining("LBA"));
  }

  /** All that can go wrong: the right result, or an error with a type, and an end. */
  @ParameterizedTest
  @CsvSource({"1", "4"})
  void anSsdWithAllFaultsEndsRightOrTyped(int seed) throws IOException {
    Edges edges = Edges.random(1000, 6000, new Random(seed));
    String faults =
        String.join(
            ";",
            "status=generic/namespace-not-ready on read p=0.02",
            "status=media/unrecovered-read dnr on read p=0.0005",
            "drop on read p=0.0005",
            "delay=2ms on read p=0.01",
            "late=1ms on read p=0.01",
            "duplicate on read p=0.005",
            "wrong-cid=0x8000 on read p=0.0005",
            "torn on read p=0.01",
            "reorder on read p=0.05",
            "sqhd-bad on read p=0.0005",
            seed == 4 ? "gone on read nth=300" : "stall=2ms on read p=0.002");
    Path image = image(edges, true);
    for (GraphAlgorithm algorithm : GraphAlgorithm.values()) {
      try {
        use(
            image,
            ",seed=%d,faults=%s".formatted(seed, faults),
            graph -> {
              GraphReport report = run(algorithm, 0, graph, SMALL);
              GraphResult right;
              try (Arena arena = Arena.ofConfined()) {
                MemoryGraph all = memory(image, arena);
                right = CpuPrograms.run(algorithm, report.result().source(), all, Arena.ofAuto());
              }
              report.result().requireSame(right, "image");
            });
      } catch (NvmeException | io.gpunvme.storage.path.StorageException e) {
        assertThat(e).hasMessageNotContaining("unexpected");
      }
    }
  }

  /** Without an SSD. */
  private static MemoryGraph memory(Path image, Arena arena) {
    try {
      ByteBuffer bytes = GraphImages.bytes(image);
      byte[] head = new byte[GraphHeader.BYTES];
      bytes.get(0, head);
      GraphHeader header = GraphHeader.read(head, bytes.capacity(), "image");
      MemorySegment all = arena.allocate(bytes.capacity(), Long.BYTES);
      all.copyFrom(MemorySegment.ofBuffer(bytes));
      return new MemoryGraph(
          "image",
          all.asSlice(header.offsetsAt(), (header.vertices() + 1) * 8),
          new IntWords(all.asSlice(header.edgesAt(), header.edges() * 4)),
          all.asSlice(header.weightsAt(), header.edges()));
    } catch (IOException e) {
      throw new java.io.UncheckedIOException(e);
    }
  }
}
