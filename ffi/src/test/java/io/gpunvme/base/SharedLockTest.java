package io.gpunvme.base;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.gpunvme.base.SharedLock.Seat;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class SharedLockTest {
  private static final int TURNS = 20_000;

  private final AtomicInteger made = new AtomicInteger();
  private final SharedLock<Integer> lock = new SharedLock<>(made::incrementAndGet);

  @Test
  void whoHasItAloneMeetsNobodyAndSeesWhatWasWritten() throws InterruptedException {
    int[] plain = new int[1];
    AtomicBoolean stop = new AtomicBoolean();
    AtomicInteger wrong = new AtomicInteger();
    List<Thread> readers = new ArrayList<>();
    for (int t = 0; t < 3; t++) {
      readers.add(
          Thread.ofPlatform()
              .start(
                  () -> {
                    while (!stop.get()) {
                      Seat<Integer> seat = lock.enter();
                      int before = plain[0];
                      Seat<Integer> again = lock.enter();
                      if (before % 2 != 0 || plain[0] != before) {
                        wrong.incrementAndGet();
                      }
                      lock.leave(again);
                      lock.leave(seat);
                    }
                  }));
    }
    for (int i = 0; i < TURNS / 100; i++) {
      lock.enterAlone();
      plain[0]++;
      Thread.onSpinWait();
      plain[0]++;
      lock.leaveAlone();
    }
    stop.set(true);
    for (Thread reader : readers) {
      reader.join();
    }
    assertThat(wrong).hasValue(0);
    assertThat(plain[0]).isEqualTo(TURNS / 100 * 2);
  }

  @Test
  void noTwoThreadsHaveOneSeat() throws InterruptedException {
    int[] uses = new int[1 << 16];
    List<Thread> threads = new ArrayList<>();
    AtomicInteger all = new AtomicInteger();
    for (int t = 0; t < 4; t++) {
      threads.add(
          Thread.ofPlatform()
              .start(
                  () -> {
                    for (int i = 0; i < TURNS; i++) {
                      Seat<Integer> seat = lock.enter();
                      uses[seat.belonging()]++;
                      lock.leave(seat);
                      all.incrementAndGet();
                    }
                  }));
    }
    for (Thread thread : threads) {
      thread.join();
    }
    lock.enterAlone();
    long sum = 0;
    for (int used : uses) {
      sum += used;
    }
    lock.leaveAlone();
    assertThat(sum).isEqualTo(all.get()).isEqualTo(4L * TURNS);
  }

  @Test
  void thereAreSeatsForAll() {
    int first = made.get();
    List<Seat<Integer>> seats = new ArrayList<>();
    for (int i = 0; i < 4 * first; i++) {
      seats.add(lock.enter());
    }
    assertThat(seats).doesNotHaveDuplicates();
    assertThat(lock.belongings()).contains(seats.getLast().belonging()).doesNotHaveDuplicates();
    assertThat(lock.isShared()).isTrue();
    seats.forEach(lock::leave);
    assertThat(lock.isShared()).isFalse();
    int there = made.get();
    lock.leave(lock.enter());
    assertThat(made).hasValue(there);
    lock.enterAlone();
    lock.leaveAlone();
  }

  @Test
  void whoSharesItMayShareItAgainWhileAnotherWaits() throws InterruptedException {
    Seat<Integer> seat = lock.enter();
    CountDownLatch alone = new CountDownLatch(1);
    Thread closer =
        Thread.ofPlatform()
            .start(
                () -> {
                  lock.enterAlone();
                  alone.countDown();
                  lock.leaveAlone();
                });
    while (closer.getState() != Thread.State.WAITING) {
      Thread.sleep(1);
    }
    Seat<Integer> nested = lock.enter();
    // Who does not share it yet waits for its turn.
    Thread late = Thread.ofPlatform().start(() -> lock.leave(lock.enter()));
    while (late.getState() != Thread.State.WAITING) {
      Thread.sleep(1);
    }
    lock.leave(nested);
    assertThat(alone.getCount()).isEqualTo(1);
    lock.leave(seat);
    closer.join();
    late.join();
    assertThat(alone.getCount()).isZero();
  }

  @Test
  void nobodyWaitsForItself() {
    Seat<Integer> seat = lock.enter();
    assertThatIllegalStateException().isThrownBy(lock::enterAlone);
    lock.leave(seat);
    lock.enterAlone();
    lock.leaveAlone();
  }

  @Test
  void anInterruptDoesNotEndTheWait() throws InterruptedException {
    Seat<Integer> seat = lock.enter();
    AtomicBoolean kept = new AtomicBoolean();
    Thread closer =
        Thread.ofPlatform()
            .start(
                () -> {
                  lock.enterAlone();
                  kept.set(Thread.interrupted());
                  lock.leaveAlone();
                });
    closer.interrupt();
    closer.join(50);
    assertThat(closer.isAlive()).isTrue();
    lock.leave(seat);
    closer.join();
    assertThat(kept).isTrue();
  }
}
