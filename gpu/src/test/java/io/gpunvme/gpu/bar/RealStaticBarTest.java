package io.gpunvme.gpu.bar;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.bar.BarSearchException.Problem;
import io.gpunvme.gpu.device.Device;
import io.gpunvme.gpu.device.GpuBusAddresses;
import io.gpunvme.gpu.transfer.CpuInitiator;
import io.gpunvme.gpu.transfer.Direction;
import io.gpunvme.gpu.transfer.Extent;
import io.gpunvme.gpu.transfer.TransferPlan;
import io.gpunvme.nvme.driver.ControllerOptions;
import io.gpunvme.nvme.driver.Namespace;
import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.nvme.memory.BusMapper;
import io.gpunvme.nvme.memory.BusRange;
import io.gpunvme.nvme.pci.HostPaths;
import io.gpunvme.nvme.pci.PciAddress;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * A real controller reads and writes memory behind the BAR of another function, which plays a GPU:
 * {@code gpunvme.gpu-bar} names it, as {@code gpu-bar=} of an address does. This test knows on
 * which pages of the BAR a buffer lies; the library has to find them.
 */
@Tag("qemu")
@Timeout(120)
class RealStaticBarTest {
  private static final int PAGE = PageCut.PAGE;
  private static final int GRANULE = PageCut.GRANULE;

  private final long seed = Long.getLong("gpunvme.seed", System.nanoTime());
  private final SplittableRandom random = new SplittableRandom(seed);
  private final Arena arena = Arena.ofShared();
  private PeerBar window;
  private Device device;
  private NvmeController controller;
  private CpuInitiator initiator;
  private int[] order;

  @BeforeEach
  void open() {
    String address = System.getProperty("gpunvme.device", "");
    String bar = System.getProperty("gpunvme.gpu-bar", "");
    assumeTrue(
        !address.isEmpty() && !bar.isEmpty(),
        "no real controller, or nothing that plays a GPU: -Dgpunvme.device=vfio:ADDRESS"
            + " -Dgpunvme.gpu-bar=ADDRESS/BAR name none");
    String[] parts = bar.split("/");
    window = PeerBar.open(HostPaths.host(), PciAddress.parse(parts[0]), Integer.parseInt(parts[1]));
    fill(window.memory());
    device =
        Device.open(
            address + ",gpu-bar=" + bar, ControllerOptions.builder().allowWrite(true).build());
    controller = device.controller();
    initiator = new CpuInitiator(controller, 1, 8, 1, 0);
    order = IntStream.range(0, (int) (window.size() / PAGE)).toArray();
    for (int i = order.length - 1; i > 0; i--) {
      int j = random.nextInt(i + 1);
      int swapped = order[i];
      order[i] = order[j];
      order[j] = swapped;
    }
  }

  @AfterEach
  void close() {
    try (Arena memory = arena;
        PeerBar bar = window;
        Device ssd = device;
        CpuInitiator queues = initiator) {
      // In this order from the end.
      assertThat(memory).isNotNull();
    }
  }

  private void fill(MemorySegment memory) {
    for (long at = 0; at < memory.byteSize(); at += Long.BYTES) {
      memory.set(ValueLayout.JAVA_LONG, at, random.nextLong());
    }
  }

  /** A buffer on the BAR's pages {@code order[from]} and following. */
  private ScatteredMemory memory(PageCut cut, int from, int... missing) {
    List<MemorySegment> pages = new ArrayList<>();
    for (int i = 0; i < cut.pages(); i++) {
      int page = i;
      boolean there = Arrays.stream(missing).noneMatch(m -> m == page);
      pages.add(there ? barPage(from + i) : arena.allocate(PAGE, PAGE));
    }
    return new ScatteredMemory(pages, cut, window.address(), window.size());
  }

  private MemorySegment barPage(int i) {
    return window.memory().asSlice((long) order[i] * PAGE, PAGE);
  }

  /** As a GPU's buffer. */
  private static final class Buffer extends DeviceBuffer {
    private final ScatteredMemory memory;

    Buffer(ScatteredMemory memory) {
      this.memory = memory;
    }

    @Override
    public long size() {
      return memory.size();
    }

    @Override
    public boolean isHost() {
      return false;
    }

    @Override
    public MemorySegment segment() {
      throw new IllegalStateException();
    }

    @Override
    public long deviceAddress() {
      throw new IllegalStateException();
    }

    @Override
    protected BusRange map(BusMapper controller) {
      return controller.map(memory);
    }

    @Override
    protected void free() {}

    @Override
    public void copyToHost(long offset, MemorySegment target) {
      memory.copy(offset, target, true);
    }

    @Override
    public void copyFromHost(MemorySegment source, long offset) {
      memory.copy(offset, source, false);
    }
  }

  private void move(Direction direction, DeviceBuffer buffer, long lba, long bytes) {
    Namespace ns = controller.namespaces().getFirst();
    long blocks = bytes / ns.blockSize();
    // Not at a page of the buffer, so that PRP lists begin anywhere.
    TransferPlan plan =
        TransferPlan.of(
            direction,
            ns,
            controller.maxTransferBytes(),
            List.of(new Extent(lba, blocks, buffer.size() - bytes)));
    assertThat(initiator.run(plan, buffer, b -> {}).bytes()).isEqualTo(bytes);
  }

