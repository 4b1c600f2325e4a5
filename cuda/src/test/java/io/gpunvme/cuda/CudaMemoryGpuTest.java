package io.gpunvme.cuda;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static java.lang.foreign.ValueLayout.JAVA_LONG_UNALIGNED;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.gpunvme.base.DmaBuf;
import io.gpunvme.ffi.Mapping;
import io.gpunvme.ffi.Posix;
import io.gpunvme.ffi.PosixException;
import io.gpunvme.ffi.SharedMemory;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.SplittableRandom;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestReporter;

/** Memory of a real GPU. */
@Tag("gpu")
final class CudaMemoryGpuTest {
  private static final int MASK = 0x5A5A1234;
  private static final long MIB = 1 << 20;

  private CudaContext context;
  private final Arena arena = Arena.ofShared();

  @BeforeEach
  void open() {
    context = Gpu.device().openPrimary();
  }

  @AfterEach
  void close() {
    if (context != null) {
      context.close();
    }
    arena.close();
  }

  private static void fillRandomly(MemorySegment memory) {
    SplittableRandom random = new SplittableRandom(memory.byteSize());
    for (long i = 0; i + Long.BYTES <= memory.byteSize(); i += Long.BYTES) {
      memory.set(JAVA_LONG_UNALIGNED, i, random.nextLong());
    }
  }

  @Test
  void copiesComeBack(TestReporter reporter) {
    reporter.publishEntry("device", context.device().toString());
    reporter.publishEntry("driver", "CUDA " + Cuda.load().driverVersion());
    long size = 64 * MIB + 4;
    DeviceMemory memory = context.allocate(size);
    MemorySegment plain = arena.allocate(size);
    PinnedMemory pinned = context.allocatePinned(size);
    fillRandomly(plain);
    memory.copyFrom(plain, 0);
    memory.copyTo(0, pinned.segment());
    assertThat(pinned.segment().mismatch(plain)).isEqualTo(-1);
    memory.fill((byte) 0x77);
    memory.copyFrom(pinned.segment().asSlice(100, 1000), size - 1000);
    memory.copyTo(0, plain);
    assertThat(plain.get(JAVA_BYTE, size - 1001)).isEqualTo((byte) 0x77);
    assertThat(plain.asSlice(size - 1000).mismatch(pinned.segment().asSlice(100, 1000)))
        .isEqualTo(-1);
  }

  /** Runs {@code to[i] = from[i] ^ MASK} on the GPU. */
  private void xorCopy(long to, long from, int words) {
    try (CudaModule module = context.loadModule(TestKernels.image());
        CudaStream stream = context.stream()) {
      KernelArguments arguments =
          new KernelArguments().addLong(to).addLong(from).addInt(words).addInt(MASK);
      stream.launch(
          module.function("xor_copy"), LaunchShape.of((words + 255) / 256, 256), arguments);
      stream.synchronize();
    }
  }

  private static void assertXored(MemorySegment to, MemorySegment from, int words) {
    for (long i = 0; i < words; i++) {
      assertThat(to.getAtIndex(JAVA_INT, i)).isEqualTo(from.getAtIndex(JAVA_INT, i) ^ MASK);
    }
  }

  @Test
  void kernelsReachPinnedMemory() {
    int words = 10_000;
    PinnedMemory from = context.allocatePinned(4L * words);
    PinnedMemory to = context.allocatePinned(4L * words + 4);
    fillRandomly(from.segment());
    to.segment().fill((byte) 9);
    xorCopy(to.deviceAddress(), from.deviceAddress(), words);
    assertXored(to.segment(), from.segment(), words);
    assertThat(to.segment().getAtIndex(JAVA_INT, words)).isEqualTo(0x09090909);
  }

