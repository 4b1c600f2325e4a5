package io.gpunvme.gpu.queue;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.device.Device;
import io.gpunvme.nvme.driver.ControllerOptions;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** {@link KernelStorage#directory}; how kernels look up: {@link KernelStorageContract}. */
class DeviceDirectoryTest {
  private static final int BLOCK = 512;

  private final FakeGpu gpu = new FakeGpu();
  private final Device device = Device.open("sim:size=1MiB", ControllerOptions.defaults());
  private final KernelStorage storage =
      KernelStorage.open(device, gpu, KernelStorageOptions.in(Placement.HOST).with(1, 32));

  private final DirectoryFiles files = new DirectoryFiles(StripeSet.of(device.controller(), 1));

  @AfterEach
  void close() {
    storage.close();
    device.close();
    gpu.close();
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "", "/", "/a", "a/", "a//b", ".", "..", "a/./b", "a/..", "a\0b", "\uD83D", "a\uDE00"
      })
  void whatIsNoPathIsRefused(String path) {
    assertThatThrownBy(() -> files.add(path, 0, List.of()))
        .isInstanceOf(InvalidRequestException.class);
    assertThat(files.count()).isZero();
  }

  @Test
  void whatDoesNotFitIsRefusedByName() {
    String longest = "ä".repeat(DirectoryFiles.MOST_PATH_BYTES / 2);
    files.add(longest, 0, List.of());
    assertThatThrownBy(() -> files.add(longest + "x", 0, List.of()))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("has 4097 bytes, more than 4096");
    assertThatThrownBy(() -> files.add("x/y", 10, List.of(new DeviceExtent(0, 10, 2048))))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("of 'x/y' of 10 bytes is not behind the extent before it");
    assertThatThrownBy(() -> files.add("x\u001B", -1, List.of()))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("'x\\x1B' of -1 bytes");
    files.add("x/y", 10, List.of(new DeviceExtent(0, 10, 2047)));
    files.add("x/y", 10, List.of());
    assertThatThrownBy(() -> storage.directory(files))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("'x/y' is there twice");
  }

  @Test
  void filesAndMemoryAreBounded() {
    StripeSet set = StripeSet.of(device.controller(), 1);
    List<DeviceExtent> pieces =
        IntStream.range(0, 50)
            .mapToObj(i -> new DeviceExtent((long) i * BLOCK, BLOCK, i % 2 * 8L))
            .toList();
    DirectoryFiles few = new DirectoryFiles(set, 2, 10_000);
    few.add("a", 0, List.of());
    few.add("b", 0, List.of());
    assertThatThrownBy(() -> few.add("c", 0, List.of()))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("more than 2 files");
    DirectoryFiles small = new DirectoryFiles(set, 100, 3 * (50 * 16 + 32 + 32 + 4 + 2));
    for (int i = 0; i < 3; i++) {
      small.add("f" + i, 50L * BLOCK, pieces);
    }
    assertThatThrownBy(() -> small.add("f3", 0, List.of()))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("4 files take more than 2610 bytes");
    try (DeviceDirectory directory = storage.directory(small)) {
      // The set and the structure are beside.
      assertThat(directory.memoryBytes()).isLessThan(2610 + 200);
    }
  }

  @Test
  void oneAllocationHasAllOfIt() {
    for (int i = 0; i < 1000; i++) {
      files.add("n/%04d".formatted(i), 700, List.of(new DeviceExtent(0, 700, i % 1000)));
    }
    try (DeviceDirectory directory = storage.directory(files)) {
      assertThat(directory.count()).isEqualTo(1000);
      // File, extent, end and bytes of the path, slots.
      long slots = 2048 * 8;
      assertThat(directory.memoryBytes())
          .isEqualTo(64 + 64 + 32 + 1000 * (32 + 16 + 4 + 6) + slots);
      assertThat(gpu.owns(directory.deviceAddress())).isTrue();
      assertThat(gpu.owns(directory.deviceAddress() + directory.memoryBytes() - 1)).isTrue();
    }
  }

  @Test
  void theStorageHasTheSetAndClosesTheDirectory() {
    files.add("a", 5, List.of(new DeviceExtent(0, 5, 0)));
    try (Device other = Device.open("sim:size=1MiB", ControllerOptions.defaults())) {
      DirectoryFiles foreign = new DirectoryFiles(StripeSet.of(other.controller(), 1));
      assertThatThrownBy(() -> storage.directory(foreign))
          .isInstanceOf(InvalidRequestException.class)
          .hasMessageContaining("is none of this storage");
    }
    DeviceDirectory closed = storage.directory(files);
    closed.close();
    assertThatThrownBy(closed::deviceAddress)
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("this directory is closed");
    DeviceDirectory open = storage.directory(files);
    storage.close();
    assertThatThrownBy(open::deviceAddress).isInstanceOf(IllegalStateException.class);
    assertThatThrownBy(() -> storage.directory(files)).isInstanceOf(IllegalStateException.class);
  }

  private static List<byte[]> bytes(Stream<String> paths) {
    return paths.map(path -> path.getBytes(StandardCharsets.UTF_8)).toList();
  }

  @Test
  void everyPathHasOneSlotWithinTheProbes() {
    SplittableRandom random = new SplittableRandom(1);
    for (int count : new int[] {0, 1, 2, 3, 4, 5, 100, 20_000}) {
      List<byte[]> paths =
          bytes(IntStream.range(0, count).mapToObj(i -> "n%d/%d.jpg".formatted(i % 7, i)));
      PathSlots slots = PathSlots.of(paths, PathSlots.MOST_PROBES);
      assertThat(slots.size()).isBetween(Math.max(1, 2 * count), Math.max(2, 4 * count));
      assertThat(Integer.bitCount(slots.size())).isOne();
      int[] at = new int[count];
      Arrays.fill(at, -1);
      for (int slot = 0; slot < slots.size(); slot++) {
        if (slots.file(slot) >= 0) {
          assertThat(at[slots.file(slot)]).isEqualTo(-1);
          at[slots.file(slot)] = slot;
        }
      }
      int furthest = 0;
      for (int i = 0; i < count; i++) {
        assertThat(slots.hash(i)).isEqualTo(PathSlots.hash(slots.seed(), paths.get(i)));
        furthest = Math.max(furthest, at[i] - slots.hash(i) & slots.mask());
      }
      assertThat(slots.probes()).isEqualTo(furthest + 1).isLessThan(40);
    }
    // One hash function has them all in one slot, the next one has not.
    List<byte[]> crowd = bytes(Collisions.crowd(random, 20).stream());
    assertThat(PathSlots.of(crowd, 20).seed()).isZero();
    PathSlots spread = PathSlots.of(crowd, 19);
    assertThat(spread.seed()).isPositive();
    assertThat(spread.probes()).isLessThan(20);
    assertThatThrownBy(() -> PathSlots.of(crowd, 1))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("rename some files");
  }
}
