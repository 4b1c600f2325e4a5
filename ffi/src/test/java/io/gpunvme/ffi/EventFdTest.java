package io.gpunvme.ffi;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

final class EventFdTest {
  @Test
  void countsSignals() {
    try (EventFd event = EventFd.create()) {
      event.signal();
      event.signal();
      assertThat(event.await()).isEqualTo(2);
      event.signal();
      assertThat(event.await()).isEqualTo(1);
    }
  }

  @Test
  void wakesWhoWaits() throws Exception {
    try (EventFd event = EventFd.create()) {
      CompletableFuture<Long> waiter = CompletableFuture.supplyAsync(event::await);
      event.signal();
      assertThat(waiter.get(60, TimeUnit.SECONDS)).isEqualTo(1);
    }
  }

  @Test
  void useAfterCloseThrows() {
    EventFd event = EventFd.create();
    event.close();
    event.close();
    assertThatIllegalStateException().isThrownBy(event::signal);
    assertThatIllegalStateException().isThrownBy(event::await);
    assertThatIllegalStateException().isThrownBy(event::fd);
  }
}
