package io.gpunvme.nvme.pci;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.ffi.NumaCalls;
import io.gpunvme.testing.FakeMachine;
import io.gpunvme.testing.MemoryPolicies;
import java.nio.file.Path;
import java.util.BitSet;
import java.util.concurrent.Callable;
import java.util.concurrent.FutureTask;
import java.util.concurrent.ThreadFactory;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Nodes are made up but for node 0, which every machine has: what is placed there is really placed.
 */
class NumaHomeTest {
  private static final PciAddress SSD = PciAddress.parse("0000:01:00.0");
  private static final ThreadFactory PLAIN = Thread.ofPlatform().factory();

  /** None of this machine's. */
  private static final String OTHER_CPUS = "4000-4003";

  @TempDir Path folder;
  private FakeMachine machine;

  @BeforeEach
  void build() {
    machine = new FakeMachine(folder).ssd("", SSD.toString(), 0);
  }

  /** Node 0 with processors of this machine, node 3 with others. */
  private void twoNodes(String cpus) {
    machine.node(0, cpus, 1 << 20, 0).node(3, OTHER_CPUS, 1 << 20, 1);
  }

  private NumaHome home(String option) {
    return NumaHome.ofPci(machine.paths(), SSD, NumaOption.parse(option));
  }

  private NumaHome homeOfDisk(String device) {
    return NumaHome.ofBlockDevice(machine.paths(), device, NumaOption.AUTO);
  }

  private static <T> T run(ThreadFactory threads, Callable<T> work) throws Exception {
    FutureTask<T> task = new FutureTask<>(work);
    threads.newThread(task).start();
    return task.get();
  }

  /** The processors that this process may use, as the kernel lists a node's. */
  private static String ours() {
    return NumaCalls.affinity().stream().mapToObj(String::valueOf).collect(Collectors.joining(","));
  }

  private static BitSet bits(int... numbers) {
    BitSet set = new BitSet();
    for (int n : numbers) {
      set.set(n);
    }
    return set;
  }

  // ---- which node

  @Test
  void theKernelNamesTheNode() {
    twoNodes("0-3");
    machine.numa(SSD.toString(), 3);
    assertThat(home("auto").node()).isEqualTo(3);
    assertThat(home("auto")).asString().startsWith("NUMA node 3 (of 0000:01:00.0)");
    machine.numa(SSD.toString(), 0);
    assertThat(home("auto").node()).isZero();
  }

  @Test
  void anOptionNamesAnother() {
    twoNodes("0-3");
    machine.numa(SSD.toString(), 3);
    assertThat(home("0").node()).isZero();
    assertThat(home("0")).asString().startsWith("NUMA node 0 (numa=0)");
    assertThat(home("off").node()).isEqualTo(-1);
    assertThat(home("off")).hasToString("no NUMA node: numa=off");
  }

  @Test
  void oneNodeIsNone() {
    machine.node(0, "0-3", 1 << 20, 0).numa(SSD.toString(), 0);
    for (String option : new String[] {"auto", "0"}) {
      assertThat(home(option).node()).isEqualTo(-1);
      assertThat(home(option)).hasToString("no NUMA node: this machine has only one");
    }
  }

  @Test
  void aKernelWithoutNumaHasNone() {
    assertThat(home("auto").node()).isEqualTo(-1);
    assertThatThrownBy(() -> home("0"))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessage("numa=0: there is no such NUMA node; the kernel shows none");
  }

  @Test
  void whatTheKernelDoesNotKnowIsNowhere() {
    twoNodes("0-3");
    assertThat(home("auto")).hasToString("no NUMA node: the kernel names none for 0000:01:00.0");
    machine.numa(SSD.toString(), -1);
    assertThat(home("auto")).hasToString("no NUMA node: the kernel names none for 0000:01:00.0");
    machine.numa(SSD.toString(), 1);
    assertThat(home("auto").node()).isEqualTo(-1);
    assertThat(home("auto")).asString().contains("node 1", "not there");
  }

  @Test
  void aNodeBetweenTwoIsNotThere() {
    twoNodes("0-3");
    assertThatThrownBy(() -> home("1"))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessage("numa=1: there is no such NUMA node; there are 0, 3");
  }

  @ParameterizedTest
  @ValueSource(strings = {"", "-1", "on", "0x1", "1,2", "99999", "AUTO", " 1"})
  void otherOptionsAreRefused(String text) {
    assertThatThrownBy(() -> NumaOption.parse(text))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessage("numa=" + text + ": must be auto, off or the number of a NUMA node");
  }

