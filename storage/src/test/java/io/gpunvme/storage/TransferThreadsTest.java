package io.gpunvme.storage;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.Semaphore;
import java.util.concurrent.ThreadFactory;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class TransferThreadsTest {
  private static final int MOST = 3;

  private final TransferThreads threads = new TransferThreads(MOST);
  private final Set<String> names = ConcurrentHashMap.newKeySet();

  @Test
  void aThreadThatWaitsIsTakenBeforeOneIsMade() throws InterruptedException {
    int times = 50;
    TransferThreads many = new TransferThreads(times);
    for (int i = 0; i < times; i++) {
      CountDownLatch done = new CountDownLatch(1);
      execute(
          many,
          () -> {
            names.add(Thread.currentThread().getName());
            done.countDown();
          });
      done.await();
      // It waits for work a little after it has ended the last; longer on a busy machine.
      Thread.sleep(2);
    }
    assertThat(names.size()).isLessThan(times / 2);
    many.end();
  }

  @Test
  void whatIsMoreThanThereAreThreadsWaitsForOne() throws InterruptedException {
    CountDownLatch hold = new CountDownLatch(1);
    CountDownLatch all = new CountDownLatch(20);
    for (int i = 0; i < 20; i++) {
      execute(
          threads,
          () -> {
            try {
              hold.await();
            } catch (InterruptedException e) {
              throw new AssertionError(e);
            }
            names.add(Thread.currentThread().getName());
            all.countDown();
          });
    }
    assertThat(threads.poolSize()).isEqualTo(MOST);
    hold.countDown();
    all.await();
    assertThat(names.size()).isBetween(1, MOST);
    threads.end();
  }

  @Test
  void whatWasTakenIsDoneBeforeTheEndAndNothingElse() {
    Set<Integer> done = ConcurrentHashMap.newKeySet();
    for (int i = 0; i < 100; i++) {
      int number = i;
      execute(threads, () -> done.add(number));
    }
    threads.end();
    assertThat(done).hasSize(100);
    assertThatExceptionOfType(RejectedExecutionException.class)
        .isThrownBy(() -> execute(threads, () -> done.add(-1)));
    assertThat(done).hasSize(100);
  }

  private static void execute(TransferThreads threads, Runnable work) {
    threads.execute(
        () -> {
          work.run();
          return () -> {};
        });
  }

  /** What it returns does not count any more: it may end the threads, and wait for them. */
  @Test
  void theLastWorkMayEndTheThreads() throws InterruptedException {
    CountDownLatch ended = new CountDownLatch(2);
    // None ends the threads before both were taken.
    Semaphore taken = new Semaphore(0);
    for (int i = 0; i < 2; i++) {
      threads.execute(
          () -> {
            taken.acquireUninterruptibly();
            return () -> {
              threads.end();
              ended.countDown();
            };
          });
    }
    taken.release(2);
    ended.await();
  }

  @Test
  void workForWhichThereIsNoThreadIsRefusedAndNotWaitedFor() {
    ThreadFactory none =
        _ -> {
          throw new OutOfMemoryError("unable to create native thread");
        };
    TransferThreads pool = new TransferThreads(2, none);
    assertThatExceptionOfType(RejectedExecutionException.class)
        .isThrownBy(() -> execute(pool, () -> {}))
        .withMessageContaining("no thread left");
    pool.end();
  }

  /** Work that comes while the threads are ended is done or refused, never forgotten. */
  @Test
  void workBesideTheEnd() throws InterruptedException {
    for (int round = 0; round < 200; round++) {
      TransferThreads pool = new TransferThreads(1);
      Set<Integer> taken = ConcurrentHashMap.newKeySet();
      Set<Integer> done = ConcurrentHashMap.newKeySet();
      Thread giver =
          Thread.ofPlatform()
              .start(
                  () -> {
                    for (int i = 0; i < 50; i++) {
                      int number = i;
                      try {
                        execute(pool, () -> done.add(number));
                        taken.add(number);
                      } catch (RejectedExecutionException e) {
                        return;
                      }
                    }
                  });
      pool.end();
      giver.join();
      assertThat(done).isEqualTo(taken);
    }
  }
}
