package io.gpunvme.models.format;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import com.sun.management.ThreadMXBean;
import io.gpunvme.storage.fs.BytesReader;
import java.lang.management.ManagementFactory;
import java.util.Arrays;
import java.util.SplittableRandom;
import java.util.function.Function;
import org.junit.jupiter.api.Test;

/**
 * Mutations of random models are read as something consistent or not at all, in memory and reads
 * bounded by their size.
 */
class HeaderFuzzIT {
  private static final int MUTATIONS = 120_000;

  /** Mutations of one model, so that making it is not most of the work. */
  private static final int PER_MODEL = 100;

  /** Reading may go over a byte this often, and each read may fill a window for nothing. */
  private static final int READS_PER_BYTE = 8;

  private static final int WINDOW = 64 << 10;

  /** Objects for a header of so many bytes; decoders and readers have buffers of their own. */
  private static final long MEMORY_PER_BYTE = 400;

  /** What the first reads take to load classes. */
  private static final long MEMORY = 8 << 20;

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
    Cases cases = Cases.announce(name);
    loadClasses(model.apply(cases.random(0)).file);
    int refused = 0;
    for (int number : cases.numbers(MUTATIONS / PER_MODEL)) {
      SplittableRandom random = cases.random(number);
      byte[] good = model.apply(random).file;
      for (int i = 0; i < PER_MODEL; i++) {
        byte[] bad = Mutations.mutated(random, good);
        try {
          refused += isRefused(bad) ? 1 : 0;
        } catch (RuntimeException | Error e) {
          throw new AssertionError(
              cases.describe(number) + ", mutation " + i + ": " + e.getMessage(), e);
        }
      }
    }
    System.out.printf("%s: %d of %d refused%n", name, refused, MUTATIONS);
    // Most bytes of a header matter: a reader that accepts all has not looked.
    assertThat(cases.isReplay() || refused > MUTATIONS / 16 * leastRefused).isTrue();
  }

  /** Of readers, checks and failures: what is measured afterwards is their work. */
  private static void loadClasses(byte[] good) {
    BytesReader reader = new BytesReader(good);
    HeaderChecks.checkConsistent(ModelFiles.readHeader(reader), reader);
    assertThatExceptionOfType(FormatException.class)
        .isThrownBy(() -> ModelFiles.readHeader(new BytesReader(Arrays.copyOf(good, 20))))
        .satisfies(e -> assertThat(e.getMessage()).hasSizeLessThan(1000).startsWith("memory"));
  }

  private static boolean isRefused(byte[] file) {
    BytesReader reader = new BytesReader(file);
    ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    long before = threads.getCurrentThreadAllocatedBytes();
    try {
      HeaderChecks.checkConsistent(ModelFiles.readHeader(reader), reader);
      return false;
    } catch (FormatException e) {
      assertThat(e.file()).isEqualTo("memory");
      assertThat(e.getMessage()).hasSizeLessThan(1000).startsWith("memory");
      return true;
    } finally {
      assertThat(threads.getCurrentThreadAllocatedBytes() - before)
          .isLessThan(MEMORY + MEMORY_PER_BYTE * file.length);
      assertThat(reader.bytesRead())
          .isLessThan((long) READS_PER_BYTE * (file.length + WINDOW) + 16L * file.length);
    }
  }
}
