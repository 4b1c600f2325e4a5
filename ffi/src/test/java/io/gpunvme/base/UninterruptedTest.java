package io.gpunvme.base;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;

class UninterruptedTest {
  @Test
  void anInterruptDoesNotEndTheWaitAndIsNotLost() throws InterruptedException {
    CountDownLatch mayEnd = new CountDownLatch(1);
    Thread slow =
        Thread.ofPlatform()
            .start(
                () -> {
                  try {
                    mayEnd.await();
                  } catch (InterruptedException e) {
                    throw new AssertionError(e);
                  }
                });
    boolean[] seen = new boolean[2];
    Thread waiting =
        Thread.ofPlatform()
            .start(
                () -> {
                  Uninterrupted.join(slow);
                  seen[0] = !slow.isAlive();
                  seen[1] = Thread.interrupted();
                });
    waiting.interrupt();
    waiting.join(50);
    assertThat(waiting.isAlive()).isTrue();
    mayEnd.countDown();
    waiting.join();
    assertThat(seen).containsExactly(true, true);
  }

  @Test
  void nobodyWaitsForItselfOrForOneThatWasNotStarted() {
    Uninterrupted.join(Thread.currentThread());
    Uninterrupted.join(Thread.ofPlatform().unstarted(() -> {}));
    assertThat(Thread.currentThread().isInterrupted()).isFalse();
  }
}
