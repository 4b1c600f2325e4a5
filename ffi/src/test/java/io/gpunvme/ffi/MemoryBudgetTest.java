package io.gpunvme.ffi;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A made-up machine with 24 GiB free, of which it keeps 64 MiB. */
class MemoryBudgetTest {
  private static final long GIB = 1 << 30;
  private static final long MOST = 24 * GIB - (64 << 20);

  @TempDir private Path folder;
  private MemoryBudget budget;

  @BeforeEach
  void machine() throws IOException {
    Files.writeString(folder.resolve("meminfo"), "MemAvailable: %d kB\n".formatted(24L << 20));
    budget = new MemoryBudget(new FreeMemory(folder, folder));
  }

  /** The system's figure stays the same: nothing is touched. */
  @Test
  void promisesThatFitOneByOneAndNotTogetherAreRefused() {
    for (int i = 0; i < 5; i++) {
      budget.promise(4 * GIB);
    }
    assertThat(budget.available()).isEqualTo(MOST - 20 * GIB);
    assertThatExceptionOfType(PosixException.class)
        .isThrownBy(() -> budget.promise(4 * GIB))
        .withMessageContaining("4294967296 bytes of host memory, of which 4227858432 may be had")
        .satisfies(e -> assertThat(e.errno()).isEqualTo(Errno.ENOMEM));
  }

  @Test
  void whatIsTouchedTheSystemCounts() {
    try (var promise = budget.promise(20 * GIB)) {
      promise.touched(15 * GIB);
      assertThat(budget.available()).isEqualTo(MOST - 5 * GIB);
      promise.givenBack(GIB);
      assertThat(budget.available()).isEqualTo(MOST - 6 * GIB);
    }
    assertThat(budget.available()).isEqualTo(MOST);
  }

  @Test
  void aRefusedPromiseCountsNothing() {
    assertThatExceptionOfType(PosixException.class).isThrownBy(() -> budget.promise(MOST + 1));
    assertThat(budget.available()).isEqualTo(MOST);
    budget.promise(MOST).close();
  }

  /** Other promises must not make what is left negative. */
  @Test
  void aMachineThatHasBecomeFullerHasNothingLeft() throws IOException {
    budget.promise(20 * GIB);
    Files.writeString(folder.resolve("meminfo"), "MemAvailable: %d kB\n".formatted(2L << 20));
    assertThat(budget.available()).isZero();
  }

  /** The last memory of a machine is not given away, whatever share of what is left that is. */
  @Test
  void theReserveStaysWhenLittleIsLeft() throws IOException {
    Files.writeString(folder.resolve("meminfo"), "MemAvailable: %d kB\n".formatted(1L << 20));
    assertThat(budget.free()).isEqualTo(GIB - (64 << 20));
    Files.writeString(folder.resolve("meminfo"), "MemAvailable: %d kB\n".formatted(70L << 10));
    assertThat(budget.free()).isEqualTo(6 << 20);
    Files.writeString(folder.resolve("meminfo"), "MemAvailable: %d kB\n".formatted(40L << 10));
    assertThat(budget.free()).isZero();
  }

  /** Memory that is populated at once is promised to nobody else meanwhile, and then touched. */
  @Test
  void sharedMemoryComesOutOfIt() {
    assertThatExceptionOfType(PosixException.class)
        .isThrownBy(() -> SharedMemory.allocate("test", 24 * GIB, budget))
        .satisfies(e -> assertThat(e.errno()).isEqualTo(Errno.ENOMEM));
    try (SharedMemory _ = SharedMemory.allocate("test", 2 << 20, budget)) {
      assertThat(budget.available()).isEqualTo(MOST);
    }
  }
}
