package io.gpunvme.nvme.driver;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.nvme.NvmeException;
import io.gpunvme.nvme.NvmeStatusException;
import io.gpunvme.nvme.ProtocolException;
import io.gpunvme.nvme.spec.AdminOpcode;
import io.gpunvme.nvme.spec.Cns;
import io.gpunvme.nvme.spec.IdentifyController;
import io.gpunvme.nvme.spec.IdentifyNamespace;
import io.gpunvme.nvme.spec.LbaFormat;
import io.gpunvme.nvme.spec.NamespaceDescriptors;
import io.gpunvme.nvme.spec.SmartLog;
import io.gpunvme.nvme.spec.Sqe;
import io.gpunvme.nvme.spec.StatusCode;
import io.gpunvme.nvme.spec.Vs;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.List;
import java.util.SplittableRandom;
import java.util.function.Consumer;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Nothing a controller says about itself may crash the driver, hang it or make it compute nonsense.
 */
class HostileIdentifyTest {
  private static final int MUTATED_PAGES = 100_000;
  private static final int MUTATED_OPENINGS = 1_500;

  private static final ControllerOptions OPTIONS =
      ControllerOptions.builder().adminTimeout(Duration.ofSeconds(2)).build();

  private final FakeFunction function = new FakeFunction();
  private final FakeAdmin fake = function.admin();

  private NvmeController open() {
    return NvmeController.open(function, OPTIONS);
  }

  private Namespace only() {
    try (NvmeController controller = open()) {
      assertThat(controller.namespaces()).hasSize(1);
      return controller.namespaces().getFirst();
    }
  }

  private static Arguments controller(String named, Consumer<IdentifyController> change) {
    return Arguments.of(named, change);
  }

  static Stream<Arguments> impossibleControllers() {
    return Stream.of(
        controller("SQES", id -> id.set(IdentifyController.SQES, 0x77)),
        controller("SQES", id -> id.set(IdentifyController.SQES, 0x55)),
        controller("SQES", id -> id.set(IdentifyController.SQES, 0)),
        controller("CQES", id -> id.set(IdentifyController.CQES, 0x55)),
        controller("CQES", id -> id.set(IdentifyController.CQES, 0x33)),
        controller("CNTRLTYPE", id -> id.set(IdentifyController.CNTRLTYPE, 2)),
        controller("CNTRLTYPE", id -> id.set(IdentifyController.CNTRLTYPE, 3)),
        controller("NN", id -> id.set(IdentifyController.NN, 0xFFFF_FFFFL)),
        controller("MDTS", id -> id.set(IdentifyController.MDTS, 51)),
        controller("MDTS", id -> id.set(IdentifyController.MDTS, 255)));
  }

  @ParameterizedTest
  @MethodSource("impossibleControllers")
  void impossibleController(String named, Consumer<IdentifyController> change) {
    change.accept(fake.controller);
    assertThatThrownBy(this::open)
        .isInstanceOf(ProtocolException.class)
        .hasMessageContaining(named);
    assertThat(function.closed).isTrue();
    assertThat(function.mappedRanges()).isZero();
    assertThat(function.busMaster()).isFalse();
  }

  @Test
  void transferLimitIsMdtsOrTheOption() {
    fake.controller.set(IdentifyController.MDTS, 5);
    try (NvmeController controller = open()) {
      assertThat(controller.maxTransferBytes()).isEqualTo(128 << 10);
    }
    FakeFunction unlimited = new FakeFunction();
    unlimited.admin().controller.set(IdentifyController.MDTS, 0);
    try (NvmeController controller = NvmeController.open(unlimited, OPTIONS)) {
      assertThat(controller.maxTransferBytes()).isEqualTo(1 << 20);
    }
    FakeFunction huge = new FakeFunction();
    huge.admin().controller.set(IdentifyController.MDTS, 50);
    try (NvmeController controller = NvmeController.open(huge, OPTIONS)) {
      assertThat(controller.maxTransferBytes()).isEqualTo(1 << 20);
    }
  }

  static Stream<List<Integer>> impossibleLists() {
    return Stream.of(List.of(2, 1), List.of(3, 3), List.of(1, 9), List.of(1, -1));
  }

  @ParameterizedTest
  @MethodSource("impossibleLists")
  void impossibleNamespaceList(List<Integer> list) {
    fake.first =
        (sqe, data) -> {
          if (Sqe.opcode(sqe, 0) != AdminOpcode.IDENTIFY
              || Sqe.cdw10(sqe, 0) != Cns.ACTIVE_NAMESPACES) {
            return FakeAdmin.NORMAL;
          }
          for (int i = 0; i < list.size(); i++) {
            data.setAtIndex(ValueLayout.JAVA_INT, i, list.get(i));
          }
          return 0;
        };
    assertThatThrownBy(this::open)
        .isInstanceOf(ProtocolException.class)
        .hasMessageContaining("active namespace list");
  }

