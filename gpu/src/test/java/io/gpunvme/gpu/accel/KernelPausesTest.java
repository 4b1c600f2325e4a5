package io.gpunvme.gpu.accel;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(300)
class KernelPausesTest {
  private static final long LITTLE = 4096;
  private static final long MUCH = 1L << 30;

  /** Kernels whose owners say when they are over. */
  private static final BooleanSupplier NEVER = () -> false;

  private final KernelPauses pauses = new KernelPauses();
  private final List<String> freed = Collections.synchronizedList(new ArrayList<>());

  @Test
  void withoutKernelsItIsFreedAtOnce() {
    pauses.free(LITTLE, () -> freed.add("a"));
    assertThat(freed).containsExactly("a");
    pauses.begin(NEVER).close();
    pauses.free(MUCH, () -> freed.add("b"));
    assertThat(freed).containsExactly("a", "b");
  }

  @Test
  void littleIsFreedWhenTheLastKernelIsOver() {
    KernelRun first = pauses.begin(NEVER);
    KernelRun second = pauses.begin(NEVER);
    pauses.free(LITTLE, () -> freed.add("a"));
    pauses.free(LITTLE, () -> freed.add("b"));
    first.close();
    first.close();
    assertThat(freed).isEmpty();
    second.close();
    assertThat(freed).containsExactly("a", "b");
  }

  @Test
  void muchWaitsForTheKernelsAndKeepsOthersFromStarting() throws Exception {
    KernelRun run = pauses.begin(NEVER);
    try (ExecutorService threads = Executors.newCachedThreadPool()) {
      Future<?> free = threads.submit(() -> pauses.free(MUCH, () -> freed.add("freed")));
      while (!waits("KernelPauses.awaitKernels")) {
        Thread.onSpinWait();
      }
      Future<?> next = startAnother(threads);
      assertThat(freed).isEmpty();
      run.close();
      free.get();
      next.get();
    }
    assertThat(freed).containsExactly("freed", "started");
  }

  /** A kernel that has to wait; returns when it does. */
  private Future<?> startAnother(ExecutorService threads) {
    Future<?> next =
        threads.submit(
            () -> {
              try (KernelRun _ = pauses.begin(NEVER)) {
                freed.add("started");
              }
            });
    while (!waits("KernelPauses.begin")) {
      Thread.onSpinWait();
    }
    return next;
  }

  private static boolean waits(String method) {
    return Thread.getAllStackTraces().entrySet().stream()
        .filter(e -> e.getKey().getState() == Thread.State.TIMED_WAITING)
        .flatMap(e -> java.util.Arrays.stream(e.getValue()))
        .anyMatch(f -> (f.getClassName() + "." + f.getMethodName()).endsWith(method));
  }

  @Test
  void whatMustBeFreedNowWaits() throws Exception {
    KernelRun run = pauses.begin(NEVER);
    try (ExecutorService threads = Executors.newCachedThreadPool()) {
      Future<?> free = threads.submit(() -> pauses.now(() -> freed.add("now")));
      while (!waits("KernelPauses.awaitKernels")) {
        Thread.onSpinWait();
      }
      run.close();
      free.get();
    }
    assertThat(freed).containsExactly("now");
    pauses.now(() -> freed.add("again"));
    assertThat(freed).containsExactly("now", "again");
  }

  @Test
  void oneThatFailsHoldsUpNothing() {
    KernelRun run = pauses.begin(NEVER);
    pauses.free(LITTLE, KernelPausesTest::fail);
    pauses.free(LITTLE, () -> freed.add("a"));
    run.close();
    assertThat(freed).containsExactly("a");
    assertThatThrownBy(() -> pauses.free(LITTLE, KernelPausesTest::fail)).hasMessage("not freed");
    pauses.begin(NEVER).close();
    pauses.now(() -> freed.add("b"));
    assertThat(freed).containsExactly("a", "b");
  }

  private static void fail() {
    throw new IllegalStateException("not freed");
  }

