package io.gpunvme.cuda;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.base.DmaBuf;
import io.gpunvme.ffi.Posix;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

final class CudaMemoryTest {
  private final FakeDriver fake = FakeDriver.fresh();
  private final CudaContext context = fake.openContext();
  private final Arena arena = Arena.ofConfined();

  @AfterEach
  void close() {
    context.close();
    arena.close();
    fake.assertClean("the test");
  }

  private MemorySegment random(int bytes) {
    MemorySegment memory = arena.allocate(bytes);
    byte[] content = new byte[bytes];
    new Random(bytes).nextBytes(content);
    return memory.copyFrom(MemorySegment.ofArray(content));
  }

  @Test
  void copiesComeBack() {
    DeviceMemory memory = context.allocate(1000);
    MemorySegment out = random(300);
    MemorySegment in = arena.allocate(300);
    memory.fill((byte) 7);
    memory.copyFrom(out, 500);
    memory.copyTo(500, in);
    assertThat(in.mismatch(out)).isEqualTo(-1);
    memory.copyTo(499, in);
    assertThat(in.get(JAVA_BYTE, 0)).isEqualTo((byte) 7);
    memory.copyTo(700, in);
    assertThat(in.get(JAVA_BYTE, 99)).isEqualTo(out.get(JAVA_BYTE, 299));
    assertThat(in.get(JAVA_BYTE, 100)).isEqualTo((byte) 7);
  }

  @Test
  void copiesAreWaitedForInAStreamOfTheirOwn() {
    DeviceMemory memory = context.allocate(8);
    memory.copyFrom(random(8), 0);
    String stream = fake.last("cuStreamSynchronize");
    assertThat(fake.calls("cuStreamSynchronize")).isEqualTo(1);
    assertThat(fake.last("cuMemcpyHtoDAsync_v2")).endsWith(" 8 " + stream);
    assertThat(fake.last("cuStreamCreateWithPriority"))
        .as("CU_STREAM_NON_BLOCKING, the highest priority")
        .isEqualTo("1 -5");
    memory.copyTo(0, arena.allocate(8));
    memory.fill((byte) 0);
    assertThat(fake.calls("cuStreamSynchronize")).isEqualTo(3);
  }

  @Test
  void memoryOfOthersIsUsedAndNotFreed() {
    DeviceMemory theirs = context.allocate(1000);
    PointerInfo info = context.pointerInfo(theirs.address());
    assertThat(info.kind()).isEqualTo(PointerInfo.Kind.DEVICE);
    assertThat(info.device()).isZero();
    assertThat(info.start()).isEqualTo(theirs.address());
    assertThat(info.contains(theirs.address() + 10, 990)).isTrue();
    assertThat(info.contains(theirs.address() - 1, 2)).isFalse();
    assertThat(info.contains(theirs.address(), info.size() + 1)).isFalse();
    assertThat(info.contains(theirs.address() + 1, Long.MAX_VALUE)).isFalse();

    MemorySegment out = random(300);
    MemorySegment in = arena.allocate(300);
    try (DeviceMemory ours = context.foreignMemory(theirs.address() + 100, 900)) {
      ours.copyFrom(out, 5);
      theirs.copyTo(105, in);
      assertThat(in.mismatch(out)).isEqualTo(-1);
      assertThatThrownBy(() -> ours.copyFrom(out, 601))
          .isInstanceOf(IndexOutOfBoundsException.class);
    }
    assertThat(fake.calls("cuMemFree_v2")).isZero();
    assertThatIllegalArgumentException().isThrownBy(() -> context.foreignMemory(0, 1));
    assertThatIllegalArgumentException().isThrownBy(() -> context.foreignMemory(4096, 0));
    PinnedMemory pinned = context.allocatePinned(64);
    assertThat(context.pointerInfo(pinned.segment().address()).kind())
        .isEqualTo(PointerInfo.Kind.HOST);
    assertThatThrownBy(() -> context.pointerInfo(4096)).isInstanceOf(CudaException.class);
  }

