package io.gpunvme.core.weights.format;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.ThreadMXBean;
import io.gpunvme.nvme.fuzz.FuzzSeed;
import java.lang.management.ManagementFactory;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.function.Function;
import org.junit.jupiter.api.Test;

/**
 * Random models are read as what they are, and mutations of them as something consistent or not at
 * all, in memory and reads bounded by their size.
 */
class HeaderPropertiesTest {
  private static final int MODELS = 400;
  private static final int MUTATIONS = 120_000;

  /** Mutations of one model, so that making it is not most of the work. */
  private static final int PER_MODEL = 100;

  /** Reading may go over a byte this often, and each read may fill a window for nothing. */
  private static final int READS_PER_BYTE = 8;

  private static final int WINDOW = 64 << 10;

  /** Objects for a header of so many bytes; decoders and readers have buffers of their own. */
  private static final long MEMORY_PER_BYTE = 400;

  private static final long MEMORY = 1 << 20;

  @Test
  void randomModels() {
    FuzzSeed seed = FuzzSeed.announce("random models");
    seed.cases(MODELS)
        .forEach(
            number -> {
              SplittableRandom random = seed.random(number);
              boolean gguf = random.nextBoolean();
              RandomModel model = gguf ? RandomModel.gguf(random) : RandomModel.safetensors(random);
              MemoryReader reader = new MemoryReader(model.file);
              ModelHeader header = ModelFiles.readHeader(reader);
              assertThat(header.format()).startsWith(gguf ? "GGUF" : "safetensors");
              assertThat(header.tensors())
                  .as(seed.describe(number))
                  .containsExactlyElementsOf(model.tensors);
              checkConsistent(header, reader);
            });
  }

  @Test
  void mutatedSafetensors() {
    mutate("mutated safetensors", RandomModel::safetensors, 8);
  }

  @Test
  void mutatedGguf() {
    mutate("mutated GGUF", RandomModel::gguf, 4);
  }

  private static void mutate(
      String name, Function<SplittableRandom, RandomModel> model, int leastRefused) {
    FuzzSeed seed = FuzzSeed.announce(name);
    int[] refused = {0};
    seed.cases(MUTATIONS / PER_MODEL)
        .forEach(
            number -> {
              SplittableRandom random = seed.random(number);
              byte[] good = model.apply(random).file;
              for (int i = 0; i < PER_MODEL; i++) {
                byte[] bad = Mutations.mutated(random, good);
                try {
                  refused[0] += isRefused(bad) ? 1 : 0;
                } catch (RuntimeException | Error e) {
                  throw new AssertionError(
                      seed.describe(number) + ", mutation " + i + ": " + e.getMessage(), e);
                }
              }
            });
    System.out.printf("%s: %d of %d refused%n", name, refused[0], MUTATIONS);
    // Most bytes of a header matter: a reader that accepts all has not looked.
    assertThat(seed.isReplay() || refused[0] > MUTATIONS / 16 * leastRefused).isTrue();
  }

  private static boolean isRefused(byte[] file) {
    MemoryReader reader = new MemoryReader(file);
    ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    long before = threads.getCurrentThreadAllocatedBytes();
    try {
      checkConsistent(ModelFiles.readHeader(reader), reader);
      return false;
    } catch (FormatException e) {
      assertThat(e.file()).isEqualTo("memory");
      assertThat(e.getMessage()).hasSizeLessThan(1000).startsWith("memory");
      return true;
    } finally {
      assertThat(threads.getCurrentThreadAllocatedBytes() - before)
          .isLessThan(MEMORY + MEMORY_PER_BYTE * file.length);
      assertThat(reader.bytesRead)
          .isLessThan((long) READS_PER_BYTE * (file.length + WINDOW) + 16L * file.length);
    }
  }

  /** What whoever uses a header relies on; reads all arrays. */
  private static void checkConsistent(ModelHeader header, MemoryReader reader) {
    Set<String> names = new HashSet<>();
    long at = header.dataOffset();
    for (TensorInfo tensor : header.tensors()) {
      assertThat(names.add(tensor.name())).isTrue();
      assertThat(tensor.offset()).isGreaterThanOrEqualTo(at);
      assertThat(tensor.offset() - header.dataOffset()).matches(o -> o % header.alignment() == 0);
      assertThat(tensor.end()).isLessThanOrEqualTo(reader.size());
      assertThat(tensor.bytes())
          .isEqualTo(
              tensor.type().bytes(Arrays.stream(tensor.shape()).reduce(1, Math::multiplyExact)));
      at = tensor.end();
    }
    header.metadata().values().forEach(HeaderPropertiesTest::readAll);
  }

  private static void readAll(MetaValue value) {
    assertThat(value.toString()).isNotNull();
    if (value instanceof MetaValue.Items items) {
      items.forEach(HeaderPropertiesTest::readAll);
    }
  }
}