  /** What is being freed waits for it, and it for whoever looks after it. */
  @Test
  void aKernelThatRunsAlreadyWaitsForNothing() throws Exception {
    CountDownLatch joined = new CountDownLatch(1);
    CountDownLatch inside = new CountDownLatch(1);
    try (ExecutorService threads = Executors.newCachedThreadPool()) {
      Runnable slow =
          () -> {
            inside.countDown();
            awaitQuietly(joined);
            freed.add("a");
          };
      Future<?> free = threads.submit(() -> pauses.free(LITTLE, slow));
      inside.await();
      KernelRun run = pauses.join();
      joined.countDown();
      free.get();
      pauses.free(LITTLE, () -> freed.add("b"));
      assertThat(freed).containsExactly("a");
      run.close();
    }
    assertThat(freed).containsExactly("a", "b");
  }

  /** An embedded controller's thread must not wait for kernels: they wait for it. */
  @Test
  void laterNeverWaits() throws Exception {
    KernelRun run = pauses.begin(NEVER);
    try (ExecutorService threads = Executors.newCachedThreadPool()) {
      Future<?> free = threads.submit(() -> pauses.free(MUCH, () -> freed.add("much")));
      while (!waits("KernelPauses.awaitKernels")) {
        Thread.onSpinWait();
      }
      pauses.later(LITTLE, () -> freed.add("later"));
      pauses.later(MUCH, () -> freed.add("more"));
      assertThat(freed).isEmpty();
      run.close();
      free.get();
    }
    assertThat(freed).containsExactly("much", "later", "more");
    pauses.later(LITTLE, () -> freed.add("at once"));
    assertThat(freed).endsWith("at once");
  }

  /** Between the end of another free and this one. */
  @Test
  void noKernelStartsBeforeWhatMustBeFreedNow() throws Exception {
    AtomicInteger running = new AtomicInteger();
    AtomicInteger wrong = new AtomicInteger();
    try (ExecutorService threads = Executors.newCachedThreadPool()) {
      for (int i = 0; i < 300; i++) {
        CountDownLatch go = new CountDownLatch(1);
        CountDownLatch inside = new CountDownLatch(1);
        List<Future<?>> all = new ArrayList<>();
        all.add(
            threads.submit(
                () ->
                    pauses.free(
                        LITTLE,
                        () -> {
                          inside.countDown();
                          awaitQuietly(go);
                        })));
        inside.await();
        all.add(
            threads.submit(
                () -> {
                  try (KernelRun _ = pauses.begin(NEVER)) {
                    running.incrementAndGet();
                    Thread.sleep(1);
                    running.decrementAndGet();
                  }
                  return null;
                }));
        while (!waits("KernelPauses.begin")) {
          Thread.onSpinWait();
        }
        all.add(threads.submit(() -> pauses.now(() -> wrong.addAndGet(running.get()))));
        while (!waits("KernelPauses.now")) {
          Thread.onSpinWait();
        }
        go.countDown();
        for (Future<?> one : all) {
          one.get();
        }
      }
    }
    assertThat(wrong).hasValue(0);
  }

