package io.gpunvme.storage;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class WritesInStreamsTest {
  private final WritesInStreams writes = new WritesInStreams();
  private final CompletableFuture<Void> stored = new CompletableFuture<>();

  @ParameterizedTest
  @CsvSource({
    "100,50,true",
    "0,1000,true",
    "149,1,true",
    "100,1,true",
    "120,5,true",
    "150,10,false",
    "0,100,false",
    "9223372036854775000,800,false",
  })
  void whatConcernsTheSameBytesWaits(long offset, long length, boolean waits) {
    writes.add(100, 50, stored);
    CompletableFuture<Void> before = writes.before(offset, length);
    assertThat(before.isDone()).isNotEqualTo(waits);
    stored.complete(null);
    assertThat(before).isCompleted();
    assertThat(writes.before(100, 50)).isCompleted();
  }

  @Test
  void allOfThemAreWaitedForHoweverTheyEnd() {
    CompletableFuture<Void> second = new CompletableFuture<>();
    writes.add(0, 10, stored);
    writes.add(5, 10, second);
    CompletableFuture<Void> before = writes.before(5, 5);
    second.completeExceptionally(new IllegalStateException("not stored"));
    assertThat(before).isNotDone();
    assertThat(writes.before(12, 1)).isCompleted();
    stored.complete(null);
    assertThat(before).isCompletedWithValue(null);
  }

  @Test
  void laterWritesAreNotWaitedFor() {
    CompletableFuture<Void> before = writes.before(0, 10);
    writes.add(0, 10, stored);
    assertThat(before).isCompleted();
  }
}
