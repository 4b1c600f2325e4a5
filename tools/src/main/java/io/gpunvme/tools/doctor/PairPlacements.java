package io.gpunvme.tools.doctor;

import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.nvme.pci.PciAddress;
import io.gpunvme.tools.machine.Machine;
import io.gpunvme.tools.machine.MachineFunction;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/**
 * The placements in which a GPU could drive an SSD, as far as looking tells. It is the doctor's
 * findings, asked for one GPU and one SSD; a trial ({@code gpunvme check-p2p}) knows better.
 */
public final class PairPlacements {
  /** What an SSD's present driver is in the way of: {@code gpunvme bind} changes it. */
  private static final Set<String> DRIVER =
      Set.of("ssd-kernel-driver", "ssd-no-driver", "ssd-vfio", "ssd-kmod");

  private static final List<String> KINDS = List.of("kmod:", "vfio:", "sysfs:");

  private final Machine machine;
  private final List<Finding> general = new ArrayList<>();

  /** For all pairs of a machine whose GPUs CUDA lists like this. */
  public PairPlacements(Machine machine, CudaView cuda) {
    this.machine = machine;
    general.addAll(SystemChecks.of(machine));
    general.addAll(GpuChecks.of(machine, cuda));
  }

  /** Whether a placement can work. */
  public enum Answer {
    /** Nothing known is in its way. */
    OPEN,
    /** Only the SSD's present driver is. */
    AFTER_BIND,
    /** Something else is. */
    BLOCKED;

    /** In lower case, {@code after_bind}. */
    @Override
    public String toString() {
      return name().toLowerCase(Locale.ROOT);
    }
  }

  /**
   * What is known about a placement of a pair.
   *
   * @param answer whether it can work
   * @param reason the address to open, the command to run first, or what is in the way
   */
  public record Verdict(Answer answer, String reason) {}

  /** The placements of a GPU and an SSD. */
  public Map<Placement, Verdict> of(MachineFunction gpu, MachineFunction ssd) {
    // What is about the SSD says more than what holds for the whole machine.
    List<Finding> findings = new ArrayList<>(SsdChecks.of(machine, ssd));
    general.stream().filter(f -> about(f, gpu)).forEach(findings::add);
    Map<Placement, Verdict> verdicts = new EnumMap<>(Placement.class);
    for (Placement placement : Placement.values()) {
      verdicts.put(placement, verdict(findings, placement, ssd));
    }
    return verdicts;
  }

  /** Not those about another GPU. */
  private static boolean about(Finding finding, MachineFunction gpu) {
    Optional<PciAddress> subject = PciAddress.find(finding.subject());
    return subject.isEmpty() || subject.get().equals(gpu.address());
  }

  private static Verdict verdict(List<Finding> findings, Placement placement, MachineFunction ssd) {
    List<Way> ways =
        KINDS.stream()
            .map(kind -> Way.byGpu(kind, placement.toString()))
            .sorted((a, b) -> Boolean.compare(!preferred(a, placement), !preferred(b, placement)))
            .toList();
    for (Way way : ways) {
      if (obstacles(findings, way).isEmpty()) {
        String option = way.storage().equals("sysfs:") ? ",unsafe=true" : "";
        return new Verdict(Answer.OPEN, "as " + way.storage() + ssd.address() + option);
      }
    }
    for (Way way : ways) {
      boolean unsafe = way.storage().equals("sysfs:");
      if (!unsafe && obstacles(findings, way).stream().allMatch(f -> DRIVER.contains(f.id()))) {
        String option = way.storage().equals("kmod:") ? " --kmod" : "";
        return new Verdict(Answer.AFTER_BIND, "gpunvme bind " + ssd.address() + option);
      }
    }
    String cause =
        obstacles(findings, ways.getFirst()).stream()
            .filter(f -> !DRIVER.contains(f.id()))
            .map(Finding::cause)
            .findFirst()
            .orElse("its driver");
    return new Verdict(Answer.BLOCKED, cause);
  }

  /** GPU memory takes the kernel module; for all else VFIO is the better choice. */
  private static boolean preferred(Way way, Placement placement) {
    return way.storage().equals(placement == Placement.HOST ? "vfio:" : "kmod:");
  }

  private static List<Finding> obstacles(List<Finding> findings, Way way) {
    return findings.stream().filter(f -> f.blocks().contains(way)).toList();
  }
}
