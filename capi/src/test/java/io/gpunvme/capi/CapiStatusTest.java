package io.gpunvme.capi;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.CompletionException;
import java.util.concurrent.RejectedExecutionException;
import org.junit.jupiter.api.Test;

/** What C is told of failures that no device is to blame for. */
class CapiStatusTest {
  @Test
  void noThreadAndNoHeapAreNoMemory() {
    MemorySegment failure = Arena.ofAuto().allocate(Calls.FAILURE, Long.BYTES);
    Throwable none = new RejectedExecutionException("the system has no thread left");
    for (Throwable e : new Throwable[] {none, new CompletionException(none)}) {
      assertThat(CapiStatus.fail(failure, e)).isEqualTo(CapiStatus.MEMORY);
      assertThat(failure.getString(Long.BYTES)).isEqualTo("the system has no thread left");
    }
    assertThat(CapiStatus.fail(failure, new OutOfMemoryError("heap"))).isEqualTo(CapiStatus.MEMORY);
    assertThat(CapiStatus.fail(failure, new LinkageError("bug"))).isEqualTo(CapiStatus.INTERNAL);
  }
}
