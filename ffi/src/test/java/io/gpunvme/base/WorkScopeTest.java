package io.gpunvme.base;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

@Timeout(60)
class WorkScopeTest {
  private static final int PARTS = 6;
  private static final Runnable NOTHING = () -> {};

  private final ExecutorService pool = Executors.newCachedThreadPool();
  private final AtomicInteger done = new AtomicInteger();
  private final AtomicInteger atWork = new AtomicInteger();

  @AfterEach
  void close() {
    pool.close();
  }

  /** Takes a while, so that whoever does not wait is found out. */
  private void part() {
    atWork.incrementAndGet();
    pause(20);
    done.incrementAndGet();
    atWork.decrementAndGet();
  }

  private static void pause(long millis) {
    long end = System.nanoTime() + millis * 1_000_000;
    while (System.nanoTime() < end) {
      Thread.onSpinWait();
    }
  }

  /** Gives no thread for the n-th part. */
  private Executor failing(int n, Throwable how) {
    AtomicInteger number = new AtomicInteger();
    return work -> {
      if (number.getAndIncrement() == n) {
        switch (how) {
          case RuntimeException e -> throw e;
          case Error e -> throw e;
          default -> throw new AssertionError(how);
        }
      }
      pool.execute(work);
    };
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 1, 2, 3, 4, PARTS})
  void allPartsAreDoneWhicheverThreadCannotBeHad(int n) {
    for (Throwable how :
        List.of(new OutOfMemoryError("thread"), new RejectedExecutionException())) {
      done.set(0);
      List<Throwable> failed =
          WorkScope.all(failing(n, how), Collections.nCopies(PARTS, this::part), NOTHING);
      assertThat(failed).isEmpty();
      assertThat(done.get()).isEqualTo(PARTS);
      assertThat(atWork.get()).isZero();
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 1, 2, 3, 4, 5})
  void nobodyIsLeftAtWorkWhicheverPartFails(int n) {
    for (Throwable how :
        List.of(new StackOverflowError("part"), new IllegalStateException("part"))) {
      List<Runnable> parts =
          IntStream.range(0, PARTS)
              .<Runnable>mapToObj(i -> i == n ? fail(how) : this::part)
              .toList();
      List<Throwable> failed = WorkScope.all(pool, parts, NOTHING);
      assertThat(failed).containsExactly(how);
      assertThat(atWork.get()).isZero();
      assertThatThrownBy(() -> WorkScope.rethrow(failed)).isSameAs(how);
    }
  }

  private static Runnable fail(Throwable how) {
    return () -> WorkScope.rethrow(List.of(how));
  }

  /** A part that is at work in another thread when {@code own} ends, and a while longer. */
  private WorkScope withAPartUnderWay(CountDownLatch begun) {
    WorkScope scope = new WorkScope(pool);
    scope.fork(
        () -> {
          begun.countDown();
          pause(100);
          part();
        });
    return scope;
  }

  private static void await(CountDownLatch begun) {
    try {
      begun.await();
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  @Test
  void anInterruptEndsNoWaitAndIsKept() {
    AtomicInteger told = new AtomicInteger();
    CountDownLatch begun = new CountDownLatch(1);
    Runnable own =
        () -> {
          await(begun);
          Thread.currentThread().interrupt();
        };
    WorkScope scope = withAPartUnderWay(begun);
    assertThat(scope.finish(own, NOTHING, told::incrementAndGet)).isEmpty();
    assertThat(Thread.interrupted()).isTrue();
    assertThat(done.get()).isEqualTo(1);
    assertThat(told.get()).isPositive();
  }

  @Test
  void whatIsDoneMeanwhileMayFailAndNobodyLeavesForIt() {
    Error failure = new LinkageError("asked");
    CountDownLatch begun = new CountDownLatch(1);
    WorkScope scope = withAPartUnderWay(begun);
    List<Throwable> failed = scope.finish(() -> await(begun), fail(failure), NOTHING);
    assertThat(failed).isNotEmpty().allMatch(e -> e == failure);
    assertThat(done.get()).isEqualTo(1);
  }

  @Test
  void helpThatNobodyHasBegunIsNotNeeded() {
    List<Runnable> late = new ArrayList<>();
    WorkScope scope = new WorkScope(late::add);
    scope.help(this::part);
    scope.fork(this::part);
    assertThat(scope.finish(NOTHING, NOTHING, NOTHING)).isEmpty();
    assertThat(done.get()).as("the needed one").isEqualTo(1);
    late.forEach(Runnable::run);
    assertThat(done.get()).as("nothing is done later").isEqualTo(1);
  }

  @Test
  void theFirstFailureHasTheOthersWithIt() {
    RuntimeException first = new IllegalStateException("first");
    Error second = new AssertionError("second");
    assertThatThrownBy(() -> WorkScope.rethrow(List.of(first, second)))
        .isSameAs(first)
        .hasSuppressedException(second);
    WorkScope.rethrow(List.of());
  }
}