  @Test
  void listsOfSeveralPagesAreFollowed() {
    fake.controller.set(IdentifyController.NN, 3000);
    fake.active =
        IntStream.rangeClosed(1, 2500).filter(i -> i % 2 == 1 || i < 1200).boxed().toList();
    try (NvmeController controller = open()) {
      assertThat(controller.namespaces().stream().map(Namespace::nsid)).isEqualTo(fake.active);
    }
  }

  @Test
  void endlessListsEnd() {
    fake.controller.set(IdentifyController.NN, 0xFFFF_FFFEL);
    fake.active = IntStream.rangeClosed(1, NamespaceScan.MAX_NAMESPACES + 1).boxed().toList();
    assertThatThrownBy(this::open)
        .isInstanceOf(ProtocolException.class)
        .hasMessageContaining("more than 4096");
  }

  @Test
  void withoutAListEveryNamespaceIsTried() {
    function.version = Vs.of(1, 0, 0);
    fake.controller.set(IdentifyController.NN, 5);
    fake.first =
        (sqe, data) -> {
          if (Sqe.opcode(sqe, 0) != AdminOpcode.IDENTIFY) {
            return FakeAdmin.NORMAL;
          }
          int cns = Sqe.cdw10(sqe, 0);
          int nsid = Sqe.nsid(sqe, 0);
          if (cns == Cns.NAMESPACE && nsid == 2) {
            return 0; // inactive: all zeros
          }
          if (cns == Cns.NAMESPACE && nsid == 4) {
            return StatusCode.INTERNAL_ERROR.status();
          }
          return cns > 1 ? StatusCode.INVALID_FIELD.dnr() : FakeAdmin.NORMAL;
        };
    try (NvmeController controller = open()) {
      assertThat(controller.namespaces().stream().map(Namespace::nsid)).containsExactly(1, 3, 5);
    }
  }

  private static Arguments namespace(String reason, Consumer<IdentifyNamespace> change) {
    return Arguments.of(reason, change);
  }

  static Stream<Arguments> unusableNamespaces() {
    return Stream.of(
        namespace("LBADS 8", id -> id.lbaf(0, new LbaFormat(0, 8, 0))),
        namespace("LBADS 17", id -> id.lbaf(0, new LbaFormat(0, 17, 0))),
        namespace("LBADS 255", id -> id.lbaf(0, new LbaFormat(0, 255, 0))),
        namespace("LBADS 0", id -> id.lbaf(0, new LbaFormat(0, 0, 0))),
        namespace("FLBAS names LBA format 2", id -> id.set(IdentifyNamespace.FLBAS, 2)),
        namespace(
            "FLBAS names LBA format 63",
            id -> id.set(IdentifyNamespace.NLBAF, 20).set(IdentifyNamespace.FLBAS, 0x6F)),
        namespace("overflow", id -> id.set(IdentifyNamespace.NSZE, Long.MIN_VALUE)),
        namespace("overflow", id -> id.set(IdentifyNamespace.NSZE, 1L << 54)),
        namespace("NCAP", id -> id.set(IdentifyNamespace.NCAP, 1001)),
        namespace("NCAP", id -> id.set(IdentifyNamespace.NCAP, -1)),
        namespace("8 bytes of metadata", id -> id.lbaf(0, new LbaFormat(8, 9, 0))),
        namespace("protection type 1", id -> id.set(IdentifyNamespace.DPS, 1)));
  }

  @ParameterizedTest
  @MethodSource("unusableNamespaces")
  void unusableNamespaceIsListedWithTheReason(String reason, Consumer<IdentifyNamespace> change) {
    change.accept(fake.namespace);
    try (NvmeController controller = open()) {
      Namespace namespace = controller.namespace(1);
      assertThat(namespace.usable()).isFalse();
      assertThat(namespace.reason()).contains(reason);
      assertThat(namespace.toString()).contains(reason);
      assertThatThrownBy(() -> BlockDevice.open(controller, namespace, 4))
          .isInstanceOf(InvalidRequestException.class)
          .hasMessageContaining(reason);
      assertThatThrownBy(namespace::blockSize).isInstanceOf(InvalidRequestException.class);
      assertThatThrownBy(namespace::bytes).isInstanceOf(InvalidRequestException.class);
      assertThat(controller.logs().smart().getInt(SmartLog.CRITICAL_WARNING)).isZero();
    }
  }

  @Test
  void largestNamespaceDoesNotOverflow() {
    fake.namespace.set(IdentifyNamespace.NSZE, (1L << 54) - 1).set(IdentifyNamespace.NCAP, 1);
    assertThat(only().bytes()).isEqualTo(((1L << 54) - 1) << 9);
  }

