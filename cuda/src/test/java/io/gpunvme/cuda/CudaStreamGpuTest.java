package io.gpunvme.cuda;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.catchThrowableOfType;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Streams, events and kernels on a real GPU. */
@Tag("gpu")
final class CudaStreamGpuTest {
  /** How long a kernel waits for the host at most: a failing test ends too. */
  private static final long KERNEL_LIMIT_NS = 20_000_000_000L;

  private static final int SEEN = 1;

  private CudaContext context;

  @BeforeEach
  void open() {
    context = Gpu.device().openPrimary();
  }

  @AfterEach
  void close() {
    if (context != null) {
      context.close();
    }
  }

  /** A kernel that runs until {@code flag} is set. */
  private void startWaiting(CudaStream stream, CudaModule module, PinnedMemory flag) {
    flag.segment().fill((byte) 0);
    stream.launch(
        module.function("wait_flag"),
        LaunchShape.of(1, 1),
        new KernelArguments().addLong(flag.deviceAddress()).addLong(KERNEL_LIMIT_NS));
  }

  @Test
  void everythingElseWorksBesideARunningKernel() {
    CudaModule module = context.loadModule(TestKernels.image());
    CudaStream busy = context.stream();
    CudaStream other = context.stream();
    CudaEvent end = context.event();
    PinnedMemory flag = context.allocatePinned(8);
    PinnedMemory host = context.allocatePinned(4096);
    DeviceMemory memory = context.allocate(8192);
    // Code must be there before a kernel runs that does not end by itself: loading may wait for it.
    CudaFunction kernel = module.function("xor_copy");
    startWaiting(busy, module, flag);
    busy.record(end);
    assertThat(busy.isIdle()).isFalse();
    assertThat(end.isDone()).isFalse();

    host.segment().fill((byte) 3);
    memory.copyFrom(host.segment(), 0);
    host.segment().fill((byte) 0);
    other.copyToHostAsync(host.segment(), memory.address());
    other.synchronize();
    assertThat(host.segment().get(JAVA_BYTE, 4095)).isEqualTo((byte) 3);
    if (context.hasBatchCopies()) {
      CopyBatch batch = new CopyBatch(1);
      batch.add(memory.address() + 4096, memory.address(), 4096);
      other.copyBatchAsync(batch);
      other.synchronize();
    }
    other.launch(
        kernel,
        LaunchShape.of(4, 256),
        new KernelArguments()
            .addLong(memory.address())
            .addLong(memory.address())
            .addInt(1024)
            .addInt(-1));
    other.synchronize();
    memory.copyTo(0, host.segment());
    assertThat(host.segment().get(JAVA_INT, 0)).isEqualTo(0xFCFCFCFC);

    assertThat(busy.isIdle()).isFalse();
    flag.segment().set(JAVA_INT, 0, 1);
    end.synchronize();
    assertThat(flag.segment().get(JAVA_INT, 4)).as("ended by the flag").isEqualTo(SEEN);
    assertThat(end.isDone()).isTrue();
    busy.synchronize();
    assertThat(busy.isIdle()).isTrue();
  }

  @Test
  void streamsWaitForEvents() {
    CudaModule module = context.loadModule(TestKernels.image());
    CudaStream first = context.stream();
    CudaStream second = context.stream();
    CudaEvent event = context.event();
    PinnedMemory flag = context.allocatePinned(8);
    PinnedMemory host = context.allocatePinned(4);
    host.segment().set(JAVA_INT, 0, 0);
    DeviceMemory memory = context.allocate(4);
    memory.fill((byte) 1);
    startWaiting(first, module, flag);
    first.record(event);
    second.await(event);
    second.copyToHostAsync(host.segment(), memory.address());
    assertThat(second.isIdle()).isFalse();
    assertThat(host.segment().get(JAVA_INT, 0)).isZero();
    flag.segment().set(JAVA_INT, 0, 1);
    second.synchronize();
    assertThat(host.segment().get(JAVA_INT, 0)).isEqualTo(0x01010101);
  }

  @Test
  void eventsMeasureTime() {
    CudaStream stream = context.stream();
    CudaEvent start = context.timingEvent();
    CudaEvent end = context.timingEvent();
    DeviceMemory memory = context.allocate(256 << 20);
    stream.record(start);
    stream.fillAsync(memory.address(), (byte) 1, memory.size());
    stream.record(end);
    end.synchronize();
    assertThat(end.millisecondsSince(start)).isPositive();
    CudaEvent other = context.event();
    stream.record(other);
    other.synchronize();
    assertThat(
            catchThrowableOfType(CudaException.class, () -> other.millisecondsSince(start)).code())
        .isEqualTo(400); // CUDA_ERROR_INVALID_HANDLE: it measures no time.
  }

  @Test
  void batchesCopyInBothDirections() {
    assumeTrue(context.hasBatchCopies(), "the driver is older than CUDA 12.8");
    int count = 1000;
    int bytes = 4096;
    CudaStream stream = context.stream();
    PinnedMemory host = context.allocatePinned((long) count * bytes);
    DeviceMemory memory = context.allocate((long) count * bytes);
    MemorySegment segment = host.segment();
    for (long i = 0; i < segment.byteSize(); i += 8) {
      segment.set(JAVA_LONG, i, i * 0x9E3779B97F4A7C15L);
    }
    CopyBatch batch = new CopyBatch(count);
    for (long i = 0; i < count; i++) { // In reverse, so that each copy counts.
      batch.add(
          memory.address() + (count - 1 - i) * bytes, host.deviceAddress() + i * bytes, bytes);
    }
    stream.copyBatchAsync(batch);
    stream.synchronize();
    segment.fill((byte) 0);
    batch.clear();
    for (long i = 0; i < count; i++) {
      batch.add(segment.address() + i * bytes, memory.address() + (count - 1 - i) * bytes, bytes);
    }
    stream.copyBatchAsync(batch);
    stream.synchronize();
    for (long i = 0; i < segment.byteSize(); i += 8) {
      assertThat(segment.get(JAVA_LONG, i)).isEqualTo(i * 0x9E3779B97F4A7C15L);
    }
  }

