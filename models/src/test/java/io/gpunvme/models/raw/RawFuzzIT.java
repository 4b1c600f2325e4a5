package io.gpunvme.models.raw;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.ThreadMXBean;
import io.gpunvme.models.format.Cases;
import io.gpunvme.models.format.FormatException;
import io.gpunvme.models.format.Mutations;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Random;
import java.util.Set;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;

/**
 * Mutations of superblocks and indexes, their checksums made right again or not, are read as what
 * was written, as something consistent, or not at all, in memory and reads bounded by their size.
 */
class RawFuzzIT {
  private static final int MUTATIONS = 120_000;
  private static final int PER_MODEL = 200;

  /** Up to behind the last field of the superblock. */
  private static final int HEAD = 400;

  /** Objects for an index of so many bytes; decoders and readers have buffers of their own. */
  private static final long MEMORY_PER_BYTE = 400;

  private static final long MEMORY = 8 << 20;

  private int refused;
  private int same;
  private int other;
  private boolean measured;

  @Test
  void mutatedSuperblocksAndIndexes() {
    loadClasses();
    Cases cases = Cases.announce("mutated raw models");
    for (int number : cases.numbers(MUTATIONS / PER_MODEL)) {
      SplittableRandom random = cases.random(number);
      RawImage image = RawImage.of(new Random(random.nextLong()), 512, random.nextInt(5000));
      RawModel good = image.read();
      for (int i = 0; i < PER_MODEL; i++) {
        try {
          check(random, image, good);
        } catch (RuntimeException | Error e) {
          throw new AssertionError(
              cases.describe(number) + ", mutation " + i + ": " + e.getMessage(), e);
        }
      }
    }
    System.out.printf(
        "mutated raw models: %d refused, %d as written, %d otherwise%n", refused, same, other);
    // All three must be there, or the mutations are of no use.
    assertThat(cases.isReplay() || refused > MUTATIONS / 2 && same > 100 && other > 100).isTrue();
  }

  /** Of readers, checks and failures: what is measured afterwards is their work. */
  private void loadClasses() {
    SplittableRandom random = new SplittableRandom(1);
    RawImage image = RawImage.of(new Random(1), 512, 0);
    RawModel good = image.read();
    for (int i = 0; i < PER_MODEL; i++) {
      check(random, image, good);
    }
    refused = 0;
    same = 0;
    other = 0;
    measured = true;
  }

  private void check(SplittableRandom random, RawImage image, RawModel good) {
    byte[] bad = image.bytes.clone();
    boolean ofIndex = random.nextBoolean();
    boolean sealed = random.nextInt(4) > 0;
    if (ofIndex) {
      mutateIndex(random, image, bad, sealed);
    } else {
      byte[] block = Mutations.mutated(random, Arrays.copyOf(bad, HEAD));
      System.arraycopy(block, 0, bad, 0, Math.min(block.length, HEAD));
    }
    if (sealed) {
      int crc = RawImage.crc(bad, 0, Superblock.CRC_AT);
      ByteBuffer.wrap(bad).order(ByteOrder.LITTLE_ENDIAN).putInt(Superblock.CRC_AT, crc);
    }
    RawModel model = readBounded(bad);
    if (model == null) {
      refused++;
      return;
    }
    checkConsistent(model, bad.length);
    if (model.tensors().equals(good.tensors())) {
      same++;
    } else {
      // Without its checksum made right, nothing that differs passes.
      assertThat(sealed).isTrue();
      other++;
    }
  }

  /** Longer ones are cut: the index ends where the device does, or before. */
  private static void mutateIndex(
      SplittableRandom random, RawImage image, byte[] bad, boolean sealed) {
    byte[] index = Mutations.mutated(random, image.index().getBytes(StandardCharsets.UTF_8));
    int at = (int) image.layout.indexOffset();
    int length = Math.min(index.length, bad.length - at);
    System.arraycopy(index, 0, bad, at, length);
    if (sealed) {
      ByteBuffer words = ByteBuffer.wrap(bad).order(ByteOrder.LITTLE_ENDIAN);
      words.putLong(Superblock.INDEX_BYTES_AT, length);
      words.putLong(Superblock.TOTAL_AT, at + length);
      words.putInt(Superblock.INDEX_CRC_AT, RawImage.crc(bad, at, length));
    }
  }

  /** Null if it is refused. */
  private RawModel readBounded(byte[] bytes) {
    MemoryDevice device = new MemoryDevice(bytes);
    ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    long before = threads.getCurrentThreadAllocatedBytes();
    try {
      return RawModel.read(device, RawImage.STRIPE);
    } catch (FormatException e) {
      assertThat(e.file()).isEqualTo("memory");
      assertThat(e.getMessage()).hasSizeLessThan(1000).startsWith("memory");
      return null;
    } finally {
      if (measured) {
        assertThat(threads.getCurrentThreadAllocatedBytes() - before)
            .isLessThan(MEMORY + MEMORY_PER_BYTE * bytes.length);
      }
      assertThat(device.bytesRead).isLessThan(2L * bytes.length + 2L * Superblock.BYTES);
    }
  }

  private static void checkConsistent(RawModel model, int size) {
    long at = Superblock.BYTES;
    Set<String> names = new HashSet<>();
    for (RawTensor t : model.tensors()) {
      assertThat(names.add(t.info().name())).isTrue();
      assertThat(t.info().offset() % model.superblock().alignment()).isZero();
      assertThat(t.info().offset()).isGreaterThanOrEqualTo(at);
      assertThat(t.info().bytes()).isEqualTo(t.info().type().bytes(t.info().elements()));
      at = t.info().end();
    }
    assertThat(at).isLessThanOrEqualTo(model.superblock().indexOffset());
    assertThat(model.superblock().totalBytes()).isLessThanOrEqualTo(size);
    model.metadata().values().forEach(v -> assertThat(v.toString()).isNotNull());
  }
}
