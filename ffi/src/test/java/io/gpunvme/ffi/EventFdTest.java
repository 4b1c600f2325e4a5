package io.gpunvme.ffi;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

final class EventFdTest {
  private static final int F_DUPFD = 0;
  private static final CFunction WRITE = CFunction.ofLong("write");

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

  private static String target(int fd) throws IOException {
    return Files.readSymbolicLink(Path.of("/proc/self/fd/" + fd)).toString();
  }

  @Test
  void anothersCounterIsOwnedAndAddedTo() throws IOException {
    try (EventFd first = EventFd.create()) {
      int duplicate = Posix.fcntl(first.fd(), F_DUPFD, 0);
      try (EventFd second = EventFd.received(duplicate)) {
        assertThat(second.fd()).isEqualTo(duplicate);
        second.signal();
        second.signal();
        assertThat(first.await()).isEqualTo(2);
      }
      assertThatThrownBy(() -> target(duplicate)).isInstanceOf(NoSuchFileException.class);
      assertThat(target(first.fd())).contains("eventfd");
    }
  }

  @Test
  void whatIsNoCounterIsRefusedAndClosed() {
    int memory = Posix.memfdCreate("eventfd", Posix.MFD_CLOEXEC);
    int file = Posix.open("/dev/null", Posix.O_RDONLY | Posix.O_CLOEXEC, 0);
    for (int fd : new int[] {memory, file}) {
      assertThatThrownBy(() -> EventFd.received(fd))
          .isInstanceOfSatisfying(
              PosixException.class, e -> assertThat(e.errno()).isEqualTo(Errno.EINVAL));
      assertThatThrownBy(() -> target(fd)).isInstanceOf(NoSuchFileException.class);
    }
  }

  @Test
  void aFullCounterIsNotWaitedFor() {
    try (EventFd first = EventFd.create();
        EventFd second = EventFd.received(Posix.fcntl(first.fd(), F_DUPFD, 0))) {
      fill(second.fd());
      second.signal();
      second.signal();
      assertThat(first.await()).isEqualTo(-2);
      second.signal();
      assertThat(first.await()).isEqualTo(1);
    }
  }

  /** Sets a counter at 0 to the most it can hold. */
  private static void fill(int fd) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment most = arena.allocateFrom(ValueLayout.JAVA_LONG, -2);
      Native.restarting("write", () -> "", s -> WRITE.call(s, fd, most, Long.BYTES));
    }
  }
}
