package io.gpunvme.tools.topology;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.cuda.ComputeCapability;
import io.gpunvme.cuda.GpuDirect;
import io.gpunvme.cuda.WritesOrdering;
import io.gpunvme.cuda.nvml.NvLink;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.nvme.pci.PciAddress;
import io.gpunvme.testing.FakeMachine;
import io.gpunvme.tools.doctor.CudaView;
import io.gpunvme.tools.doctor.PairPlacements;
import io.gpunvme.tools.machine.FakeMachines;
import io.gpunvme.tools.machine.Machine;
import io.gpunvme.tools.machine.MachineFunction;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Made-up machines, compared with what a person drew for them ({@link DrawnMachine}). */
final class TopologyTest {
  @TempDir Path root;

  @ParameterizedTest
  @ValueSource(
      strings = {
        "desktop",
        "laptop",
        "chipset",
        "degraded",
        "virtual",
        "nodeless",
        "sockets",
        "switch",
        "acs",
        "drivers",
        "domains",
        "storage",
        "dgx",
        "hostile"
      })
  void aMachineIsAsAPersonDrewIt(String name) {
    DrawnMachine drawn = DrawnMachine.read(name, root);
    Topology topology = topology(drawn);

    assertThat(topology.lines()).containsExactlyElementsOf(drawn.tree());
    assertThat(drawn.facts()).isNotEmpty();
    assertThat(facts(topology)).containsAll(drawn.facts());
  }

  static Topology topology(DrawnMachine drawn) {
    PairPlacements placements = new PairPlacements(drawn.machine(), cuda(drawn.machine()));
    return Topology.of(drawn.machine(), drawn.nvLinks(), placements, Topology.REQUESTS);
  }

  /** GeForce cards offer their memory to no other device. */
  private static CudaView cuda(Machine machine) {
    List<CudaView.Gpu> gpus = new ArrayList<>();
    for (MachineFunction gpu : machine.gpus()) {
      boolean peers = !gpu.model().contains("GeForce");
      gpus.add(
          new CudaView.Gpu(
              gpu.model(),
              gpu.address().toString(),
              new ComputeCapability(9, 0),
              new GpuDirect(peers, peers, WritesOrdering.OWNER, true)));
    }
    return new CudaView(true, "", "13.0", gpus);
  }

  // ---- the lines that a person's facts are compared with

  private static List<String> facts(Topology topology) {
    List<String> facts = new ArrayList<>();
    topology.pairs().forEach(pair -> pair(pair, facts));
    for (GpuWays ways : topology.gpus()) {
      NvLinks.Bundle nvlink = ways.nvlink();
      facts.add(
          "gpus %s %s: %s; %s"
              .formatted(
                  ways.a().address(),
                  ways.b().address(),
                  ways.way().route(),
                  nvlink == null
                      ? "no NVLink known"
                      : String.format(
                          Locale.ROOT,
                          "%d NVLinks, %.0f GB/s",
                          nvlink.links(),
                          nvlink.gigabytesPerSecond())));
    }
    for (SharedLink shared : topology.shared()) {
      facts.add(
          String.format(
              Locale.ROOT,
              "shared %s: %d SSDs, %d GPUs; link %.1f, SSDs %.1f%s",
              shared.function().address(),
              shared.ssds(),
              shared.gpus(),
              shared.gigabytesPerSecond(),
              shared.ssdGigabytesPerSecond(),
              shared.bottleneck() ? "; bottleneck" : ""));
    }
    choices(topology.choices(), facts);
    return facts;
  }

  private static void pair(PairWays pair, List<String> facts) {
    String both = pair.pair().gpu().address() + " " + pair.pair().ssd().address();
    facts.add(
        "pair %s: %s%s; direct %s (%s); host %s (%s); warm %s"
            .formatted(
                both,
                pair.pair().way().route(),
                pair.pair().way().meeting().map(at -> " " + at).orElse(""),
                pair.direct(),
                pair.direct().reason(),
                pair.host(),
                pair.host().reason(),
                pair.warm()));
    facts.add(
        "placements "
            + both
            + ": "
            + Arrays.stream(Placement.values())
                .map(placement -> placement + " " + pair.placements().get(placement).answer())
                .collect(Collectors.joining(", ")));
  }

