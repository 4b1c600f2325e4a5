package io.gpunvme.ffi;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Figures of made-up machines. */
class FreeMemoryTest {
  private static final long MIB = 1 << 20;

  @TempDir private Path folder;

  private void file(String name, Object value) throws IOException {
    Path file = folder.resolve(name);
    Files.createDirectories(file.getParent());
    Files.writeString(file, value + "\n");
  }

  private void machine(long total, long available, long swap, long swapFree) throws IOException {
    file(
        "proc/meminfo",
        "MemTotal: %d kB\nMemFree: 1 kB\nMemAvailable: %d kB\nSwapTotal: %d kB\nSwapFree: %d kB"
            .formatted(total << 10, available << 10, swap << 10, swapFree << 10));
  }

  private FreeMemory memory() {
    return new FreeMemory(folder.resolve("proc"), folder.resolve("groups"));
  }

  @Test
  void nothingKnownLimitsNothing() {
    assertThat(memory().available()).isEqualTo(FreeMemory.UNKNOWN);
    assertThat(memory().most()).isEqualTo(FreeMemory.UNKNOWN);
  }

  @Test
  void aMachineHasMemoryAndSwap() throws IOException {
    machine(1000, 400, 100, 30);
    assertThat(memory().available()).isEqualTo(430 * MIB);
    assertThat(memory().most()).isEqualTo(1100 * MIB);
  }

  @Test
  void everyGroupOnTheWayUpLimits() throws IOException {
    machine(1000, 400, 0, 0);
    file("proc/self/cgroup", "0::/outer/inner");
    file("groups/outer/inner/memory.max", "max");
    file("groups/outer/inner/memory.current", 50 * MIB);
    file("groups/outer/memory.max", 200 * MIB);
    file("groups/outer/memory.current", 150 * MIB);
    assertThat(memory().available()).isEqualTo(50 * MIB);
    assertThat(memory().most()).isEqualTo(200 * MIB);
    file(
        "groups/outer/memory.stat",
        "anon 5\ninactive_file %d\nactive_file %d".formatted(20 * MIB, 10 * MIB));
    assertThat(memory().available()).as("half of a small page cache").isEqualTo(65 * MIB);
    file("groups/outer/memory.stat", "inactive_file %d".formatted(140 * MIB));
    assertThat(memory().available()).as("all but 32 MiB of a large one").isEqualTo(158 * MIB);
    file("groups/outer/inner/memory.max", 60 * MIB);
    assertThat(memory().available()).isEqualTo(10 * MIB);
    file("groups/outer/inner/memory.current", 70 * MIB);
    assertThat(memory().available()).as("over the limit").isZero();
  }

  @Test
  void aGroupMaySwapToo() throws IOException {
    machine(1000, 400, 100, 30);
    file("proc/self/cgroup", "0::/g");
    file("groups/g/memory.max", 200 * MIB);
    file("groups/g/memory.current", 150 * MIB);
    file("groups/g/memory.swap.max", 25 * MIB);
    file("groups/g/memory.swap.current", 5 * MIB);
    assertThat(memory().available()).isEqualTo(70 * MIB);
    file("groups/g/memory.swap.max", "max");
    assertThat(memory().available()).isEqualTo(80 * MIB);
  }

  @Test
  void theGroupOfAContainerIsTheTop() throws IOException {
    machine(1000, 400, 0, 0);
    file("proc/self/cgroup", "0::/../../docker/x");
    file("groups/memory.max", 100 * MIB);
    file("groups/memory.current", 10 * MIB);
    assertThat(memory().available()).isEqualTo(90 * MIB);
  }

  @Test
  void groupsOfVersion1Limit() throws IOException {
    machine(1000, 400, 0, 0);
    file("proc/self/cgroup", "9:name=systemd:/\n4:cpu,memory:/job/1\n0::/");
    file("groups/memory/job/1/memory.limit_in_bytes", 300 * MIB);
    file("groups/memory/job/1/memory.usage_in_bytes", 100 * MIB);
    file("groups/memory/job/1/memory.stat", "total_inactive_file %d".formatted(14 * MIB));
    file("groups/memory/memory.limit_in_bytes", 0x7FFF_FFFF_FFFF_F000L);
    file("groups/memory/memory.usage_in_bytes", 1);
    assertThat(memory().available()).isEqualTo(207 * MIB);
    assertThat(memory().most()).isEqualTo(300 * MIB);
  }

  @Test
  void thisMachineHasSome() {
    assertThat(FreeMemory.here().available()).isPositive();
    assertThat(FreeMemory.here().most()).isGreaterThanOrEqualTo(FreeMemory.here().available() / 2);
  }

  /** A group without memory has none for the reading of its files. */
  @Test
  void figuresThatCannotBeReadAnyMoreSayThatThereIsNothingLeft() throws IOException {
    machine(1000, 400, 0, 0);
    FreeMemory memory = memory();
    file("proc/self/cgroup", "0::/new\n3:memory:/old");
    file("groups/new/memory.max", 200 * MIB);
    file("groups/new/memory.current", 150 * MIB);
    file("groups/memory/old/memory.limit_in_bytes", 200 * MIB);
    file("groups/memory/old/memory.usage_in_bytes", 100 * MIB);
    assertThat(memory.available()).isEqualTo(50 * MIB);
    Files.delete(folder.resolve("proc/self/cgroup"));
    assertThat(memory.available()).as("the groups are known").isEqualTo(50 * MIB);
    Files.delete(folder.resolve("groups/new/memory.current"));
    assertThat(memory.available()).isZero();
    file("groups/new/memory.current", 20 * MIB);
    assertThat(memory.available()).isEqualTo(100 * MIB);
    Files.delete(folder.resolve("groups/memory/old/memory.usage_in_bytes"));
    assertThat(memory.available()).isZero();
    file("groups/memory/old/memory.usage_in_bytes", 10 * MIB);
    file("groups/new/memory.max", "max");
    assertThat(memory.available()).as("a limit that was lifted").isEqualTo(190 * MIB);
    Files.delete(folder.resolve("groups/new/memory.current"));
    assertThat(memory.available()).isEqualTo(190 * MIB);
    file("groups/memory/old/memory.limit_in_bytes", Long.MAX_VALUE - 4095);
    assertThat(memory.available()).isEqualTo(400 * MIB);
    Files.delete(folder.resolve("groups/memory/old/memory.usage_in_bytes"));
    assertThat(memory.available()).isEqualTo(400 * MIB);
  }
}
