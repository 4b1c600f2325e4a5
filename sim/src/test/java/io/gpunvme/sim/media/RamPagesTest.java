package io.gpunvme.sim.media;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.gpunvme.ffi.FreeMemory;
import io.gpunvme.ffi.MemoryBudget;
import io.gpunvme.ffi.SysFiles;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** On a made-up machine. What is really taken is what the kernel says of the medium's memory. */
class RamPagesTest {
  private static final long MIB = 1 << 20;
  private static final MemorySegment BLOCK = MemorySegment.ofArray(new byte[4096]);
  private static final MemorySegment LONG = MemorySegment.ofArray(new byte[1 << 20]);

  /** Zeroing a huge page always takes longer. */
  private static final long NEVER = 0;

  @TempDir private Path folder;
  private MemoryBudget budget;

  @BeforeEach
  void machine() throws IOException {
    free(1024);
    budget = new MemoryBudget(new FreeMemory(folder, folder));
  }

  /** The figure that the machine shows from now on. */
  private void free(long mib) throws IOException {
    Files.writeString(folder.resolve("meminfo"), "MemAvailable: %d kB\n".formatted(mib << 10));
  }

  private static long resident(RamMedia media) {
    long start = media.view(0, 1).address();
    long end = start + media.size();
    boolean inside = false;
    long kib = 0;
    for (String line : SysFiles.lines(Path.of("/proc/self/smaps"))) {
      int dash = line.indexOf('-');
      if (dash > 0 && line.indexOf(' ') > dash) {
        long from = Long.parseUnsignedLong(line.substring(0, dash), 16);
        long to = Long.parseUnsignedLong(line.substring(dash + 1, line.indexOf(' ')), 16);
        inside = from < end && to > start;
      } else if (inside && line.startsWith("Rss:")) {
        kib += Long.parseLong(line.replaceAll("[^0-9]", ""));
      }
    }
    return kib << 10;
  }

  @Test
  void aMediumIsPromisedItsMemory() throws IOException {
    try (RamMedia media = new RamMedia(200 * MIB, budget, NEVER)) {
      assertThat(budget.available()).isEqualTo((1024 - 64 - 200) * MIB);
      media.write(0, LONG, 0, MIB);
      assertThat(budget.available()).as("touched").isEqualTo((1024 - 64 - 198) * MIB);
      media.trim(0, 2 * MIB);
      assertThat(budget.available()).as("trimmed").isEqualTo((1024 - 64 - 200) * MIB);
    }
    assertThat(budget.available()).isEqualTo((1024 - 64) * MIB);
  }

  @Test
  void aFewShortWritesTakeTheirPagesOnly() throws IOException {
    try (RamMedia media = new RamMedia(64 * MIB, budget, NEVER)) {
      for (int i = 0; i < 10; i++) {
        media.write(i * 4 * MIB, BLOCK, 0, 4096);
      }
      assertThat(resident(media)).isEqualTo(10 * 4096);
    }
  }

  @Test
  void whereHugePagesAreQuickShortWritesTakeThem() throws IOException {
    try (RamMedia media = new RamMedia(64 * MIB, budget, Long.MAX_VALUE)) {
      for (int i = 0; i < 10; i++) {
        media.write(i * 4 * MIB, BLOCK, 0, 4096);
      }
      assertThat(resident(media)).isEqualTo(20 * MIB);
      assertThat(budget.available()).isEqualTo((1024 - 64 - 64 + 20) * MIB);
    }
  }

  /** 2048 blocks of 4 KiB allow 64 MiB. */
  @Test
  void manyShortWritesHaveTheRestTakenAhead() throws Exception {
    try (RamMedia media = new RamMedia(60 * MIB, budget, NEVER)) {
      media.write(0, MemorySegment.ofArray(new byte[] {5}), 0, 1);
      // The last piece is taken last: until then each of these writes counts, however quick it is.
      for (int i = 0; i < 2048; i++) {
        media.write(media.size() - 4096, BLOCK, 0, 4096);
      }
      while (resident(media) < media.size()) {
        Thread.sleep(5);
      }
      assertThat(media.view(0, 1).get(ValueLayout.JAVA_BYTE, 0)).isEqualTo((byte) 5);
      while (budget.available() < (1024 - 64) * MIB) {
        Thread.sleep(1);
      }
    }
  }

  @Test
  void closingWaitsForTheThreadThatTakesAhead() throws IOException {
    for (int round = 0; round < 20; round++) {
      try (RamMedia media = new RamMedia(200 * MIB, budget, NEVER)) {
        for (int i = 0; i < 64; i++) {
          media.write(i * 3 * MIB, BLOCK, 0, 4096);
        }
      }
    }
    assertThat(Thread.getAllStackTraces().keySet())
        .noneMatch(t -> t.getName().equals("gpunvme-ram"));
  }

  /**
   * Larger than a quarter of what is free: promised nothing, and refused when the machine is full.
   */
  @Test
  void aLargeMediumIsFullWhenTheMachineIs() throws IOException {
    try (RamMedia media = new RamMedia(2048 * MIB, budget, NEVER)) {
      assertThat(budget.available()).isEqualTo((1024 - 64) * MIB);
      media.write(0, BLOCK, 0, 4096);
      free(0);
      assertThatExceptionOfType(NoSpaceException.class)
          .isThrownBy(
              () -> {
                for (long at = 4 * MIB; at < 2048 * MIB; at += 2 * MIB) {
                  media.write(at, BLOCK, 0, 4096);
                }
              });
      assertThat(resident(media)).isBetween(2 * MIB, 66 * MIB);
      media.write(8192, BLOCK, 0, 4096);
      free(1024);
      media.write(1024 * MIB, BLOCK, 0, 4096);
    }
  }

  /** Other programs may have taken what was promised. */
  @Test
  void aPromiseEndsWhereTheMachineDoes() throws IOException {
    try (RamMedia media = new RamMedia(200 * MIB, budget, NEVER)) {
      free(0);
      assertThatExceptionOfType(NoSpaceException.class)
          .isThrownBy(() -> media.write(0, BLOCK, 0, 4096));
      assertThatExceptionOfType(NoSpaceException.class)
          .isThrownBy(() -> media.write(0, LONG, 0, MIB));
      assertThatExceptionOfType(NoSpaceException.class)
          .isThrownBy(() -> media.zero(100 * MIB, MIB));
      assertThat(resident(media)).isZero();
    }
  }

  @Test
  void memoryToBePinnedIsTakenAtOnce() throws IOException {
    try (RamMedia media = new RamMedia(10 * MIB + 4096, budget, NEVER)) {
      media.keepPages();
      assertThat(resident(media)).isEqualTo(10 * MIB + 4096);
      media.trim(0, 10 * MIB);
      assertThat(resident(media)).isEqualTo(10 * MIB + 4096);
    }
    try (RamMedia media = new RamMedia(1024 * MIB, budget, NEVER)) {
      free(4);
      assertThatExceptionOfType(NoSpaceException.class).isThrownBy(media::keepPages);
    }
  }
}