  @Test
  void kernelsReachRegisteredMemory() {
    int words = 3000;
    try (SharedMemory from = SharedMemory.allocate("gpunvme-test", 4L * words);
        SharedMemory to = SharedMemory.allocate("gpunvme-test", 4L * words);
        RegisteredMemory fromGpu =
            context.register(from.segment(), RegisterFlag.PORTABLE, RegisterFlag.DEVICEMAP);
        RegisteredMemory toGpu = context.register(to.segment(), RegisterFlag.DEVICEMAP)) {
      fillRandomly(from.segment());
      xorCopy(toGpu.deviceAddress(), fromGpu.deviceAddress(), words);
      assertXored(to.segment(), from.segment(), words);
      CudaException e =
          catchThrowableOfType(CudaException.class, () -> context.register(to.segment()));
      assertThat(e.code()).isEqualTo(CudaException.HOST_MEMORY_ALREADY_REGISTERED);
      toGpu.close();
      context.register(to.segment()).close();
    }
  }

  @Test
  void kernelsReadMemoryRegisteredForReading() {
    assumeTrue(
        context.device().can(CudaAttribute.READ_ONLY_HOST_REGISTER_SUPPORTED),
        "this GPU registers no read-only memory");
    int words = 1000;
    PinnedMemory to = context.allocatePinned(4L * words);
    try (SharedMemory from = SharedMemory.allocate("gpunvme-test", 4L * words);
        RegisteredMemory fromGpu =
            context.register(from.segment(), RegisterFlag.DEVICEMAP, RegisterFlag.READ_ONLY)) {
      fillRandomly(from.segment());
      xorCopy(to.deviceAddress(), fromGpu.deviceAddress(), words);
      assertXored(to.segment(), from.segment(), words);
    }
  }

  @Test
  void alignmentIsAsAskedFor() {
    for (long alignment = 256; alignment <= 2 * MIB; alignment *= 2) {
      try (DeviceMemory first = context.allocate(300, alignment);
          DeviceMemory second = context.allocate(300, alignment)) {
        assertThat(first.address() % alignment).isZero();
        assertThat(second.address() % alignment).isZero();
        first.fill((byte) 1);
        second.fill((byte) 2);
        MemorySegment back = arena.allocate(300);
        first.copyTo(0, back);
        assertThat(back.get(JAVA_BYTE, 299)).isEqualTo((byte) 1);
      }
    }
  }

  @Test
  void closedMemoryIsFree() {
    long eighth = context.device().totalMemory() / 8;
    for (int i = 0; i < 12; i++) {
      context.allocate(eighth).close();
    }
    for (int i = 0; i < 12; i++) {
      try (CudaContext other = context.device().openPrimary()) {
        other.allocate(eighth);
      }
    }
    MemoryInfo info = context.memoryInfo();
    assertThat(info.total()).isBetween(info.free(), context.device().totalMemory());
  }

  @Test
  void tooMuchMemoryIsAnErrorThatPasses() {
    long tooMuch = 2 * context.device().totalMemory();
    CudaException e = catchThrowableOfType(CudaException.class, () -> context.allocate(tooMuch));
    assertThat(e.code()).isEqualTo(CudaException.OUT_OF_MEMORY);
    assertThat(e.name()).isEqualTo("CUDA_ERROR_OUT_OF_MEMORY");
    assertThat(e.text()).isEqualTo("out of memory");
    try (DeviceMemory memory = context.allocate(8)) {
      memory.fill((byte) 0);
    }
  }

  @Test
  void dmaBufsAreExportedWhereTheGpuSaysSo(TestReporter reporter) {
    GpuDirect gpuDirect = context.device().gpuDirect();
    reporter.publishEntry("GPUDirect", gpuDirect.toString());
    DeviceMemory memory = context.allocate(2 * MIB, 64 * 1024);
    if (gpuDirect.dmaBuf()) {
      try (DmaBuf exported = memory.exportDmaBuf()) {
        assertThat(exported.fd()).isPositive();
        reporter.publishEntry(
            "dma-buf", "fd " + exported.fd() + ", size " + Posix.size(exported.fd()));
      }
    } else {
      CudaException e = catchThrowableOfType(CudaException.class, memory::exportDmaBuf);
      reporter.publishEntry("dma-buf", e.getMessage());
      assertThat(e.code()).isEqualTo(CudaException.NOT_SUPPORTED);
    }
    if (gpuDirect.hostFlush()) {
      context.flushGpuDirectWrites(WritesOrdering.OWNER);
    }
  }

