package io.gpunvme.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;

/** Ownership: nothing leaks and nothing is used after its end, in any order. */
final class CudaContextTest {
  private static final int UNKNOWN = 999;

  private final FakeDriver fake = FakeDriver.fresh();

  /** A context and one of everything that belongs to one. */
  private List<AutoCloseable> openAll(Arena arena) {
    CudaContext context = fake.openContext();
    return new ArrayList<>(
        List.of(
            context,
            context.allocate(64),
            context.allocatePinned(64),
            context.register(arena.allocate(64)),
            context.stream(),
            context.event(),
            context.loadModule(new byte[] {'p'})));
  }

  @Test
  void everythingIsFreedInEveryOrderOfClosing() throws Exception {
    try (Arena arena = Arena.ofConfined()) {
      List<List<Integer>> orders = permutations(7);
      assertThat(orders).hasSize(5040);
      for (List<Integer> order : orders) {
        List<AutoCloseable> all = openAll(arena);
        for (int index : order) {
          all.get(index).close();
        }
        fake.assertClean("closing in the order " + order);
      }
    }
  }

  private static List<List<Integer>> permutations(int count) {
    List<List<Integer>> all = List.of(List.of());
    for (int i = 0; i < count; i++) {
      List<List<Integer>> longer = new ArrayList<>();
      for (List<Integer> shorter : all) {
        for (int at = 0; at <= shorter.size(); at++) {
          List<Integer> one = new ArrayList<>(shorter);
          one.add(at, i);
          longer.add(one);
        }
      }
      all = longer;
    }
    return all;
  }

  @Test
  void theContextFreesTheNewestFirst() {
    CudaContext context = fake.openContext();
    long first = context.allocate(64).address();
    context.allocate(64);
    context.close();
    assertThat(fake.calls("cuMemFree_v2")).isEqualTo(2);
    assertThat(fake.last("cuMemFree_v2")).isEqualTo("0x" + Long.toHexString(first));
    fake.assertClean("closing the context");
  }

  @Test
  void nothingLeaksWhicheverCallFails() {
    Cuda cuda = fake.load();
    Scenario.run(cuda);
    fake.assertClean("a run without failures");
    List<String> names = fake.names();
    assertThat(names).hasSizeGreaterThan(40);
    List<Integer> counts = names.stream().map(fake::calls).toList();
    for (int i = 0; i < names.size(); i++) {
      for (int nth = 1; nth <= counts.get(i); nth++) {
        if (!names.get(i).equals("cuInit")) { // Happened already.
          failOnce(cuda, names.get(i), nth);
        }
      }
    }
  }

  private void failOnce(Cuda cuda, String name, int nth) {
    fake.reset();
    fake.fail(name, nth, UNKNOWN);
    CudaException e = catchThrowableOfType(CudaException.class, () -> Scenario.run(cuda));
    String what = "failure of call " + nth + " of " + name;
    assertThat(e).as(what).isNotNull();
    assertThat(e.code()).as(what).isEqualTo(UNKNOWN);
    assertThat(e.call()).as(what).startsWith(name.replaceFirst("_v[0-9]$", ""));
    fake.assertClean(what);
  }

  @Test
  void aFailureToFreeIsReportedAndTheRestIsFreed() {
    CudaContext context = fake.openContext();
    context.allocate(64);
    context.stream();
    context.allocate(64);
    fake.fail("cuMemFree_v2", 1, 700);
    CudaException e = catchThrowableOfType(CudaException.class, context::close);
    assertThat(e.code()).isEqualTo(700);
    assertThat(e.contextLost()).isTrue();
    fake.assertClean("a close with a failure");
    context.close();
  }

  @Test
  void aContextThatIsGoneTakesEverythingWithIt() {
    CudaContext context = fake.openContext();
    DeviceMemory memory = context.allocate(64);
    fake.fail("cuMemFree_v2", 1, CudaException.CONTEXT_IS_DESTROYED);
    assertThatCode(memory::close).doesNotThrowAnyException();
    fake.fail("cuDevicePrimaryCtxRelease_v2", 1, CudaException.DEINITIALIZED);
    assertThatCode(context::close).doesNotThrowAnyException();
  }

