package io.gpunvme.gpu.bar;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.ffi.Mapping;
import io.gpunvme.nvme.DmaMappingException;
import io.gpunvme.nvme.memory.BusRange;
import io.gpunvme.nvme.memory.PeerMemory;
import io.gpunvme.nvme.memory.RemoteMemory;
import io.gpunvme.nvme.memory.RemotePort;
import io.gpunvme.nvme.pci.Bar;
import io.gpunvme.nvme.pci.ConfigSpace;
import io.gpunvme.nvme.pci.PciAddress;
import io.gpunvme.nvme.pci.PciFunction;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class StaticBarFunctionTest {
  private static final long PHYSICAL = 0x38_0000_0000L;

  private final Arena arena = Arena.ofShared();
  private final FakeBar bar = new FakeBar(arena, new SplittableRandom(1), 32);
  private final List<String> closed = new ArrayList<>();
  private final Controller controller = new Controller();
  private final StaticBarFunction function =
      new StaticBarFunction(
          controller,
          new PeerBar(FakeBar.GPU, 1, PHYSICAL, Mapping.part(bar.memory, () -> closed.add("bar"))));

  /** Remembers what it was given. */
  private final class Controller implements PciFunction {
    private List<PeerMemory> parts = List.of();

    @Override
    public BusRange mapPeer(List<PeerMemory> given) {
      parts = List.copyOf(given);
      return BusRange.remote(
          given.stream().mapToLong(PeerMemory::size).sum(), 1L << 32, () -> closed.add("range"));
    }

    @Override
    public BusRange map(MemorySegment memory) {
      return BusRange.contiguous(memory, 1L << 33, () -> {});
    }

    @Override
    public String name() {
      return "vfio:0000:01:00.0";
    }

    @Override
    public Bar bar(int index) {
      throw new UnsupportedOperationException();
    }

    @Override
    public ConfigSpace config() {
      throw new UnsupportedOperationException();
    }

    @Override
    public int addressBits() {
      return 39;
    }

    @Override
    public void reset() {
      closed.add("reset");
    }

    @Override
    public void close() {
      closed.add("controller");
    }
  }

  @AfterEach
  void close() {
    arena.close();
  }

  @Test
  void mapsThePagesInAsFewRunsAsTheyLieIn() {
    PageCut cut = new PageCut(PageCut.PAGE - 8192, 8192 + 5L * PageCut.PAGE + 4096);
    BusRange range = function.map(bar.buffer(cut, new int[] {9, 10, 11, 3, 20, 21, 22}));

    assertThat(range.size()).isEqualTo(cut.size());
    assertThat(controller.parts.stream().map(p -> p.physical() - PHYSICAL))
        .containsExactly(10L * PageCut.PAGE - 8192, 3L * PageCut.PAGE, 20L * PageCut.PAGE);
    assertThat(controller.parts.stream().map(PeerMemory::size))
        .containsExactly(8192 + 2L * PageCut.PAGE, (long) PageCut.PAGE, 2L * PageCut.PAGE + 4096);
    for (PeerMemory part : controller.parts) {
      assertThat(part.memory().address() - bar.memory.address())
          .isEqualTo(part.physical() - PHYSICAL);
    }
    range.close();
    assertThat(closed).containsExactly("range");
  }

  @Test
  void aRefusedBufferIsNotMapped() {
    ScatteredMemory buffer = bar.buffer(new PageCut(0, PageCut.PAGE), new int[] {4});
    buffer.meddle((round, key) -> bar.page(4).fill((byte) 0));
    assertThatThrownBy(() -> function.map(buffer)).isInstanceOf(BarSearchException.class);
    assertThat(controller.parts).isEmpty();
  }

  @Test
  void memoryOfAnotherGpuIsRefused() {
    ScatteredMemory other =
        new ScatteredMemory(
            List.of(bar.page(1)),
            new PageCut(0, PageCut.PAGE),
            PciAddress.parse("0000:0b:00.0"),
            bar.memory.byteSize());
    assertThatThrownBy(() -> function.map(other))
        .isInstanceOf(DmaMappingException.class)
        .hasMessageContainingAll("0000:0b:00.0", "0000:0a:00.0", "gpu-bar");
    assertThat(other.open).isZero();
  }

  @Test
  void aBarThatIsOnlyAWindowIsRefused() {
    ScatteredMemory large =
        new ScatteredMemory(
            List.of(bar.page(1)), new PageCut(0, PageCut.PAGE), FakeBar.GPU, 24L << 30);
    assertThatThrownBy(() -> function.map(large))
        .isInstanceOf(DmaMappingException.class)
        .hasMessageContainingAll("2 MiB", "24576 MiB", "window", "Resizable BAR", "open kernel");
    assertThat(controller.parts).isEmpty();
  }

  @Test
  void memoryThatCannotBeMarkedIsRefused() {
    RemoteMemory memory =
        new RemoteMemory() {
          @Override
          public String name() {
            return "somewhere";
          }

          @Override
          public long size() {
            return 4096;
          }

          @Override
          public RemotePort openPort(RemotePort.Use use) {
            throw new UnsupportedOperationException();
          }
        };
    assertThatThrownBy(() -> function.map(memory))
        .isInstanceOf(DmaMappingException.class)
        .hasMessageContaining("somewhere");
  }

  @Test
  void everythingElseIsTheControllers() {
    MemorySegment memory = arena.allocate(4096, 4096);
    assertThat(function.map(memory).busAddress(0)).isEqualTo(1L << 33);
    assertThat(function.name()).isEqualTo("vfio:0000:01:00.0");
    assertThat(function.addressBits()).isEqualTo(39);
    assertThat(function.allocate(1).segment().byteSize()).isGreaterThanOrEqualTo(1);
    function.reset();
    function.close();
    assertThat(closed).containsExactly("reset", "controller", "bar");
  }
}