  @Test
  void namespaceOfAnotherCommandSetIsListedWithTheReason() {
    fake.descriptors.segment().fill((byte) 0);
    fake.descriptors.append(NamespaceDescriptors.CSI, new byte[] {2});
    assertThat(only().reason()).contains("command set 02h");
  }

  @Test
  void namespaceWithoutDescriptorsIsUsable() {
    fake.first =
        (sqe, data) ->
            Sqe.opcode(sqe, 0) == AdminOpcode.IDENTIFY
                    && Sqe.cdw10(sqe, 0) == Cns.NAMESPACE_DESCRIPTORS
                ? StatusCode.INVALID_FIELD.dnr()
                : FakeAdmin.NORMAL;
    assertThat(only().usable()).isTrue();
  }

  @Test
  void identifiersByPreference() {
    assertThat(only().uniqueId()).isEqualTo("nguid.0102030405060708090a0b0c0d0e0f10");
    FakeFunction eui = new FakeFunction();
    eui.admin().namespace.set(IdentifyNamespace.NGUID, new byte[16]).eui64(0x0102030405060708L);
    FakeFunction none = new FakeFunction();
    none.admin().namespace.set(IdentifyNamespace.NGUID, new byte[16]);
    FakeFunction uuid = new FakeFunction();
    uuid.admin().descriptors.append(NamespaceDescriptors.UUID, new byte[16]);
    assertThat(uniqueId(eui)).isEqualTo("eui.0102030405060708");
    assertThat(uniqueId(none)).isNull();
    assertThat(uniqueId(uuid)).isEqualTo("uuid.00000000-0000-0000-0000-000000000000");
  }

  private static String uniqueId(FakeFunction function) {
    try (NvmeController controller = NvmeController.open(function, OPTIONS)) {
      return controller.namespace(1).uniqueId();
    }
  }

  @Test
  void unknownNamespaceNamesTheOnesThereAre() {
    try (NvmeController controller = open()) {
      assertThatThrownBy(() -> controller.namespace(7))
          .isInstanceOf(InvalidRequestException.class)
          .hasMessageContaining("[1]");
    }
  }

  @Test
  void grantingMoreQueuesThanExistIsRefused() {
    for (int dword : new int[] {0xFFFF_0003, 0x0003_FFFF, -1}) {
      FakeFunction liar = new FakeFunction();
      liar.admin().queuesGranted = dword;
      assertThatThrownBy(() -> NvmeController.open(liar, OPTIONS))
          .isInstanceOf(ProtocolException.class)
          .hasMessageContaining("Number of Queues");
    }
  }

  @Test
  void grantsMayDifferFromTheRequest() {
    fake.queuesGranted = 0x0007_0002;
    try (NvmeController controller = open()) {
      assertThat(controller.maxQueuePairs()).isEqualTo(3);
    }
    FakeFunction generous = new FakeFunction();
    generous.admin().queuesGranted = 0x0FFF_0FFF;
    try (NvmeController controller = NvmeController.open(generous, OPTIONS)) {
      assertThat(controller.maxQueuePairs()).isEqualTo(OPTIONS.queuePairs());
    }
  }

  @Test
  void refusedQueuesLeaveTheAdminQueue() {
    fake.first =
        (sqe, data) ->
            Sqe.opcode(sqe, 0) == AdminOpcode.SET_FEATURES && Sqe.cdw10(sqe, 0) == 7
                ? StatusCode.INTERNAL_ERROR.status()
                : FakeAdmin.NORMAL;
    try (NvmeController controller = open()) {
      assertThat(controller.maxQueuePairs()).isZero();
      assertThatThrownBy(() -> controller.createQueuePair(4))
          .isInstanceOf(ProtocolException.class)
          .hasMessageContainingAll("granted no I/O queues (", "Internal Error");
      assertThatThrownBy(controller::requireQueuePairs)
          .isInstanceOf(ProtocolException.class)
          .hasMessageContaining("Internal Error");
      assertThat(controller.identify(Cns.CONTROLLER, 0).byteSize()).isEqualTo(4096);
    }
  }

  @Test
  void doorbellsAreForgottenWhenAResetLeavesNoQueues() {
    try (NvmeController controller = open()) {
      controller.requireQueuePairs();
      function.barSize = 0x1000 + 8;
      controller.reset();
      assertThat(controller.maxQueuePairs()).isZero();
      assertThatThrownBy(() -> controller.createQueuePair(4))
          .isInstanceOf(ProtocolException.class)
          .hasMessageContaining("BAR0");
    }
  }

  @Test
  void failuresOfALaterStepNameIt() {
    fake.first =
        (sqe, data) ->
            Sqe.opcode(sqe, 0) == AdminOpcode.IDENTIFY
                ? StatusCode.INTERNAL_ERROR.status()
                : FakeAdmin.NORMAL;
    assertThatThrownBy(this::open)
        .isInstanceOf(NvmeStatusException.class)
        .hasMessageStartingWith("bring-up of fake failed in IDENTIFY: Identify failed")
        .hasMessageEndingWith("; DNR is clear");
    assertThat(function.mappedRanges()).isZero();
  }

