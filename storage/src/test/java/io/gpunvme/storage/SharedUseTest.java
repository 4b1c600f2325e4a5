package io.gpunvme.storage;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.gpunvme.base.SharedLock.Seat;
import io.gpunvme.storage.path.PathCall;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

class SharedUseTest {
  private final SharedUse use = new SharedUse("disk");

  @Test
  void closingCancelsWhatIsUnderWayAndWhatBeginsMeanwhile() {
    PathCall before = new PathCall("before");
    PathCall over = new PathCall("over");
    PathCall late = new PathCall("late");
    use.began(before);
    use.began(over);
    use.ended(over);
    use.cancel();
    // Was let in before, and had not begun yet.
    use.began(late);
    assertThat(before.isCancelled()).isTrue();
    assertThat(over.isCancelled()).isFalse();
    assertThat(late.isCancelled()).isTrue();
  }

  @Test
  void closingCancelsTheCallsOfThoseWhoAreInAndWaitsForThem() throws InterruptedException {
    Seat<PathCall> seat = use.enter();
    Seat<PathCall> nested = use.enter();
    assertThat(nested.belonging()).isNotSameAs(seat.belonging());
    use.leave(nested);
    AtomicInteger freed = new AtomicInteger();
    use.cancel();
    assertThat(seat.belonging().isCancelled()).isTrue();
    Thread closer = Thread.ofPlatform().start(() -> use.close(freed::incrementAndGet));
    closer.join(20);
    assertThat(freed).hasValue(0);
    use.leave(seat);
    closer.join();
    assertThat(freed).hasValue(1);
  }

  @Test
  void whoIsInItCannotFreeIt() {
    Seat<PathCall> seat = use.enter();
    assertThatExceptionOfType(IllegalStateException.class).isThrownBy(() -> use.close(() -> {}));
    use.leave(seat);
  }

  @Test
  void nobodyIsLetInAfterwards() {
    assertThat(use.during(() -> 5)).isEqualTo(5);
    use.requireOpen();
    use.cancel();
    assertThatExceptionOfType(IllegalStateException.class)
        .isThrownBy(() -> use.during(() -> 5))
        .withMessage("disk is closed");
    assertThatExceptionOfType(IllegalStateException.class).isThrownBy(use::requireOpen);
  }

  @Test
  void isFreedOnce() {
    AtomicInteger freed = new AtomicInteger();
    use.close(freed::incrementAndGet);
    use.close(freed::incrementAndGet);
    assertThat(freed).hasValue(1);
  }
}
