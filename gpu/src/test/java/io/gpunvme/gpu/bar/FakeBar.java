package io.gpunvme.gpu.bar;

import io.gpunvme.nvme.pci.PciAddress;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.stream.IntStream;

/** Plain memory in the place of a BAR, full of random bytes, and buffers in it. */
final class FakeBar {
  static final PciAddress GPU = PciAddress.parse("0000:0a:00.0");

  final MemorySegment memory;
  private final SplittableRandom random;
  private final int[] order;
  private int taken;

  FakeBar(Arena arena, SplittableRandom random, int pages) {
    this.random = random;
    this.memory = arena.allocate((long) pages * PageCut.PAGE, PageCut.PAGE);
    byte[] bytes = new byte[(int) memory.byteSize()];
    random.nextBytes(bytes);
    MemorySegment.copy(bytes, 0, memory, ValueLayout.JAVA_BYTE, 0, bytes.length);
    this.order = IntStream.range(0, pages).toArray();
    for (int i = pages - 1; i > 0; i--) {
      int j = random.nextInt(i + 1);
      int swapped = order[i];
      order[i] = order[j];
      order[j] = swapped;
    }
  }

  /** The number of a page that nobody has. */
  int take() {
    return order[taken++];
  }

  MemorySegment page(int number) {
    return memory.asSlice((long) number * PageCut.PAGE, PageCut.PAGE);
  }

  PageCut anyCut(int mostPages) {
    long first = (long) random.nextInt(16) * PageCut.GRANULE * random.nextInt(2);
    long most = (long) mostPages * PageCut.PAGE - first;
    long granules = 1 + random.nextLong(most / PageCut.GRANULE);
    return new PageCut(first, granules * PageCut.GRANULE);
  }

  /** A buffer on pages that nobody has. */
  ScatteredMemory buffer(PageCut cut, int[] pages) {
    List<MemorySegment> segments = new ArrayList<>();
    for (int page : pages) {
      segments.add(page(page));
    }
    return new ScatteredMemory(segments, cut, GPU, memory.byteSize());
  }

  int[] take(int count) {
    return IntStream.range(0, count).map(i -> take()).toArray();
  }

  byte[] contents() {
    return memory.toArray(ValueLayout.JAVA_BYTE);
  }
}