  @Test
  void queuePairsAreLimitedByTheDoorbellsOfTheBar() {
    fake.queuesGranted = 0x0FFF_0FFF;
    function.barSize = 0x1000 + 8 * 8;
    try (NvmeController controller = open()) {
      assertThat(controller.maxQueuePairs()).isEqualTo(7);
    }
    FakeFunction partlyMapped = new FakeFunction();
    partlyMapped.admin().queuesGranted = 0x0FFF_0FFF;
    partlyMapped.barSize = 1 << 20;
    try (NvmeController controller =
        NvmeController.open(partlyMapped, ControllerOptions.builder().queuePairs(4000).build())) {
      assertThat(controller.maxQueuePairs()).isEqualTo(1000);
    }
  }

  @Test
  void mutatedPagesNeverBreakTheChecks() {
    long seed = seed();
    SplittableRandom random = new SplittableRandom(seed);
    for (int i = 0; i < MUTATED_PAGES; i++) {
      MemorySegment page = MemorySegment.ofArray(new byte[4096]);
      page.copyFrom(fake.namespace.segment());
      mutate(page, random, 384);
      IdentifyNamespace id = new IdentifyNamespace(page);
      String why = IdentifyChecks.whyUnusable(id);
      Namespace namespace = new Namespace(1, id, null, why);
      if (why == null) {
        assertThat(namespace.bytes()).as("seed %d, page %d", seed, i).isNotNegative();
        assertThat(namespace.blockSize()).as("seed %d", seed).isBetween(512, 65536);
      } else {
        Throwable thrown = catchThrowable(() -> namespace.requireRange(0, 1));
        assertThat(thrown).as("seed %d", seed).isInstanceOf(InvalidRequestException.class);
      }
      IdentifyController controller = new IdentifyController(page);
      try {
        IdentifyChecks.controller(controller, random.nextInt(16));
      } catch (ProtocolException e) {
        continue;
      }
      assertThat(IdentifyChecks.maxTransferBytes(controller, 0)).as("seed %d", seed).isPositive();
    }
  }

  @Test
  void mutatedControllersOpenOrFailWithATypedException() {
    long seed = seed();
    SplittableRandom random = new SplittableRandom(seed);
    for (int i = 0; i < MUTATED_OPENINGS; i++) {
      FakeFunction mutant = new FakeFunction();
      mutant.admin().first =
          (sqe, data) -> {
            if (data == null || random.nextInt(3) != 0) {
              mutant.admin().result(random.nextInt(20) == 0 ? random.nextInt() : 0x0003_0003);
              return FakeAdmin.NORMAL;
            }
            int status = identify(mutant.admin(), sqe, data);
            mutate(data, random, 1024);
            return status;
          };
      try (NvmeController controller = NvmeController.open(mutant, OPTIONS)) {
        controller.namespaces().forEach(n -> assertThat(n.toString()).isNotBlank());
      } catch (NvmeException | InvalidRequestException e) {
        assertThat(e.getMessage()).as("seed %d, opening %d", seed, i).isNotBlank();
      }
      assertThat(mutant.closed).as("seed %d, opening %d", seed, i).isTrue();
      assertThat(mutant.mappedRanges()).as("seed %d, opening %d", seed, i).isZero();
    }
  }

  private static int identify(FakeAdmin fake, MemorySegment sqe, MemorySegment data) {
    if (Sqe.opcode(sqe, 0) == AdminOpcode.IDENTIFY) {
      switch (Sqe.cdw10(sqe, 0)) {
        case Cns.CONTROLLER -> data.copyFrom(fake.controller.segment());
        case Cns.NAMESPACE -> data.copyFrom(fake.namespace.segment());
        case Cns.ACTIVE_NAMESPACES -> data.set(ValueLayout.JAVA_INT, 0, 1);
        default -> data.copyFrom(fake.descriptors.segment());
      }
    }
    return 0;
  }

  private static void mutate(MemorySegment page, SplittableRandom random, int limit) {
    for (int n = 1 + random.nextInt(4); n > 0; n--) {
      int bit = random.nextInt(limit * 8);
      byte old = page.get(ValueLayout.JAVA_BYTE, bit / 8);
      page.set(
          ValueLayout.JAVA_BYTE,
          bit / 8,
          random.nextBoolean() ? (byte) (old ^ 1 << bit % 8) : (byte) random.nextInt());
    }
  }

  private static long seed() {
    String given = System.getProperty("gpunvme.seed", "");
    return given.isEmpty() ? System.nanoTime() : Long.parseLong(given);
  }
}