  @Test
  void moreNodesThanALongHasBits() {
    for (int node = 0; node < 130; node++) {
      machine.node(node, Integer.toString(node), 1 << 20, 0);
    }
    machine.numa(SSD.toString(), 129);
    assertThat(home("auto").node()).isEqualTo(129);
  }

  // ---- block devices

  @Test
  void aPartitionIsOnItsDisksFunction() {
    twoNodes("0-3");
    machine.numa(SSD.toString(), 3);
    String disk = FakeMachine.at(SSD.toString()) + "/nvme/nvme0/nvme0n1";
    machine.folder(disk + "/nvme0n1p1");
    machine.link("sys/dev/block/259:0", disk).link("sys/dev/block/259:1", disk + "/nvme0n1p1");
    assertThat(homeOfDisk("259:0").node()).isEqualTo(3);
    assertThat(homeOfDisk("259:1").node()).isEqualTo(3);
    assertThat(homeOfDisk("259:7")).asString().contains("names none for block device 259:7");
  }

  @Test
  void aDeviceOverOthersIsWhereAllOfThemAre() {
    twoNodes("0-3");
    String other = "0000:02:00.0";
    machine.numa(SSD.toString(), 3).ssd("", other, 1).numa(other, 3);
    String mapped = "sys/devices/virtual/block/dm-0";
    for (String[] one : new String[][] {{SSD.toString(), "0"}, {other, "1"}}) {
      String disk = FakeMachine.at(one[0]) + "/nvme/nvme" + one[1] + "/nvme" + one[1] + "n1";
      machine.link(mapped + "/slaves/nvme" + one[1] + "n1", disk);
    }
    machine.folder(mapped + "/dm-0p1");
    machine.link("sys/dev/block/253:0", mapped).link("sys/dev/block/253:1", mapped + "/dm-0p1");
    assertThat(homeOfDisk("253:0").node()).isEqualTo(3);
    assertThat(homeOfDisk("253:1").node()).isEqualTo(3);
    machine.numa(other, 0);
    assertThat(homeOfDisk("253:0")).asString().endsWith("are on several");
    machine.numa(other, -1);
    assertThat(homeOfDisk("253:0")).asString().contains("names none for block device 253:0");
  }

  @Test
  void aDiskOfSeveralControllersIsWhereTheyAre() {
    twoNodes("0-3");
    machine.numa(SSD.toString(), 3);
    String subsystem = "sys/devices/virtual/nvme-subsystem/nvme-subsys0";
    machine.folder(subsystem + "/nvme0n1/nvme0n1p1");
    machine.link(subsystem + "/nvme0", FakeMachine.at(SSD.toString()) + "/nvme/nvme0");
    machine.link("sys/dev/block/259:1", subsystem + "/nvme0n1/nvme0n1p1");
    assertThat(homeOfDisk("259:1").node()).isEqualTo(3);
  }