  private MemorySegment copy(DeviceBuffer buffer) {
    MemorySegment copy = arena.allocate(buffer.size());
    buffer.copyToHost(0, copy);
    return copy;
  }

  @Test
  void theControllerReadsAndWritesWhatWasFound() {
    assertThat(device.gpuBusAddresses().way()).isEqualTo(GpuBusAddresses.Way.STATIC_BAR);
    PageCut whole = new PageCut(0, 64L * PAGE);
    PageCut shifted = new PageCut(5L * GRANULE, 6L * (1 << 20) + 3 * GRANULE);
    try (Buffer one = new Buffer(memory(whole, 0));
        Buffer two = new Buffer(memory(shifted, 64))) {
      exchange(one, 0);
      exchange(two, 16_384);
      exchange(one, 512);
    }
  }

  private void exchange(Buffer buffer, long lba) {
    long skipped = 512 * random.nextLong(100);
    long bytes = buffer.size() - skipped;
    byte[] rest = rest();
    try (CpuAccelerator cpu = CpuAccelerator.open();
        DeviceBuffer host = cpu.allocate(buffer.size())) {
      // The controller reads from the GPU's memory: its contents were not changed by the search.
      MemorySegment random1 = arena.allocate(buffer.size());
      fill(random1);
      buffer.copyFromHost(random1, 0);
      move(Direction.WRITE, buffer, lba, bytes);
      assertThat(copy(buffer).mismatch(random1)).as("seed %d", seed).isEqualTo(-1);
      move(Direction.READ, host, lba, bytes);
      assertThat(host.segment().asSlice(skipped).mismatch(random1.asSlice(skipped)))
          .as("seed %d", seed)
          .isEqualTo(-1);
      // It writes to the GPU's memory, there and nowhere else.
      fill(host.segment());
      move(Direction.WRITE, host, lba, bytes);
      move(Direction.READ, buffer, lba, bytes);
      MemorySegment expected = arena.allocate(buffer.size());
      expected.copyFrom(random1);
      expected.asSlice(skipped).copyFrom(host.segment().asSlice(skipped));
      assertThat(copy(buffer).mismatch(expected)).as("seed %d", seed).isEqualTo(-1);
    }
    assertThat(rest()).as("the BAR beside the buffers, seed %d", seed).isEqualTo(rest);
  }

  /** What no buffer has, that is on none of the first 192 pages of the order. */
  private byte[] rest() {
    byte[] rest = new byte[(order.length - 192) * PAGE];
    for (int i = 192; i < order.length; i++) {
      MemorySegment.copy(barPage(i), ValueLayout.JAVA_BYTE, 0, rest, (i - 192) * PAGE, PAGE);
    }
    return rest;
  }

  @Test
  void aBufferWithOneWrongPageIsRefusedAndNothingStaysMapped() {
    PageCut cut = new PageCut(0, 32L * PAGE);
    BusMapper function = controller.function();
    BusRange good = function.map(memory(cut, 0));
    long first = good.busAddress(0);
    good.close();

    assertRefused(memory(cut, 0, 11), Problem.NOT_FOUND, 11);

    ScatteredMemory twice = memory(cut, 0);
    twice.meddle(
        (round, key) -> {
          MemorySegment page = arena.allocate(PAGE);
          twice.copy(3L * PAGE, page, true);
          twice.copy(20L * PAGE, page, false);
        });
    assertRefused(twice, Problem.FOUND_TWICE, 3);

    ScatteredMemory oneByte = memory(cut, 0);
    oneByte.meddle(
        (round, key) -> {
          MemorySegment wrong = barPage(17).asSlice(PAGE / 2 + 9, 1);
          wrong.set(ValueLayout.JAVA_BYTE, 0, (byte) ~wrong.get(ValueLayout.JAVA_BYTE, 0));
        });
    assertRefused(oneByte, Problem.DIFFERENT, 17);

    MemorySegment outside = arena.allocate(PAGE, PAGE);
    List<MemorySegment> pages = new ArrayList<>();
    for (int i = 0; i < 32; i++) {
      pages.add(i == 5 ? outside : barPage(i));
    }
    ScatteredMemory stale = new ScatteredMemory(pages, cut, window.address(), window.size());
    stale.meddle(
        (round, key) -> {
          if (round == 1) {
            barPage(100).copyFrom(outside);
          }
        });
    assertRefused(stale, Problem.STALE, 5);

    // The first free bus addresses are free again.
    try (BusRange again = function.map(memory(cut, 0))) {
      assertThat(again.busAddress(0)).isEqualTo(first);
    }
  }

  private void assertRefused(ScatteredMemory memory, Problem problem, int page) {
    BarSearchException refused =
        catchThrowableOfType(
            BarSearchException.class, () -> controller.function().map(memory).close());
    assertThat(refused).as("seed %d", seed).isNotNull();
    assertThat(refused.problem()).as(refused.getMessage()).isEqualTo(problem);
    assertThat(refused.page()).isEqualTo(page);
  }
}