  // The GPU's pages are of 64 KiB and more; what is exported has to be whole pages of the host
  // only.
  @Test
  void exportedRangesAreWholePagesOfTheHostInsideOneAllocation() {
    assumeTrue(context.device().gpuDirect().dmaBuf(), "this GPU exports no dma-bufs");
    try (DeviceMemory memory = context.allocate(8 * MIB, 64 * 1024)) {
      for (long offset : new long[] {0, 4096, 64 * 1024, 64 * 1024 + 4096, 2 * MIB}) {
        for (long bytes : new long[] {4096, 8192, 64 * 1024, 3 * 64 * 1024, 2 * MIB, 6 * MIB}) {
          long fits = Math.min(bytes, 8 * MIB - offset);
          try (DeviceMemory part = context.foreignMemory(memory.address() + offset, fits);
              DmaBuf exported = part.exportDmaBuf()) {
            assertThat(Posix.size(exported.fd())).isEqualTo(fits);
          }
        }
      }
      try (DeviceMemory beyond = context.foreignMemory(memory.address(), 8 * MIB + 4096)) {
        CudaException e = catchThrowableOfType(CudaException.class, beyond::exportDmaBuf);
        assertThat(e.name()).isEqualTo("CUDA_ERROR_INVALID_VALUE");
      }
      try (DeviceMemory odd = context.foreignMemory(memory.address() + 512, 64 * 1024)) {
        assertThatIllegalStateException()
            .isThrownBy(odd::exportDmaBuf)
            .withMessageContaining("whole pages");
      }
    }
  }

  @Test
  void exportedMemoryStaysAllocatedUntilItsDescriptorIsClosed() {
    assumeTrue(context.device().gpuDirect().dmaBuf(), "this GPU exports no dma-bufs");
    long bytes = 512 * MIB;
    DeviceMemory memory = context.allocate(bytes, 64 * 1024);
    long taken = context.memoryInfo().free();
    try (DmaBuf exported = memory.exportDmaBuf()) {
      memory.close();
      assertThat(context.memoryInfo().free()).isLessThan(taken + bytes / 2);
      assertThat(Posix.size(exported.fd())).isEqualTo(bytes);
    }
    assertThat(context.memoryInfo().free()).isGreaterThan(taken + bytes / 2);
  }

  @Test
  void aDmaBufOfTheGpuIsNotMappedByTheCpu() {
    assumeTrue(context.device().gpuDirect().dmaBuf(), "this GPU exports no dma-bufs");
    try (DeviceMemory memory = context.allocate(64 * 1024, 64 * 1024);
        DmaBuf exported = memory.exportDmaBuf()) {
      assertThatThrownBy(() -> Mapping.shared(exported.fd(), 0, 64 * 1024, Posix.PROT_READ))
          .isInstanceOf(PosixException.class);
    }
  }

  @Test
  void moduleVariablesCanBeCopied() {
    try (CudaModule module = context.loadModule(TestKernels.image());
        CudaStream stream = context.stream()) {
      GlobalVariable counter = module.global("counter");
      assertThat(counter.size()).isEqualTo(24);
      PinnedMemory host = context.allocatePinned(24);
      host.segment().set(JAVA_LONG, 16, 12345);
      stream.copyToDeviceAsync(counter.address(), host.segment());
      stream.synchronize();
      host.segment().fill((byte) 0);
      stream.copyToHostAsync(host.segment(), counter.address());
      stream.synchronize();
      assertThat(host.segment().get(JAVA_LONG, 16)).isEqualTo(12345);
    }
  }
}
