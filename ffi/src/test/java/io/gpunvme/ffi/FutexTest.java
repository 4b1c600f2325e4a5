package io.gpunvme.ffi;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class FutexTest {
  private static final long LONG_NANOS = TimeUnit.SECONDS.toNanos(30);

  @Test
  void doesNotWaitForAWordThatHasChanged() {
    try (SharedMemory memory = SharedMemory.allocate("futex", 4)) {
      memory.segment().set(ValueLayout.JAVA_INT, 0, 7);
      assertThat(Futex.await(memory.segment().asSlice(0, 4), 8, LONG_NANOS)).isTrue();
    }
  }

  @Test
  void waitsAsLongAsItIsTold() {
    try (SharedMemory memory = SharedMemory.allocate("futex", 4)) {
      long start = System.nanoTime();
      assertThat(Futex.await(memory.segment().asSlice(0, 4), 0, 20_000_000)).isFalse();
      assertThat(System.nanoTime() - start).isGreaterThanOrEqualTo(20_000_000);
    }
  }

  /** Two mappings of one file, as in two processes. */
  @Test
  void isWokenThroughAnotherMapping() throws Exception {
    try (SharedMemory memory = SharedMemory.allocate("futex", 4);
        Mapping other =
            Mapping.shared(memory.fd(), 0, memory.size(), Posix.PROT_READ | Posix.PROT_WRITE)) {
      MemorySegment here = memory.segment().asSlice(8, 4);
      MemorySegment there = other.segment().asSlice(8, 4);
      CompletableFuture<Boolean> woken =
          CompletableFuture.supplyAsync(() -> Futex.await(here, 0, LONG_NANOS));
      // A wake that comes too early wakes nobody.
      while (!woken.isDone()) {
        Futex.wake(there);
        Thread.sleep(1);
      }
      assertThat(woken.get()).isTrue();
    }
  }

  @Test
  void wakingNobodyDoesNothing() {
    try (SharedMemory memory = SharedMemory.allocate("futex", 4)) {
      Futex.wake(memory.segment().asSlice(0, 4));
      assertThat(Futex.await(memory.segment().asSlice(0, 4), 0, 0)).isFalse();
    }
  }

  @Test
  void wordsAreAligned() {
    try (SharedMemory memory = SharedMemory.allocate("futex", 8)) {
      MemorySegment word = memory.segment().asSlice(2, 4);
      assertThatThrownBy(() -> Futex.await(word, 0, 1))
          .isInstanceOf(PosixException.class)
          .hasMessageContaining("EINVAL");
      assertThatThrownBy(() -> Futex.wake(word)).isInstanceOf(PosixException.class);
    }
  }
}
