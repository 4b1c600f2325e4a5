package io.gpunvme.storage.path.pinned;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.ffi.NumaCalls;
import io.gpunvme.testing.FakeMachine;
import java.nio.file.Path;
import java.util.BitSet;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Nobody is at work in a transfer's memory when it has ended, and no part of it is left undone. */
@Timeout(60)
class CopyWorkersTest {
  private static final int TASKS = 5;

  private final AtomicInteger done = new AtomicInteger();
  private final AtomicInteger atWork = new AtomicInteger();

  private void task() {
    atWork.incrementAndGet();
    long end = System.nanoTime() + 30_000_000;
    while (System.nanoTime() < end) {
      Thread.onSpinWait();
    }
    done.incrementAndGet();
    atWork.decrementAndGet();
  }

  /** The system gives so many threads, and no more. */
  private static ThreadFactory giving(int threads) {
    AtomicInteger left = new AtomicInteger(threads);
    return work -> {
      if (left.getAndDecrement() <= 0) {
        throw new OutOfMemoryError("unable to create native thread");
      }
      return Thread.ofPlatform().daemon().unstarted(work);
    };
  }

  @Test
  void tasksWithoutAThreadAreTheCallers() {
    for (int threads = 0; threads < TASKS; threads++) {
      done.set(0);
      try (CopyWorkers workers = new CopyWorkers(TASKS, giving(threads))) {
        workers.run(Collections.nCopies(TASKS, this::task));
        assertThat(done.get()).as("%d threads", threads).isEqualTo(TASKS);
        assertThat(atWork.get()).as("%d threads", threads).isZero();
      }
    }
  }

  @Test
  void threadsAreOnTheNodeAndTheCallerIsNot(@TempDir Path folder) {
    BitSet all = NumaCalls.affinity();
    int last = all.length() - 1;
    Set<BitSet> seen = ConcurrentHashMap.newKeySet();
    CountDownLatch others = new CountDownLatch(2);
    Runnable other =
        () -> {
          seen.add(NumaCalls.affinity());
          others.countDown();
        };
    try (CopyWorkers workers = new CopyWorkers(2, new FakeMachine(folder).home(last))) {
      workers.run(
          List.of(
              () -> {
                assertThat(NumaCalls.affinity()).isEqualTo(all);
                await(others);
              },
              other,
              other));
    }
    assertThat(seen).containsExactly(only(last));
    assertThat(NumaCalls.affinity()).isEqualTo(all);
  }

  private static BitSet only(int processor) {
    BitSet set = new BitSet();
    set.set(processor);
    return set;
  }

  private static void await(CountDownLatch latch) {
    try {
      latch.await();
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  @Test
  void anErrorOfOneIsThrownWhenAllHaveEnded() {
    Error error = new LinkageError("one");
    try (CopyWorkers workers = new CopyWorkers(TASKS, giving(TASKS))) {
      Runnable fails =
          () -> {
            throw error;
          };
      assertThatThrownBy(() -> workers.run(List.of(fails, this::task, this::task))).isSameAs(error);
      assertThat(done.get()).isEqualTo(2);
    }
  }
}