  private static void choices(Choices choices, List<String> facts) {
    for (Choices.ForGpu choice : choices.gpus()) {
      facts.add(
          "gpu %s nearest %s: %s"
              .formatted(choice.gpu().address(), all(choice.nearest()), choice.reason()));
    }
    for (Choices.ForSsd choice : choices.ssds()) {
      MachineFunction gpu = choice.gpu();
      facts.add(
          "ssd %s at %s: %s; queues %d staging %d workers %d (%s)"
              .formatted(
                  choice.ssd().address(),
                  gpu == null ? "none" : gpu.address(),
                  choice.reason(),
                  choice.queues(),
                  choice.staging(),
                  choice.workers(),
                  choice.nodeReason()));
    }
    for (Choices.ForSet set : choices.sets()) {
      facts.add(
          "set %s of %s: %s (%s); %s"
              .formatted(
                  set.gpu().address(),
                  all(set.ssds()),
                  set.limit(),
                  set.limit().reason(),
                  set.units().stream()
                      .map(u -> u.requestBytes() + "=" + u.unitBytes() + "/" + u.busy())
                      .collect(Collectors.joining(" "))));
    }
  }

  private static String all(Collection<MachineFunction> functions) {
    return functions.stream().map(f -> f.address().toString()).collect(Collectors.joining(" "));
  }

  // ---- parts

  @Test
  void aMachineWithNothingIsDrawnToo() {
    Machine machine = FakeMachines.read(FakeMachine.laptopWithNothing(root));
    Topology topology = Topology.of(machine, NvLinks.unknown("not asked"), null, Topology.REQUESTS);

    assertThat(topology.lines()).containsExactly("host: no GPU, no SSD");
    assertThat(topology.pairs()).isEmpty();
    assertThat(topology.choices()).isEqualTo(new Choices(List.of(), List.of(), List.of()));
  }

  @Test
  void withoutALookThereAreNoPlacements() {
    Machine machine = FakeMachines.read(FakeMachine.server(root));

    assertThat(Topology.of(machine, NvLinks.unknown("x"), null, List.of()).pairs())
        .hasSize(8)
        .allSatisfy(pair -> assertThat(pair.placements()).isEmpty());
  }

  @Test
  void whatIsInTheWayOfAPlacementIsSaid() {
    DrawnMachine drawn = DrawnMachine.read("drivers", root);
    Map<String, String> reasons =
        topology(drawn).pairs().stream()
            .collect(
                Collectors.toMap(
                    p -> p.pair().gpu().address() + " " + p.pair().ssd().address(),
                    p -> p.placements().get(Placement.VRAM_DATA).reason()));

    assertThat(reasons)
        .containsEntry("0000:02:00.0 0000:04:00.0", "gpunvme bind 0000:04:00.0 --kmod")
        .containsEntry("0000:02:00.0 0000:06:00.0", "as kmod:0000:06:00.0")
        .containsEntry(
            "0000:02:00.0 0000:08:00.0", "/dev/nvme1n1 is mounted at /, the root file system");
    assertThat(reasons.get("0000:03:00.0 0000:06:00.0"))
        .startsWith("its driver offers GPU memory to no other device");
  }

  @ParameterizedTest
  @CsvSource({
    "1,        2, 131072,  1",
    "131072,   8, 131072,  1",
    "131073,   8, 131072,  2",
    "262144,   2, 131072,  2",
    "1048576,  8, 131072,  8",
    "1048576,  3, 262144,  3",
    "67108864, 4, 1048576, 4"
  })
  void aStripeUnitForEachLength(long request, int ssds, long unit, int busy) {
    StripeUnit chosen = StripeUnit.of(request, ssds);

    assertThat(chosen.unitBytes()).isEqualTo(unit);
    assertThat(chosen.busy()).isEqualTo(busy);
  }

  @Test
  void aRequestWithoutBytesIsRefused() {
    assertThatThrownBy(() -> StripeUnit.of(0, 2))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessage("a request of 0 bytes has no stripe unit");
  }

  @Test
  void linksBetweenGpusCountOnce() {
    String a = "00000000:01:00.0";
    String b = "00000000:02:00.0";
    NvLinks links =
        NvLinks.of(
            List.of(
                new NvLink(a, 0, 4, NvLink.End.GPU, b),
                new NvLink(a, 1, 4, NvLink.End.GPU, b),
                new NvLink(b, 0, 4, NvLink.End.GPU, a),
                new NvLink(b, 1, 4, NvLink.End.GPU, a),
                new NvLink(a, 2, 6, NvLink.End.SWITCH, ""),
                new NvLink(a, 3, 99, NvLink.End.SWITCH, ""),
                new NvLink(a, 4, 4, NvLink.End.OTHER, ""),
                new NvLink("nonsense", 4, 4, NvLink.End.SWITCH, "")));

    PciAddress first = PciAddress.parse("0000:01:00.0");
    PciAddress second = PciAddress.parse("0000:02:00.0");
    assertThat(links.known()).isTrue();
    assertThat(links.bundles())
        .containsExactlyInAnyOrder(
            new NvLinks.Bundle(first, second, 2, 50), new NvLinks.Bundle(first, null, 2, 0));
    assertThat(links.between(second, first)).contains(new NvLinks.Bundle(first, second, 2, 50));
  }
}