  private static void awaitQuietly(CountDownLatch latch) {
    try {
      latch.await();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  /** No free overlaps a kernel or another free, and none is lost. */
  @Test
  void nothingIsFreedWhileAKernelRuns() throws Exception {
    long seed = Long.getLong("gpunvme.seed", System.nanoTime());
    System.out.println("KernelPausesTest seed " + seed);
    AtomicInteger kernels = new AtomicInteger();
    AtomicInteger atWork = new AtomicInteger();
    AtomicInteger wrong = new AtomicInteger();
    AtomicInteger done = new AtomicInteger();
    Runnable free =
        () -> {
          if (kernels.get() != 0 || atWork.incrementAndGet() != 1) {
            wrong.incrementAndGet();
          }
          Thread.onSpinWait();
          atWork.decrementAndGet();
          done.incrementAndGet();
        };
    int each = 3000;
    try (ExecutorService threads = Executors.newFixedThreadPool(6)) {
      List<Future<?>> all = new ArrayList<>();
      for (int t = 0; t < 6; t++) {
        SplittableRandom random = new SplittableRandom(seed + t);
        boolean launches = t < 3;
        all.add(
            threads.submit(
                () -> {
                  for (int i = 0; i < each; i++) {
                    if (launches) {
                      try (KernelRun _ = pauses.begin(NEVER)) {
                        kernels.incrementAndGet();
                        Thread.onSpinWait();
                        kernels.decrementAndGet();
                      }
                    } else if (random.nextInt(50) == 0) {
                      pauses.now(free);
                    } else {
                      pauses.free(random.nextInt(20) == 0 ? MUCH : LITTLE, free);
                    }
                  }
                }));
      }
      for (Future<?> one : all) {
        one.get();
      }
    }
    assertThat(wrong).hasValue(0);
    assertThat(done).hasValue(3 * each);
  }

  @Test
  void memoryIsTakenInAPause() throws Exception {
    assertThat(pauses.take(() -> 1)).isEqualTo(1);
    KernelRun run = pauses.begin(NEVER);
    pauses.free(LITTLE, () -> freed.add("freed"));
    try (ExecutorService threads = Executors.newCachedThreadPool()) {
      Future<Integer> taken =
          threads.submit(
              () ->
                  pauses.take(
                      () -> {
                        freed.add("taken");
                        return 2;
                      }));
      while (!waits("KernelPauses.awaitKernels")) {
        Thread.onSpinWait();
      }
      Future<?> next = startAnother(threads);
      assertThat(freed).isEmpty();
      run.close();
      assertThat(taken.get()).isEqualTo(2);
      next.get();
    }
    assertThat(freed).containsExactlyInAnyOrder("taken", "freed", "started").endsWith("started");
    assertThatThrownBy(
            () ->
                pauses.take(
                    () -> {
                      throw new IllegalStateException("no memory");
                    }))
        .hasMessage("no memory");
    pauses.begin(NEVER).close();
  }

  @Test
  void besideAKernelNothingIsTriedForLong() {
    KernelRun run = pauses.begin(NEVER);
    assertThat(pauses.tryTake(1_000_000, () -> freed.add("taken"))).isFalse();
    assertThat(freed).isEmpty();
    run.close();
    assertThat(pauses.tryTake(1_000_000, () -> freed.add("taken"))).isTrue();
    assertThat(freed).containsExactly("taken");
    pauses.begin(NEVER).close();
  }

  /** Somebody else's memory that cannot be freed is not the business of who takes some. */
  @Test
  void whoTakesMemoryHearsNothingOfTheFreesOfOthers() {
    KernelRun run = pauses.begin(NEVER);
    pauses.free(
        LITTLE,
        () -> {
          throw new AssertionError("not freed");
        });
    pauses.free(LITTLE, () -> freed.add("after it"));
    run.close();
    assertThat(freed).containsExactly("after it");
    assertThat(pauses.take(() -> 3)).isEqualTo(3);
    pauses.begin(NEVER).close();
  }

  /** As when a kernel's owner asks a program whether to go on, and the program takes memory. */
  @Test
  void whoWaitsForAKernelOfItsOwnAsksWhetherItIsOver() {
    AtomicInteger questions = new AtomicInteger();
    KernelRun run = pauses.begin(() -> questions.incrementAndGet() == 3);
    long begin = System.nanoTime();
    assertThat(pauses.take(() -> "memory")).isEqualTo("memory");
    assertThat(System.nanoTime() - begin).isLessThan(TimeUnit.SECONDS.toNanos(5));
    assertThat(questions.get()).isEqualTo(3);
    run.close();
    // Counted once: the next kernel is still waited for.
    KernelRun next = pauses.begin(NEVER);
    pauses.free(LITTLE, () -> freed.add("a"));
    run.close();
    assertThat(freed).isEmpty();
    next.close();
    assertThat(freed).containsExactly("a");
  }

  @Test
  void aKernelThatFailedIsOver() {
    KernelRun run =
        pauses.begin(
            () -> {
              throw new IllegalStateException("illegal address");
            });
    pauses.now(() -> freed.add("a"));
    assertThat(freed).containsExactly("a");
    run.close();
  }

  @Test
  void kernelsOfOthersAreNotAsked() throws Exception {
    AtomicInteger questions = new AtomicInteger();
    KernelRun run = pauses.begin(() -> questions.incrementAndGet() > 0);
    try (ExecutorService threads = Executors.newCachedThreadPool()) {
      Future<?> taken = threads.submit(() -> pauses.now(() -> freed.add("a")));
      while (!waits("KernelPauses.awaitKernels")) {
        Thread.onSpinWait();
      }
      assertThat(questions.get()).isZero();
      run.close();
      taken.get();
    }
  }
}
