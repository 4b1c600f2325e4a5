package io.gpunvme.tools.graph;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.testing.NativeCompiler;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Synthetic graphs, compared with those that a program makes with the C++ library's generator. */
class GapEdgesTest {
  /** What the suite's description says, with the C++ library's numbers: a line for each edge. */
  private static final String PROGRAM =
      """
      #include <cstdint>
      #include <cstdio>
      #include <numeric>
      #include <random>
      #include <utility>
      #include <vector>
      static uint64_t below(std::mt19937& rng, uint64_t bound) { // as libstdc++ did until GCC 10
        uint64_t scaling = 0xFFFFFFFFull / bound, draw;
        do draw = rng(); while (draw >= bound * scaling);
        return draw / scaling;
      }
      int main() {
        const bool kron = KRON;
        const int scale = SCALE;
        const uint64_t n = 1ull << scale, m = n * DEGREE, block = 1 << 18;
        std::vector<uint64_t> order(n);
        std::iota(order.begin(), order.end(), 0);
        std::mt19937 shuffle(SEED), rng, weights;
        if (n <= 32768) {
          std::swap(order[1], order[below(shuffle, 2)]);
          for (uint64_t i = 2; i < n; i += 2) {
            uint64_t two = below(shuffle, (i + 1) * (i + 2));
            std::swap(order[i], order[two / (i + 2)]);
            std::swap(order[i + 1], order[two % (i + 2)]);
          }
        } else {
          for (uint64_t i = 1; i < n; i++) std::swap(order[i], order[below(shuffle, i + 1)]);
        }
        std::uniform_real_distribution<float> real(0, 1.0f);
        const float A = 0.57f, B = 0.19f, C = 0.19f;
        for (uint64_t e = 0; e < m; e++) {
          if (e % block == 0) {
            rng.seed(SEED + e / block);
            weights.seed(SEED + e / block);
          }
          uint64_t u = 0, v = 0;
          if (kron) {
            for (int i = 0; i < scale; i++) {
              float x = real(rng);
              u = 2 * u + !(x < A + B);
              v = 2 * v + (x < A + B ? x > A : x > A + B + C);
            }
            u = order[u];
            v = order[v];
          } else {
            u = below(rng, n);
            v = below(rng, n);
          }
          int w = 1 + (int)below(weights, 255);
          if (e % EACH == 0) printf("%d %d %d\\n", (int)u, (int)v, w);
        }
      }
      """;

  @ParameterizedTest
  @CsvSource({
    "KRON,1,1,27491095,1",
    "KRON,10,16,27491095,1",
    "KRON,16,9,27491095,1000",
    "KRON,12,3,7,1",
    "UNIFORM,10,16,27491095,1",
    "UNIFORM,15,20,4294967295,1000"
  })
  void isEdgeForEdgeTheSuites(GapEdges.Kind kind, int scale, int degree, long seed, int each) {
    String program =
        PROGRAM
            .replace("KRON", kind == GapEdges.Kind.KRON ? "true" : "false")
            .replace("SCALE", Integer.toString(scale))
            .replace("DEGREE", Integer.toString(degree))
            .replace("SEED", seed + "u")
            .replace("EACH", Integer.toString(each));
    List<String> ours = new ArrayList<>();
    try (Arena arena = Arena.ofConfined()) {
      GapEdges edges = GapEdges.of(kind, scale, degree, seed, true, arena);
      long[] number = {0};
      for (int part = 0; part < edges.parts(); part++) {
        edges.part(
            part,
            (from, to, weight) -> {
              if (number[0]++ % each == 0) {
                ours.add(from + " " + to + " " + weight);
              }
            });
      }
      assertThat(number[0]).isEqualTo(edges.edges()).isEqualTo((long) degree << scale);
    }
    assertThat(ours).isEqualTo(NativeCompiler.CPP.run(program, "-O1").lines().toList());
  }

  @Test
  void withoutWeightsTheEdgesAreTheSame() {
    List<List<Long>> both = new ArrayList<>();
    for (boolean weighted : new boolean[] {true, false}) {
      try (Arena arena = Arena.ofConfined()) {
        List<Long> all = new ArrayList<>();
        GapEdges edges = GapEdges.of(GapEdges.Kind.KRON, 8, 4, GapEdges.SEED, weighted, arena);
        edges.part(0, (from, to, weight) -> Collections.addAll(all, from, to));
        both.add(all);
        assertThat(edges.weighted()).isEqualTo(weighted);
      }
    }
    assertThat(both.getFirst()).hasSize(2 * 4 * 256).isEqualTo(both.getLast());
  }

  @ParameterizedTest
  @CsvSource({"0,16,1", "32,16,1", "8,0,1", "8,65537,1", "8,16,-1", "8,16,4294967296"})
  void whatIsOutOfRangeIsRefused(int scale, int degree, long seed) {
    try (Arena arena = Arena.ofConfined()) {
      assertThatExceptionOfType(InvalidRequestException.class)
          .isThrownBy(() -> GapEdges.of(GapEdges.Kind.KRON, scale, degree, seed, false, arena))
          .withMessageContaining("is outside");
    }
  }
}