  // ---- processors

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "0                | 0",
        "0-3              | 0 1 2 3",
        "0-1,8-9,70       | 0 1 8 9 70",
        "''               | ''",
        "3-1              | ''",
        "x,2,-            | 2",
        "99999999999999   | ''"
      })
  void listsOfProcessors(String list, String numbers) {
    BitSet expected = new BitSet();
    for (String n : numbers.split(" ", -1)) {
      if (!n.isEmpty()) {
        expected.set(Integer.parseInt(n));
      }
    }
    assertThat(NumaHome.processors(list)).isEqualTo(expected);
  }

  @Test
  void threadsAreHeldToTheNode() throws Exception {
    BitSet all = NumaCalls.affinity();
    int last = all.length() - 1;
    twoNodes(last + "," + OTHER_CPUS);
    machine.numa(SSD.toString(), 0);
    NumaHome home = home("auto");

    assertThat(run(home.threads(PLAIN), NumaCalls::affinity)).isEqualTo(bits(last));
    assertThat(NumaCalls.affinity()).isEqualTo(all);
    assertThat(home).asString().doesNotContain("threads are not placed");
  }

  @Test
  void whatTheUserHasSetIsNotWidened() throws Exception {
    BitSet all = NumaCalls.affinity();
    int first = all.nextSetBit(0);
    int last = all.length() - 1;
    if (first == last) {
      Assumptions.abort("one processor only");
    }
    twoNodes("0-" + last);
    machine.numa(SSD.toString(), 0);
    assertThat(
            run(
                PLAIN,
                () -> {
                  NumaCalls.setAffinity(bits(first));
                  return run(home("auto").threads(PLAIN), NumaCalls::affinity);
                }))
        .isEqualTo(bits(first));
  }

  @Test
  void threadsOfOthersThanTheOpenerGoByTheirOwnProcessors() throws Exception {
    BitSet all = NumaCalls.affinity();
    int first = all.nextSetBit(0);
    int last = all.length() - 1;
    if (first == last) {
      Assumptions.abort("one processor only");
    }
    twoNodes(Integer.toString(last));
    machine.numa(SSD.toString(), 0);
    NumaHome home =
        run(
            PLAIN,
            () -> {
              NumaCalls.setAffinity(bits(first));
              return home("auto");
            });
    assertThat(home).asString().contains("threads are not placed");
    assertThat(run(home.threads(PLAIN), NumaCalls::affinity)).isEqualTo(bits(last));
  }

  @Test
  void threadsStayWhereTheNodeHasNoProcessorForThem() throws Exception {
    twoNodes("0-3");
    machine.numa(SSD.toString(), 3);
    NumaHome home = home("auto");
    assertThat(run(home.threads(PLAIN), NumaCalls::affinity)).isEqualTo(NumaCalls.affinity());
    assertThat(home)
        .asString()
        .contains("threads are not placed: the node has no processor that this thread may use");
  }

  @Test
  void onlyOurThreadsAreMovedAndOnlyForAWhile() throws Exception {
    BitSet all = NumaCalls.affinity();
    int last = all.length() - 1;
    twoNodes(Integer.toString(last));
    machine.numa(SSD.toString(), 0);
    NumaHome home = home("auto");
    Callable<BitSet[]> work =
        () -> {
          BitSet during;
          try (var _ = home.thread()) {
            during = NumaCalls.affinity();
          }
          return new BitSet[] {during, NumaCalls.affinity()};
        };
    assertThat(run(NumaHome.movable(PLAIN), work)).containsExactly(bits(last), all);
    assertThat(run(PLAIN, work)).containsExactly(all, all);
  }

  @Test
  void threadsOfWhatIsNowhereAreAsTheyWere() {
    assertThat(NumaHome.NONE.threads(PLAIN)).isSameAs(PLAIN);
    assertThat(home("off").threads(PLAIN)).isSameAs(PLAIN);
  }

  // ---- memory

  @Test
  void memoryIsPreferredOnTheNodeForAWhile() {
    MemoryPolicies.needNode0();
    twoNodes(ours());
    machine.numa(SSD.toString(), 0);
    NumaHome home = home("auto");
    assertThat(home).hasToString("NUMA node 0 (of 0000:01:00.0)");
    try (var _ = home.memory()) {
      assertThat(NumaCalls.hasUsualMemory()).isFalse();
      try (var _ = home.memory()) {
        assertThat(NumaCalls.hasUsualMemory()).isFalse();
      }
      assertThat(NumaCalls.hasUsualMemory()).as("the outer one ends it").isFalse();
    }
    assertThat(NumaCalls.hasUsualMemory()).isTrue();
  }

  @Test
  void aPolicyOfTheUsersStays() throws Exception {
    MemoryPolicies.needNode0();
    twoNodes("0-3");
    machine.numa(SSD.toString(), 0);
    run(
        PLAIN,
        () -> {
          NumaCalls.preferNode(0);
          NumaHome home = home("auto");
          assertThat(home).asString().contains("has a memory policy already (numactl)");
          home.memory().close();
          assertThat(NumaCalls.hasUsualMemory()).isFalse();
          return true;
        });
  }

  @Test
  void memoryStaysUsualWhereTheKernelHasNoneOnTheNode() {
    MemoryPolicies.need();
    machine.node(0, "0-3", 1 << 20, 0).node(900, OTHER_CPUS, 1 << 20, 1);
    machine.numa(SSD.toString(), 900);
    NumaHome home = home("auto");
    assertThat(home)
        .asString()
        .contains("memory is not placed: the node has no memory that this process may have");
    try (var _ = home.memory()) {
      assertThat(NumaCalls.hasUsualMemory()).isTrue();
    }
  }

  @Test
  void virtualThreadsHaveNoPolicy() throws Exception {
    MemoryPolicies.needNode0();
    twoNodes("0-3");
    machine.numa(SSD.toString(), 0);
    NumaHome home = home("auto");
    assertThat(
            run(
                Thread.ofVirtual().factory(),
                () -> {
                  try (var _ = home.memory()) {
                    return NumaCalls.hasUsualMemory();
                  }
                }))
        .isTrue();
  }

  @Test
  void nothingIsPlacedNowhere() {
    try (var _ = NumaHome.NONE.memory();
        var _ = NumaHome.NONE.thread()) {
      assertThat(NumaHome.NONE.node()).isEqualTo(-1);
    }
  }
}