  @Test
  void piecesThatAreMappedOneBehindTheOtherAreOne() {
    long start = 0x7000_0000L;
    fake.pretend(start, 4096, false);
    PointerInfo first = context.pointerInfo(start + 5, 4091);
    assertThat(first.size()).isEqualTo(4096);
    assertThat(context.reaches(first)).isTrue();
    PointerInfo two = context.pointerInfo(start + 5, 4092);
    assertThat(two.start()).isEqualTo(start);
    assertThat(two.size()).isEqualTo(8192);
    assertThat(two.mapped()).isTrue();
    assertThat(context.pointerInfo(start + 4096, 5000).start()).isEqualTo(start + 4096);
    PointerInfo tooLong = context.pointerInfo(start, 3 * 4096 + 1);
    assertThat(tooLong.size()).isEqualTo(3 * 4096);
    assertThat(tooLong.contains(start, 3 * 4096 + 1)).isFalse();
    DeviceMemory whole = context.allocate(1000);
    long beyond = context.pointerInfo(whole.address()).size() + 1;
    assertThat(context.pointerInfo(whole.address(), beyond))
        .as("an allocation, whatever follows it")
        .isEqualTo(context.pointerInfo(whole.address()));
    fake.pretend(0, 0, false);
  }

  @Test
  void theContextOfACallerIsThereAgainAfterwards() throws InterruptedException {
    Cuda cuda = fake.load();
    List<Throwable> wrong = new CopyOnWriteArrayList<>();
    Thread thread =
        Thread.ofPlatform()
            .uncaughtExceptionHandler((_, e) -> wrong.add(e))
            .start(
                () -> {
                  try (CallersContext _ = cuda.keepCallersContext()) {
                    context.makeCurrent();
                  }
                  assertThat(fake.last("cuCtxSetCurrent")).as("none").isEqualTo("(nil)");
                  context.makeCurrent();
                  int calls = fake.calls("cuCtxSetCurrent");
                  try (CallersContext _ = cuda.keepCallersContext()) {
                    context.memoryInfo();
                  }
                  assertThat(fake.calls("cuCtxSetCurrent")).as("the same one").isEqualTo(calls + 1);
                });
    thread.join();
    assertThat(wrong).isEmpty();
  }

  @Test
  void memoryOfAnotherContextIsNotReached() {
    DeviceMemory memory = context.allocate(1000);
    assertThat(context.reaches(context.pointerInfo(memory.address()))).isTrue();
    fake.pretend(0, 0, true);
    assertThat(context.reaches(context.pointerInfo(memory.address()))).isFalse();
    fake.pretend(0, 0, false);
  }

  @Test
  void copiesPastTheEndAreRefused() {
    DeviceMemory memory = context.allocate(100);
    MemorySegment host = arena.allocate(60);
    assertThatThrownBy(() -> memory.copyFrom(host, 41))
        .isInstanceOf(IndexOutOfBoundsException.class);
    assertThatThrownBy(() -> memory.copyTo(-1, host)).isInstanceOf(IndexOutOfBoundsException.class);
    assertThat(fake.calls("cuMemcpyHtoDAsync_v2")).isZero();
  }

  @Test
  void segmentsThatNoCopyCanUseAreRefused() {
    DeviceMemory memory = context.allocate(100);
    assertThatIllegalArgumentException()
        .isThrownBy(() -> memory.copyFrom(MemorySegment.ofArray(new byte[8]), 0));
    assertThatIllegalArgumentException()
        .isThrownBy(() -> memory.copyTo(0, arena.allocate(8).asReadOnly()));
    MemorySegment closed;
    try (Arena other = Arena.ofConfined()) {
      closed = other.allocate(8);
    }
    assertThatIllegalStateException().isThrownBy(() -> memory.copyFrom(closed, 0));
    memory.close();
  }

  @Test
  void alignedMemoryIsAlignedAndFreedWhole() {
    DeviceMemory memory = context.allocate(100, 4096);
    assertThat(memory.address() % 4096).isZero();
    assertThat(memory.size()).isEqualTo(100);
    assertThat(fake.last("cuMemAlloc_v2")).as("the driver's is not").isEqualTo("4195");
    memory.copyFrom(random(100), 0);
    DeviceMemory other = context.allocate(100, 256);
    assertThat(other.address() % 256).isZero();
    assertThat(fake.last("cuMemAlloc_v2")).as("the driver's is").isEqualTo("100");
  }

  @Test
  void whatIsTakenIsCounted() {
    assertThat(context.memoryInUse()).isEqualTo(new ContextMemory(0, 0));
    DeviceMemory memory = context.allocate(1000);
    PinnedMemory pinned = context.allocatePinned(300);
    RegisteredMemory registered = context.register(arena.allocate(8192));
    try (DeviceMemory others = context.foreignMemory(memory.address(), 500)) {
      assertThat(context.memoryInUse()).isEqualTo(new ContextMemory(1000, 8492));
      assertThat(others.size()).isEqualTo(500);
    }
    memory.close();
    registered.close();
    assertThat(context.memoryInUse()).isEqualTo(new ContextMemory(0, 300));
    pinned.close();
    assertThat(context.memoryInUse()).isEqualTo(new ContextMemory(0, 0));
  }

