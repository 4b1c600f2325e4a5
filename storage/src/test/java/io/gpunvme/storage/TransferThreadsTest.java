package io.gpunvme.storage;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadPoolExecutor;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class TransferThreadsTest {
  private static final int MOST = 3;

  private final ThreadPoolExecutor threads = TransferThreads.open(MOST);
  private final Set<String> names = ConcurrentHashMap.newKeySet();

  @Test
  void aThreadThatWaitsIsTakenBeforeOneIsMade() throws InterruptedException {
    for (int i = 0; i < 50; i++) {
      CountDownLatch done = new CountDownLatch(1);
      threads.execute(
          () -> {
            names.add(Thread.currentThread().getName());
            done.countDown();
          });
      done.await();
      while (threads.getActiveCount() > 0) {
        Thread.onSpinWait();
      }
      // It waits for work a little after it has ended the last.
      Thread.sleep(1);
    }
    assertThat(names.size()).isLessThan(MOST + 1);
    assertThat(threads.getLargestPoolSize()).isLessThanOrEqualTo(2);
    TransferThreads.end(threads);
  }

  @Test
  void whatIsMoreThanThereAreThreadsWaitsForOne() throws InterruptedException {
    CountDownLatch hold = new CountDownLatch(1);
    CountDownLatch all = new CountDownLatch(20);
    for (int i = 0; i < 20; i++) {
      threads.execute(
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
    assertThat(threads.getPoolSize()).isEqualTo(MOST);
    assertThat(threads.getQueue()).hasSize(20 - MOST);
    hold.countDown();
    all.await();
    assertThat(names.size()).isBetween(1, MOST);
    TransferThreads.end(threads);
  }

  @Test
  void whatWasTakenIsDoneBeforeTheEndAndNothingElse() {
    Set<Integer> done = ConcurrentHashMap.newKeySet();
    for (int i = 0; i < 100; i++) {
      int number = i;
      threads.execute(() -> done.add(number));
    }
    TransferThreads.end(threads);
    assertThat(done).hasSize(100);
    assertThatExceptionOfType(RejectedExecutionException.class)
        .isThrownBy(() -> threads.execute(() -> done.add(-1)));
    assertThat(threads.getQueue()).isEmpty();
  }

  /** Work that comes while the threads are ended is done or refused, never forgotten. */
  @Test
  void workBesideTheEnd() throws InterruptedException {
    for (int round = 0; round < 200; round++) {
      ThreadPoolExecutor pool = TransferThreads.open(1);
      Set<Integer> taken = ConcurrentHashMap.newKeySet();
      Set<Integer> done = ConcurrentHashMap.newKeySet();
      Thread giver =
          Thread.ofPlatform()
              .start(
                  () -> {
                    for (int i = 0; i < 50; i++) {
                      int number = i;
                      try {
                        pool.execute(() -> done.add(number));
                        taken.add(number);
                      } catch (RejectedExecutionException e) {
                        return;
                      }
                    }
                  });
      TransferThreads.end(pool);
      giver.join();
      assertThat(done).isEqualTo(taken);
    }
  }
}
