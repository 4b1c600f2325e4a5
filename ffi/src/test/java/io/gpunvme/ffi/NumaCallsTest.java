package io.gpunvme.ffi;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.testing.MemoryPolicies;
import java.util.BitSet;
import java.util.concurrent.Callable;
import java.util.concurrent.FutureTask;
import org.junit.jupiter.api.Test;

/** In threads of their own: what is done to a thread stays with it. */
class NumaCallsTest {
  private static <T> T inAThread(Callable<T> work) throws Exception {
    FutureTask<T> task = new FutureTask<>(work);
    Thread.ofPlatform().start(task);
    return task.get();
  }

  @Test
  void aThreadPrefersANodeAndNoLongerDoes() throws Exception {
    MemoryPolicies.needNode0();
    assertThat(
            inAThread(
                () -> {
                  boolean before = NumaCalls.hasUsualMemory();
                  NumaCalls.preferNode(0);
                  boolean during = NumaCalls.hasUsualMemory();
                  NumaCalls.useUsualMemory();
                  return new boolean[] {before, during, NumaCalls.hasUsualMemory()};
                }))
        .containsExactly(true, false, true);
    assertThat(NumaCalls.hasUsualMemory()).isTrue();
  }

  @Test
  void aNodeThatIsNotThereIsRefused() {
    MemoryPolicies.need();
    for (int node : new int[] {64, 1023, NumaCalls.MAX_NODE}) {
      assertThatThrownBy(() -> NumaCalls.preferNode(node))
          .isInstanceOfSatisfying(
              PosixException.class, e -> assertThat(e.errno()).isEqualTo(Errno.EINVAL));
    }
    assertThatIllegalArgumentException().isThrownBy(() -> NumaCalls.preferNode(-1));
    assertThatIllegalArgumentException()
        .isThrownBy(() -> NumaCalls.preferNode(NumaCalls.MAX_NODE + 1));
  }

  @Test
  void aThreadIsHeldToOneProcessor() throws Exception {
    BitSet all = NumaCalls.affinity();
    assertThat(all.cardinality()).isPositive();
    BitSet last = new BitSet();
    last.set(all.length() - 1);

    assertThat(
            inAThread(
                () -> {
                  NumaCalls.setAffinity(last);
                  return NumaCalls.affinity();
                }))
        .isEqualTo(last);
    assertThat(NumaCalls.affinity()).isEqualTo(all);
  }

  @Test
  void noProcessorIsRefused() {
    assertThatThrownBy(() -> NumaCalls.setAffinity(new BitSet()))
        .isInstanceOfSatisfying(
            PosixException.class, e -> assertThat(e.errno()).isEqualTo(Errno.EINVAL));
  }
}