  @Test
  void deviceCodeThatIsWrongSaysWhere() {
    byte[] wrong = TestKernels.text().replace("xor.b32", "xor.b31").getBytes(US_ASCII);
    CudaModuleException e =
        catchThrowableOfType(CudaModuleException.class, () -> context.loadModule(wrong));
    assertThat(e.log()).contains("line", "xor");
    CudaModule module = context.loadModule(TestKernels.image());
    assertThat(catchThrowableOfType(CudaException.class, () -> module.function("none")).code())
        .isEqualTo(CudaException.NOT_FOUND);
    assertThat(catchThrowableOfType(CudaException.class, () -> module.global("none")).code())
        .isEqualTo(CudaException.NOT_FOUND);
  }

  @Test
  void kernelsKnowWhatTheyNeed() {
    CudaFunction kernel = context.loadModule(TestKernels.image()).function("xor_copy");
    assertThat(kernel.attribute(FunctionAttribute.NUM_REGS)).isBetween(4, 64);
    assertThat(kernel.attribute(FunctionAttribute.LOCAL_SIZE_BYTES)).isZero();
    assertThat(kernel.attribute(FunctionAttribute.MAX_THREADS_PER_BLOCK)).isEqualTo(1024);
    assertThat(kernel.attribute(FunctionAttribute.PTX_VERSION)).isEqualTo(75);
    ComputeCapability capability = context.device().computeCapability();
    assertThat(kernel.attribute(FunctionAttribute.BINARY_VERSION) / 10)
        .isEqualTo(capability.major());
    int resident = context.device().attribute(CudaAttribute.MAX_THREADS_PER_MULTIPROCESSOR);
    assertThat(kernel.maxActiveBlocks(256, 0)).isBetween(1, resident / 256);
    int shared = context.device().attribute(CudaAttribute.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
    kernel.allowDynamicShared(shared);
    assertThat(kernel.attribute(FunctionAttribute.MAX_DYNAMIC_SHARED_SIZE_BYTES)).isEqualTo(shared);
    assertThat(kernel.maxActiveBlocks(256, shared)).isEqualTo(1);
  }

  @Test
  void launchesThatCannotBeAreErrorsThatPass() {
    CudaFunction kernel = context.loadModule(TestKernels.image()).function("xor_copy");
    CudaStream stream = context.stream();
    DeviceMemory memory = context.allocate(4);
    memory.fill((byte) 0);
    KernelArguments good =
        new KernelArguments()
            .addLong(memory.address())
            .addLong(memory.address())
            .addInt(1)
            .addInt(7);
    assertThatIllegalArgumentException()
        .isThrownBy(
            () -> stream.launch(kernel, LaunchShape.of(1, 1), new KernelArguments().addLong(1)))
        .withMessageContaining("[8, 8, 4, 4]");
    CudaException e =
        catchThrowableOfType(
            CudaException.class,
            () -> stream.launch(kernel, LaunchShape.of(1, 1).withShared(1 << 24), good));
    assertThat(e.contextLost()).isFalse();
    e =
        catchThrowableOfType(
            CudaException.class,
            () -> stream.launchCooperative(kernel, LaunchShape.of(1 << 20, 1024), good));
    assertThat(e.name()).isEqualTo("CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE");
    stream.launchCooperative(kernel, LaunchShape.of(1, 32), good);
    stream.synchronize();
    PinnedMemory host = context.allocatePinned(4);
    memory.copyTo(0, host.segment());
    assertThat(host.segment().get(JAVA_INT, 0)).isEqualTo(7);
  }

  @Test
  void threadsShareAContext() throws InterruptedException {
    DeviceMemory memory = context.allocate(64 * 1024);
    List<Throwable> failures = Collections.synchronizedList(new ArrayList<>());
    List<Thread> threads = new ArrayList<>();
    for (int t = 0; t < 8; t++) {
      long offset = t * 8192L;
      byte value = (byte) (t + 1);
      threads.add(
          Thread.ofPlatform()
              .uncaughtExceptionHandler((thread, e) -> failures.add(e))
              .start(() -> fillAndCheck(memory, offset, value)));
    }
    for (Thread thread : threads) {
      thread.join();
    }
    assertThat(failures).isEmpty();
  }

  private void fillAndCheck(DeviceMemory memory, long offset, byte value) {
    try (CudaStream stream = context.stream();
        PinnedMemory host = context.allocatePinned(8192)) {
      for (int i = 0; i < 200; i++) {
        byte expected = (byte) (value + i);
        host.segment().fill(expected);
        stream.copyToDeviceAsync(memory.address() + offset, host.segment());
        stream.synchronize();
        host.segment().fill((byte) 0);
        memory.copyTo(offset, host.segment());
        assertThat(host.segment().get(JAVA_BYTE, 0)).isEqualTo(expected);
        assertThat(host.segment().get(JAVA_BYTE, 8191)).isEqualTo(expected);
      }
    }
  }
}