  @Test
  void useAfterCloseThrowsAndNeverReachesTheDriver() throws Exception {
    try (Arena arena = Arena.ofConfined();
        CudaContext context = fake.openContext();
        CudaStream live = context.stream()) {
      DeviceMemory memory = context.allocate(64);
      PinnedMemory pinned = context.allocatePinned(64);
      RegisteredMemory registered = context.register(arena.allocate(64));
      CudaStream stream = context.stream();
      CudaEvent event = context.timingEvent();
      CudaModule module = context.loadModule(new byte[] {'p'});
      CudaFunction kernel = module.function("kernel");
      for (AutoCloseable each : List.of(memory, pinned, registered, stream, event, module)) {
        each.close();
        each.close();
      }
      List<Runnable> uses = new ArrayList<>();
      Collections.addAll(
          uses,
          memory::address,
          () -> memory.fill((byte) 0),
          () -> memory.copyFrom(arena.allocate(8), 0),
          () -> memory.copyTo(0, arena.allocate(8)),
          pinned::deviceAddress,
          () -> pinned.segment().fill((byte) 0),
          () -> live.copyToDeviceAsync(0x1000, pinned.segment()),
          registered::deviceAddress,
          stream::isIdle,
          stream::handle,
          stream::synchronize,
          () -> stream.fillAsync(0x1000, (byte) 0, 1),
          () -> live.record(event),
          () -> live.await(event),
          () -> stream.awaitValue(0x1000, 1),
          event::isDone,
          event::synchronize,
          () -> event.millisecondsSince(event),
          () -> module.function("other"),
          () -> module.global("other"),
          () -> kernel.attribute(FunctionAttribute.NUM_REGS),
          () -> kernel.maxActiveBlocks(1, 0),
          () -> live.launch(kernel, LaunchShape.of(1, 1), new KernelArguments()));
      for (int i = 0; i < uses.size(); i++) {
        assertThatIllegalStateException().as("use %d", i).isThrownBy(uses.get(i)::run);
      }
      assertThat(memory.size()).isEqualTo(64);
    }
    fake.assertClean("uses after close");
  }

  @Test
  void aClosedContextMakesNothing() {
    CudaContext context = fake.openContext();
    DeviceMemory memory = context.allocate(4096, 4096);
    context.close();
    List<Consumer<CudaContext>> uses =
        List.of(
            c -> c.allocate(1),
            c -> c.allocatePinned(1),
            CudaContext::stream,
            CudaContext::event,
            CudaContext::timingEvent,
            c -> c.loadModule(new byte[1]),
            CudaContext::synchronize,
            CudaContext::makeCurrent,
            CudaContext::memoryInfo);
    for (Consumer<CudaContext> use : uses) {
      assertThatIllegalStateException()
          .isThrownBy(() -> use.accept(context))
          .withMessage("the context of CUDA device 0 is closed");
    }
    assertThatIllegalStateException()
        .isThrownBy(memory::exportDmaBuf)
        .withMessageContaining("4096 bytes of GPU memory at 0x")
        .withMessageEndingWith("is closed");
    fake.assertClean("uses of a closed context");
  }

  @Test
  void whatAnotherThreadUsesIsNotClosed() throws InterruptedException {
    CudaContext context = fake.openContext();
    CudaStream stream = context.stream();
    DeviceMemory memory = context.allocate(64);
    fake.block("cuStreamSynchronize");
    Thread user = Thread.ofPlatform().start(stream::synchronize);
    fake.awaitWaiting(1);
    assertThatIllegalStateException()
        .isThrownBy(stream::close)
        .withMessageContaining("in use by another thread");
    assertThatIllegalStateException().isThrownBy(context::close);
    assertThatIllegalStateException().as("freed by that close").isThrownBy(memory::address);
    fake.unblock();
    user.join();
    assertThat(stream.isIdle()).isTrue();
    context.allocate(64);
    context.close();
    fake.assertClean("closing while in use");
  }

  @Test
  void theContextWaitsForNobodyInsideIt() throws InterruptedException {
    CudaContext context = fake.openContext();
    fake.block("cuCtxSynchronize");
    Thread user = Thread.ofPlatform().start(context::synchronize);
    fake.awaitWaiting(1);
    assertThatIllegalStateException().isThrownBy(context::close);
    assertThat(context.memoryInfo()).isEqualTo(new MemoryInfo(1000, 2000));
    fake.unblock();
    user.join();
    context.close();
    fake.assertClean("closing while in use");
  }

  @Test
  void pinnedMemoryThatACopyReadsIsNotFreed() throws InterruptedException {
    CudaContext context = fake.openContext();
    CudaStream stream = context.stream();
    PinnedMemory pinned = context.allocatePinned(64);
    DeviceMemory memory = context.allocate(64);
    fake.block("cuMemcpyHtoDAsync_v2");
    Thread user =
        Thread.ofPlatform()
            .start(() -> stream.copyToDeviceAsync(memory.address(), pinned.segment()));
    fake.awaitWaiting(1);
    assertThatIllegalStateException().isThrownBy(pinned::close);
    assertThat(pinned.deviceAddress()).isNotZero();
    fake.unblock();
    user.join();
    pinned.close();
    context.close();
    fake.assertClean("closing while in use");
  }

  @Test
  void threadsGetTheContextByThemselves() throws InterruptedException {
    try (CudaContext context = fake.openContext();
        CudaStream stream = context.stream()) {
      List<Boolean> idle = Collections.synchronizedList(new ArrayList<>());
      Thread other = Thread.ofPlatform().start(() -> idle.add(stream.isIdle()));
      other.join();
      assertThat(idle).containsExactly(true);
    }
    fake.assertClean("use by another thread");
  }

  @Test
  void twoHoldsOnOneContextOwnDifferentThings() {
    Cuda cuda = fake.load();
    CudaContext first = cuda.device(0).openPrimary();
    CudaContext second = cuda.device(0).openPrimary();
    DeviceMemory memory = second.allocate(64);
    first.close();
    memory.fill((byte) 3);
    second.close();
    fake.assertClean("two holds");
  }
}
