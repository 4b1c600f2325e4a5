package io.gpunvme.models.tensor;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.gpu.queue.DeviceSources;
import io.gpunvme.testing.NativeCompiler;
import io.gpunvme.testing.Programs;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Random;
import java.util.SplittableRandom;
import java.util.zip.CRC32C;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * The kernels of {@code tensors.cu} as the CPU's compiler sees them, one thread after the other:
 * every byte that they touch is one they may (by the address sanitizer), and the results are those
 * of plain C++ and Java. Blocks have one thread, so that none waits for another.
 */
class TensorKernelsTwinTest {
  private static final String CUDA =
      DeviceSources.CUDA_WORDS
          + """
          #include "kernels/tensors.cu"
          #include <cstdio>
          #include <cstdlib>
          #include <cstring>
          #include <random>
          #include <vector>

          template <class Kernel>
          static void launch(unsigned blocks, Kernel kernel) {
            gridDim = {blocks};
            for (blockIdx = {0}; blockIdx.x < blocks; blockIdx.x++) kernel();
          }
          """;

  private static final String ROWS =
      """
      int main(int, char** argv) {
        std::mt19937_64 random(std::strtoull(argv[1], nullptr, 10));
        void (*kernels[])(RowCopy) = {gpunvme_copy_rows_1, gpunvme_copy_rows_2, gpunvme_copy_rows_4,
                                      gpunvme_copy_rows_8, gpunvme_copy_rows_16};
        for (int round = 0; round < 3000; round++) {
          u64 log = random() % 5, unit = 1 << log;
          u64 vectors = 1 + random() % 40, rows = 1 + random() % 40, width = vectors * unit;
          u64 from = unit * (random() % 60), to = width + unit * (random() % 20);
          // The memory ends where the last row does. Its start is a multiple of 16.
          u64 read = (rows - 1) * from + width, written = (rows - 1) * to + width;
          char* source = static_cast<char*>(std::malloc(read));
          char* target = static_cast<char*>(std::malloc(written));
          for (u64 i = 0; i < read; i++) source[i] = static_cast<char>(random());
          std::memset(target, 7, written);
          std::vector<char> expected(target, target + written);
          for (u64 r = 0; r < rows; r++) std::memcpy(&expected[r * to], source + r * from, width);
          launch(1 + random() % 50, [&] { kernels[log](RowCopy{source, target, from, to, vectors, rows}); });
          if (std::memcmp(target, expected.data(), written) != 0) {
            std::printf("wrong: %llu rows of %llu * %llu, pitches %llu, %llu\\n", rows, vectors, unit, from, to);
            return 1;
          }
          std::free(source);
          std::free(target);
        }
        return 0;
      }
      """;

  /** Arguments: a file with data, and one with what a launch is told, as ChecksumRound has it. */
  private static final String CHECKSUMS =
      """
      static std::vector<char> file(const char* name) {
        std::FILE* f = std::fopen(name, "rb");
        std::fseek(f, 0, SEEK_END);
        std::vector<char> bytes(static_cast<size_t>(std::ftell(f)));
        std::rewind(f);
        if (std::fread(bytes.data(), 1, bytes.size(), f) != bytes.size()) std::exit(2);
        std::fclose(f);
        return bytes;
      }

      int main(int, char** argv) {
        std::vector<char> data = file(argv[1]);
        char* memory = static_cast<char*>(std::aligned_alloc(4096, data.size()));
        std::memcpy(memory, data.data(), data.size());
        std::vector<char> round = file(argv[2]);
        u64 most = std::strtoull(argv[3], nullptr, 10);
        u32 count = static_cast<u32>(std::atoi(argv[4])), chunks = static_cast<u32>(std::atoi(argv[5]));
        Piece* pieces = reinterpret_cast<Piece*>(round.data());
        for (u32 i = 0; i < count; i++) pieces[i].address += reinterpret_cast<u64>(memory);
        u32* crcs = reinterpret_cast<u32*>(round.data() + most * sizeof(Piece));
        launch(13, [&] { gpunvme_crc32c(pieces, count, chunks, crcs); });
        std::FILE* f = std::fopen(argv[2], "r+b");
        std::fseek(f, static_cast<long>(most * sizeof(Piece)), SEEK_SET);
        std::fwrite(crcs, sizeof(u32), chunks, f);
        std::fclose(f);
        std::free(memory);
        return 0;
      }
      """;

  private static final String[] OPTIONS = {
    "-O1", "-fsanitize=address,undefined", "-g1", DeviceSources.INCLUDE
  };

  @Test
  void rowsArriveAndNothingElseIsTouched(@TempDir Path folder) throws Exception {
    String seed = Long.toUnsignedString(Long.getLong("gpunvme.seed", System.nanoTime()));
    Path program = NativeCompiler.CPP.compile(folder, "rows", CUDA + ROWS, OPTIONS);
    assertThat(Programs.text(List.of(0), program, seed)).as("seed %s", seed).isEmpty();
  }

  @Test
  void checksumsOfChunksArePutTogetherToThoseOfPieces(@TempDir Path folder) throws Exception {
    Path program = NativeCompiler.CPP.compile(folder, "crc", CUDA + CHECKSUMS, OPTIONS);
    long seed = Long.getLong("gpunvme.seed", System.nanoTime());
    SplittableRandom random = new SplittableRandom(seed);
    byte[] data = new byte[1 << 20];
    new Random(seed).nextBytes(data);
    Path dataFile = Files.write(folder.resolve("data"), data);
    Path roundFile = folder.resolve("round");
    // Less than all of it needs, so that pieces go on in the next launch.
    int mostPieces = 50;
    int mostChunks = 300;
    int[] crcs = new int[200];
    int[] expected = new int[crcs.length];
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment memory = arena.allocate(ChecksumRound.bytes(mostPieces, mostChunks), 8);
      ChecksumRound round = new ChecksumRound(memory, mostPieces, mostChunks);
      for (int i = 0; i < crcs.length; i++) {
        int length = random.nextInt(random.nextInt(10) == 0 ? data.length : 10_000) + 1;
        int offset = random.nextInt(data.length - length + 1);
        CRC32C crc = new CRC32C();
        crc.update(data, offset, length);
        expected[i] = (int) crc.getValue();
        for (long done = 0; done < length; ) {
          long taken = round.add(i, offset + done, length - done);
          if (taken == 0) {
            launch(program, dataFile, roundFile, memory, round, mostPieces);
            round.collect(crcs);
          }
          done += taken;
        }
      }
      launch(program, dataFile, roundFile, memory, round, mostPieces);
      round.collect(crcs);
    }
    assertThat(crcs).as("seed %d", seed).isEqualTo(expected);
  }

  private static void launch(
      Path program, Path data, Path file, MemorySegment memory, ChecksumRound round, int mostPieces)
      throws Exception {
    Files.write(file, memory.toArray(ValueLayout.JAVA_BYTE));
    Programs.run(program, data, file, mostPieces, round.pieces(), round.chunks());
    memory.copyFrom(MemorySegment.ofArray(Files.readAllBytes(file)));
  }
}
