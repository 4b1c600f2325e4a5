package io.gpunvme.storage.path.set;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.ffi.NumaCalls;
import io.gpunvme.nvme.pci.NumaHome;
import io.gpunvme.storage.path.PathCall;
import io.gpunvme.testing.FakeMachine;
import java.nio.file.Path;
import java.util.BitSet;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Threads are on the node of the member that they serve just then. */
@Timeout(60)
class MemberHomesTest {
  @Test
  void theCallerStaysAndTheOthersAreAtTheirMembers(@TempDir Path one, @TempDir Path two) {
    BitSet all = NumaCalls.affinity();
    int first = all.nextSetBit(0);
    int last = all.length() - 1;
    List<Member> members =
        List.of(
            member("callers", new FakeMachine(one.resolve("callers")).home(first)),
            member("first", new FakeMachine(one.resolve("first")).home(first)),
            member("last", new FakeMachine(two).home(last)),
            member("nowhere", NumaHome.NONE));
    try (Members set = new Members(members, System::nanoTime, 0)) {
      // The pool's threads serve another member each time.
      for (List<Integer> which :
          List.of(List.of(0, 1, 2, 3), List.of(0, 2, 3, 1), List.of(0, 3, 1, 2))) {
        Map<Integer, BitSet> seen = new ConcurrentHashMap<>();
        // What nobody has begun when the caller is done would be the caller's.
        CountDownLatch others = new CountDownLatch(which.size() - 1);
        Members.Work work =
            m -> {
              seen.put(m, NumaCalls.affinity());
              if (m == 0) {
                await(others);
              } else {
                others.countDown();
              }
            };
        assertThat(set.run(which, new PathCall("set"), work)).isEmpty();
        assertThat(seen.get(0)).isEqualTo(all);
        assertThat(seen.get(1).stream()).containsExactly(first);
        assertThat(seen.get(2).stream()).containsExactly(last);
        assertThat(seen.get(3)).isEqualTo(all);
      }
    }
    assertThat(NumaCalls.affinity()).isEqualTo(all);
  }

  private static void await(CountDownLatch latch) {
    try {
      latch.await();
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  private static Member member(String name, NumaHome home) {
    return new Member(name, new ScriptedPath(1), home);
  }
}
