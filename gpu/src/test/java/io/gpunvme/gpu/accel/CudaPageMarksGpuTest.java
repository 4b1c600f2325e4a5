package io.gpunvme.gpu.accel;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.gpu.bar.MarkKey;
import io.gpunvme.gpu.bar.MarkedMemory;
import io.gpunvme.gpu.bar.PageCut;
import io.gpunvme.gpu.bar.PageMarks;
import io.gpunvme.nvme.DmaMappingException;
import io.gpunvme.nvme.memory.BusMapper;
import io.gpunvme.nvme.memory.BusRange;
import io.gpunvme.nvme.memory.RemoteMemory;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.SplittableRandom;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Marks that kernels write, compared with the memory as copies bring it to the host. */
@Tag("gpu")
@Timeout(60)
class CudaPageMarksGpuTest {
  private final long seed = Long.getLong("gpunvme.seed", System.nanoTime());
  private final SplittableRandom random = new SplittableRandom(seed);
  private final GpuAccelerator gpu = TestGpu.open();

  @AfterEach
  void close() {
    gpu.close();
  }

  /** What a controller would be given. */
  private static MarkedMemory memory(DeviceBuffer buffer) {
    AtomicReference<RemoteMemory> seen = new AtomicReference<>();
    BusMapper mapper =
        new BusMapper() {
          @Override
          public BusRange map(MemorySegment host) {
            throw new UnsupportedOperationException();
          }

          @Override
          public BusRange map(RemoteMemory remote) {
            seen.set(remote);
            return BusRange.remote(remote.size(), 0, () -> {});
          }
        };
    buffer.mapFor(mapper);
    return (MarkedMemory) seen.get();
  }

  private static byte[] contents(DeviceBuffer buffer) {
    byte[] bytes = new byte[(int) buffer.size()];
    buffer.copyToHost(0, MemorySegment.ofArray(bytes));
    return bytes;
  }

  @Test
  void kernelsWriteTheMarksAndBringBackWhatWasThere() {
    // The first ones move the others away from the beginnings of pages.
    for (int size : new int[] {4096, 8192, 12 << 10, 64 << 10, 100 << 10, 1 << 20, 33 << 20}) {
      DeviceBuffer buffer = gpu.allocate(size);
      byte[] before = new byte[size];
      random.nextBytes(before);
      buffer.copyFromHost(MemorySegment.ofArray(before), 0);
      MarkedMemory memory = memory(buffer);
      PageCut cut = new PageCut(memory.pageOffset(), memory.size());
      assertThat(cut.pageOffset()).isEqualTo(buffer.deviceAddress() % PageCut.PAGE);
      try (PageMarks marks = memory.openMarks()) {
        for (int round = 0; round < 2; round++) {
          MarkKey key = MarkKey.random();
          marks.write(key);
          assertThat(contents(buffer))
              .as("%s, seed %d", cut, seed)
              .isEqualTo(marked(before, cut, key));
          assertThat(marks.firstWrong(key)).isEqualTo(-1);
          assertThat(marks.firstWrong(MarkKey.random())).isZero();
        }
      }
      assertThat(contents(buffer)).as("%s, seed %d", cut, seed).isEqualTo(before);
    }
  }

  private static byte[] marked(byte[] bytes, PageCut cut, MarkKey key) {
    MemorySegment copy = MemorySegment.ofArray(bytes.clone());
    for (int page = 0; page < cut.pages(); page++) {
      for (int i = 0; i < cut.marks(page); i++) {
        long at = cut.start(page) + cut.offset(page, i);
        long number = cut.number(page, i);
        copy.set(ValueLayout.JAVA_LONG_UNALIGNED, at, key.first(number));
        copy.set(ValueLayout.JAVA_LONG_UNALIGNED, at + Long.BYTES, key.second(number));
      }
    }
    return copy.toArray(ValueLayout.JAVA_BYTE);
  }

  @Test
  void kernelsSeeWhatOthersWrote() {
    DeviceBuffer buffer = gpu.allocate(1 << 20);
    MarkedMemory memory = memory(buffer);
    PageCut cut = new PageCut(memory.pageOffset(), memory.size());
    try (PageMarks marks = memory.openMarks()) {
      MarkKey key = MarkKey.random();
      marks.write(key);
      int page = random.nextInt(cut.pages());
      int i = random.nextInt(cut.marks(page));
      long at = cut.start(page) + cut.offset(page, i) + random.nextInt(PageCut.MARK);
      byte[] one = new byte[1];
      buffer.copyToHost(at, MemorySegment.ofArray(one));
      one[0] ^= 4;
      buffer.copyFromHost(MemorySegment.ofArray(one), at);
      assertThat(marks.firstWrong(key)).as("seed %d", seed).isEqualTo(cut.number(page, i));
      buffer.copyFromHost(MemorySegment.ofArray(marked(new byte[1 << 20], cut, key)), 0);
      assertThat(marks.firstWrong(key)).isEqualTo(-1);
    }
  }

  @Test
  void theOwnerIsTheGpuWithAllItsMemory() {
    MarkedMemory.Owner owner = memory(gpu.allocate(4096)).owner();
    assertThat(owner.bytes()).isGreaterThan(1L << 30);
    assertThat(gpu.context().device().pciBusId()).isEqualToIgnoringCase(owner.address().toString());
  }

  @Test
  void pagesThatAreOnlyInPartTheOwnersAreNotMarked() {
    DeviceBuffer buffer = gpu.allocate(1 << 20);
    try (ForeignMemory part = gpu.foreign(buffer.deviceAddress() + 256, 8192);
        ForeignMemory whole = gpu.foreign(buffer.deviceAddress() + 4096, 8192)) {
      MarkedMemory memory = memory(part.buffer());
      assertThatThrownBy(memory::openMarks)
          .isInstanceOf(DmaMappingException.class)
          .hasMessageContaining("memory of others");
      memory(whole.buffer()).openMarks().close();
    }
  }

  @Test
  void whatMarkingTakesIsGivenBack() {
    DeviceBuffer buffer = gpu.allocate(1 << 20);
    MarkedMemory memory = memory(buffer);
    MemoryInUse before = gpu.memoryInUse();
    try (PageMarks marks = memory.openMarks()) {
      marks.write(MarkKey.random());
    }
    assertThat(gpu.memoryInUse()).isEqualTo(before);
  }
}
