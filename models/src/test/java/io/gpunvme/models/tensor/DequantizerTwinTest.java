package io.gpunvme.models.tensor;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.gpu.queue.DeviceSources;
import io.gpunvme.models.format.ElementType;
import io.gpunvme.testing.NativeCompiler;
import io.gpunvme.testing.Programs;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.SplittableRandom;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * The kernels of {@code dequantize.cu} as the CPU's compiler sees them, one thread after the other:
 * every byte that they touch is one they may (by the address sanitizer), addresses are aligned as
 * they have to be (by the other one), and the floats are those of plain Java.
 */
class DequantizerTwinTest {
  /** Arguments: files of elements and scales, one for the floats, and what a launch is told. */
  private static final String PROGRAM =
      DeviceSources.CUDA_WORDS
          + """
          #include "kernels/dequantize.cu"
          #include <cstdio>
          #include <cstdlib>
          #include <cstring>
          #include <map>
          #include <string>

          // Its end is the end of the memory, and `skipped` bytes are before it, as far as they can be.
          static char* file(const char* name, size_t skipped) {
            std::FILE* f = std::fopen(name, "rb");
            std::fseek(f, 0, SEEK_END);
            size_t bytes = static_cast<size_t>(std::ftell(f));
            std::rewind(f);
            char* memory = static_cast<char*>(std::malloc(skipped + bytes)) + skipped;
            if (std::fread(memory, 1, bytes, f) != bytes) std::exit(2);
            std::fclose(f);
            return memory;
          }

          static u64 number(const char* text) { return std::strtoull(text, nullptr, 10); }

          int main(int, char** a) {
            std::map<std::string, void (*)(Tensor)> kernels = {
          %s
            };
            size_t skipped = number(a[4]), bytes = number(a[5]);
            char* source = file(a[1], skipped);
            char* scales = file(a[2], 0);
            char* target = static_cast<char*>(std::malloc(bytes));
            Tensor t = {reinterpret_cast<u8*>(source), target, number(a[6]),
                        number(a[8]) == 0 ? nullptr : reinterpret_cast<float*>(scales),
                        number(a[7]), number(a[8]), number(a[9]), number(a[10])};
            gridDim = {static_cast<unsigned>(number(a[11]))};
            for (blockIdx = {0}; blockIdx.x < gridDim.x; blockIdx.x++) kernels.at(a[12])(t);
            std::FILE* f = std::fopen(a[3], "wb");
            std::fwrite(target, 1, bytes, f);
            std::fclose(f);
            std::free(source - skipped);
            std::free(scales);
            std::free(target);
            return 0;
          }
          """;

  private static String kernels() {
    return Quantized.TYPES.stream()
        .flatMap(
            type -> Quantized.TARGETS.stream().map(target -> CudaDequantizer.name(type, target)))
        .map(name -> "    {\"%s\", %s},".formatted(name, name))
        .collect(Collectors.joining("\n"));
  }

  @Test
  void floatsAreThoseOfTheReferenceAndNothingElseIsTouched(@TempDir Path folder) throws Exception {
    Path program =
        NativeCompiler.CPP.compile(
            folder,
            "dequantize",
            PROGRAM.formatted(kernels()),
            "-O1",
            "-ffp-contract=off",
            "-fsanitize=address,undefined",
            "-fno-sanitize-recover=undefined",
            "-g1",
            DeviceSources.INCLUDE);
    long seed = Long.getLong("gpunvme.seed", System.nanoTime());
    SplittableRandom random = new SplittableRandom(seed);
    Path source = folder.resolve("source");
    Path scales = folder.resolve("scales");
    Path target = folder.resolve("target");
    for (QuantizedMatrix m : QuantizedMatrix.all(random)) {
      Files.write(source, m.stored());
      Files.write(scales, m.scales());
      int skipped = random.nextInt(4) * Quantized.alignment(m.type());
      ElementType to = m.targetType();
      byte[] expected = m.expected();
      Programs.run(
          program,
          source,
          scales,
          target,
          skipped,
          expected.length,
          m.elements(),
          m.columns(),
          m.blockRows(),
          m.blockColumns(),
          m.blockRows() == 0 ? 0 : Math.ceilDiv(m.columns(), m.blockColumns()),
          1 + random.nextInt(50),
          CudaDequantizer.name(m.type(), to));
      assertThat(ReferenceFloats.mismatch(expected, Files.readAllBytes(target), to))
          .as("first wrong element; seed %d, %s", seed, m)
          .isEqualTo(-1);
    }
  }
}
