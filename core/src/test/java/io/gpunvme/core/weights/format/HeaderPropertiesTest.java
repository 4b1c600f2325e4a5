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
                byte[] bad = mutated(random, good);
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

  /** One to four changes: bits, bytes, numbers that hurt, pieces removed, doubled or exchanged. */
  private static byte[] mutated(SplittableRandom random, byte[] good) {
    byte[] file = good.clone();
    for (int changes = random.nextInt(1, 5); changes > 0 && file.length > 0; changes--) {
      int at = random.nextInt(Math.min(file.length, 4096));
      int length = Math.min(file.length - at, 1 + random.nextInt(24));
      switch (random.nextInt(8)) {
        case 0 -> file[at] ^= (byte) (1 << random.nextInt(8));
        case 1 -> file[at] = (byte) random.nextInt(256);
        case 2 -> file[at] = (byte) "{}[]\",:\\ 0129-eE".charAt(random.nextInt(16));
        case 3 -> number(random, file, at);
        case 4 -> file = Arrays.copyOf(file, at);
        case 5 -> file = spliced(file, at, at + length, new byte[0]);
        case 6 -> file = spliced(file, at, at, Arrays.copyOfRange(file, at, at + length));
        default -> {
          int to = random.nextInt(file.length - length + 1);
          System.arraycopy(file, at, file, to, length);
        }
      }
    }
    return file;
  }

  private static void number(SplittableRandom random, byte[] file, int at) {
    long[] numbers = {
      0,
      1,
      -1,
      Long.MIN_VALUE,
      Long.MAX_VALUE,
      1L << 32,
      Integer.MAX_VALUE,
      file.length,
      64,
      100_000
    };
    long value = numbers[random.nextInt(numbers.length)];
    int bytes = random.nextBoolean() ? 8 : 4;
    for (int i = 0; i < bytes && at + i < file.length; i++) {
      file[at + i] = (byte) (value >>> 8 * i);
    }
  }

  private static byte[] spliced(byte[] file, int from, int to, byte[] instead) {
    byte[] all = new byte[file.length - (to - from) + instead.length];
    System.arraycopy(file, 0, all, 0, from);
    System.arraycopy(instead, 0, all, from, instead.length);
    System.arraycopy(file, to, all, from + instead.length, file.length - to);
    return all;
  }
}