  @Test
  void pinnedMemoryIsMappedForBothSides() {
    PinnedMemory pinned = context.allocatePinned(100);
    assertThat(fake.last("cuMemHostAlloc")).as("PORTABLE and DEVICEMAP").isEqualTo("100 3");
    assertThat(pinned.size()).isEqualTo(100);
    assertThat(pinned.segment().byteSize()).isEqualTo(100);
    assertThat(pinned.deviceAddress()).isEqualTo(pinned.segment().address() + (1L << 48));
    pinned.segment().set(JAVA_LONG, 8, 5);
    MemorySegment segment = pinned.segment();
    pinned.close();
    assertThatIllegalStateException().isThrownBy(() -> segment.get(JAVA_LONG, 8));
  }

  @Test
  void registrationPassesItsFlags() {
    MemorySegment memory = arena.allocate(8192);
    RegisteredMemory registered =
        context.register(
            memory, RegisterFlag.PORTABLE, RegisterFlag.DEVICEMAP, RegisterFlag.IOMEMORY);
    assertThat(fake.last("cuMemHostRegister_v2"))
        .isEqualTo("0x" + Long.toHexString(memory.address()) + " 8192 7");
    assertThat(registered.segment()).isEqualTo(memory);
    assertThat(registered.deviceAddress()).isEqualTo(memory.address() + (1L << 48));
    registered.close();
    context.register(memory.asReadOnly(), RegisterFlag.READ_ONLY);
    assertThat(fake.last("cuMemHostRegister_v2")).endsWith(" 8192 8");
    context.register(memory.asSlice(4096));
    assertThat(fake.last("cuMemHostRegister_v2")).endsWith(" 4096 0");
  }

  @Test
  void wholePagesAreExported() {
    long page = Posix.pageSize();
    DeviceMemory memory = context.allocate(2 * page, page);
    int fd;
    try (DmaBuf exported = memory.exportDmaBuf()) {
      fd = exported.fd();
      assertThat(fd).isPositive();
      assertThat(exported.size()).isEqualTo(2 * page);
      String range = Long.toHexString(memory.address()) + " " + 2 * page + " 1 ";
      assertThat(fake.last("cuMemGetHandleForAddressRange")).isEqualTo(range + "0");
      exported.close();
      assertThatIllegalStateException().isThrownBy(exported::fd);
    }
    assertThatThrownBy(() -> Posix.close(fd)).hasMessageContaining("EBADF");
  }

  @Test
  void partsOfPagesAreNotExported() {
    DeviceMemory memory = context.allocate(100, Posix.pageSize());
    assertThatIllegalStateException()
        .isThrownBy(memory::exportDmaBuf)
        .withMessageContaining("not whole pages");
    assertThat(fake.calls("cuMemGetHandleForAddressRange")).isZero();
  }

  @Test
  void theDriversReasonNotToExportIsHandedOn() {
    DeviceMemory memory = context.allocate(Posix.pageSize(), Posix.pageSize());
    fake.fail("cuMemGetHandleForAddressRange", 1, CudaException.NOT_SUPPORTED);
    assertThatThrownBy(memory::exportDmaBuf)
        .isInstanceOf(CudaException.class)
        .hasMessageContaining("801");
  }

  @Test
  void flushesPassTheirScope() {
    context.flushGpuDirectWrites(WritesOrdering.OWNER);
    assertThat(fake.last("cuFlushGPUDirectRDMAWrites")).isEqualTo("0 100");
    context.flushGpuDirectWrites(WritesOrdering.ALL_DEVICES);
    assertThat(fake.last("cuFlushGPUDirectRDMAWrites")).isEqualTo("0 200");
  }

  @Test
  void orderingsBetweenTheNamedOnesAreTheWeaker() {
    assertThat(WritesOrdering.of(0)).isEqualTo(WritesOrdering.NONE);
    assertThat(WritesOrdering.of(99)).isEqualTo(WritesOrdering.NONE);
    assertThat(WritesOrdering.of(100)).isEqualTo(WritesOrdering.OWNER);
    assertThat(WritesOrdering.of(199)).isEqualTo(WritesOrdering.OWNER);
    assertThat(WritesOrdering.of(200)).isEqualTo(WritesOrdering.ALL_DEVICES);
  }
}
