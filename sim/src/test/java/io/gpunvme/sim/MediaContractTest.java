package io.gpunvme.sim;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeFalse;

import io.gpunvme.ffi.Posix;
import io.gpunvme.sim.media.FileMedia;
import io.gpunvme.sim.media.MappedMedia;
import io.gpunvme.sim.media.Media;
import io.gpunvme.sim.media.NullMedia;
import io.gpunvme.sim.media.RamMedia;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What media in memory and in files have in common, against a byte array. */
class MediaContractTest {
  private static final int SIZE = 1 << 20;
  private static final int STEPS = 2_000;

  @TempDir Path folder;

  private Media open(String kind) {
    Path file = folder.resolve("disk");
    return switch (kind) {
      case "ram" -> new RamMedia(SIZE);
      case "file" -> FileMedia.open(file, SIZE, 512, false);
      default -> MappedMedia.open(file, SIZE, 512, false);
    };
  }

  @ParameterizedTest
  @ValueSource(strings = {"ram", "file", "mapped"})
  void randomOperationsEqualAByteArray(String kind) throws IOException {
    long seed = Long.getLong("gpunvme.seed", System.nanoTime());
    SplittableRandom random = new SplittableRandom(seed);
    byte[] model = new byte[SIZE];
    try (Media media = open(kind);
        Arena arena = Arena.ofConfined()) {
      assertThat(media.size()).isEqualTo(SIZE);
      MemorySegment buffer = arena.allocate(SIZE, 8);
      for (int step = 0; step < STEPS; step++) {
        int position = random.nextInt(SIZE);
        int length = random.nextInt(1 + Math.min(SIZE - position, 1 << random.nextInt(20)));
        int offset = random.nextInt(SIZE - length + 1);
        switch (random.nextInt(5)) {
          case 0 -> {
            media.zero(position, length);
            java.util.Arrays.fill(model, position, position + length, (byte) 0);
          }
          case 1 -> {
            media.trim(position, length);
            java.util.Arrays.fill(model, position, position + length, (byte) 0);
          }
          case 2 -> {
            media.flush();
            media.read(position, buffer, offset, length);
            assertThat(
                    MemorySegment.mismatch(
                        buffer,
                        offset,
                        (long) offset + length,
                        MemorySegment.ofArray(model),
                        position,
                        (long) position + length))
                .as("seed %d step %d", seed, step)
                .isEqualTo(-1);
          }
          default -> {
            byte[] bytes = new byte[length];
            random.nextBytes(bytes);
            MemorySegment.copy(bytes, 0, buffer, ValueLayout.JAVA_BYTE, offset, length);
            media.write(position, buffer, offset, length);
            System.arraycopy(bytes, 0, model, position, length);
          }
        }
      }
      media.read(0, buffer, 0, SIZE);
      assertThat(buffer.mismatch(MemorySegment.ofArray(model))).as("seed %d", seed).isEqualTo(-1);
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"ram", "file", "mapped"})
  void closingTwiceIsFine(String kind) throws IOException {
    Media media = open(kind);
    media.close();
    media.close();
  }

  @Test
  void nothingIsStoredNowhere() throws IOException {
    try (Media media = new NullMedia(1L << 50);
        Arena arena = Arena.ofConfined()) {
      MemorySegment buffer = arena.allocate(16);
      buffer.fill((byte) 7);
      media.write(0, buffer, 0, 16);
      buffer.fill((byte) 9);
      media.read(0, buffer, 0, 16);
      media.zero(0, 16);
      media.trim(0, 16);
      media.flush();
      assertThat(media.size()).isEqualTo(1L << 50);
      assertThat(buffer.get(ValueLayout.JAVA_BYTE, 15)).isEqualTo((byte) 9);
    }
  }

  @Test
  void ramIsTakenWhenWrittenAndGivenBackWhenTrimmed() throws IOException {
    assumeFalse(
        readingTakesMemory(), "this kernel takes memory for pages that were only read, everywhere");
    long size = 2L << 30;
    int written = 128 << 20;
    try (Media media = new RamMedia(size);
        Arena arena = Arena.ofConfined()) {
      MemorySegment buffer = arena.allocate(written).fill((byte) 1);
      long before = residentBytes();
      for (long at = 0; at < size; at += written) {
        media.read(at, buffer, 0, written);
      }
      assertThat(buffer.get(ValueLayout.JAVA_BYTE, written - 1)).isZero();
      assertThat(residentBytes() - before).as("read").isLessThan(written / 2);
      media.write(size - written, buffer, 0, written);
      assertThat(residentBytes() - before).as("written").isGreaterThan(written / 2);
      media.trim(size - written + 1, written - 2);
      assertThat(residentBytes() - before).as("trimmed").isLessThan(written / 2);
    }
  }

  /** Other kernels show all of them the same page of zeroes. */
  private static boolean readingTakesMemory() throws IOException {
    int bytes = 64 << 20;
    MemorySegment fresh =
        Posix.mmap(
            bytes,
            Posix.PROT_READ | Posix.PROT_WRITE,
            Posix.MAP_PRIVATE | Posix.MAP_ANONYMOUS,
            -1,
            0);
    try {
      long before = residentBytes();
      long sum = 0;
      for (long at = 0; at < bytes; at += 4096) {
        sum += fresh.get(ValueLayout.JAVA_BYTE, at);
      }
      assertThat(sum).isZero();
      return residentBytes() - before > bytes / 2;
    } finally {
      Posix.munmap(fresh);
    }
  }

  /** Anonymous memory of this process that is in use. */
  private static long residentBytes() throws IOException {
    String line =
        Files.readAllLines(Path.of("/proc/self/status")).stream()
            .filter(l -> l.startsWith("RssAnon:"))
            .findFirst()
            .orElseThrow();
    return Long.parseLong(line.replaceAll("\\D", "")) << 10;
  }
}
