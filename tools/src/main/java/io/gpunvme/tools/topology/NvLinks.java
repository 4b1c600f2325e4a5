package io.gpunvme.tools.topology;

import io.gpunvme.cuda.CudaFunctionMissingException;
import io.gpunvme.cuda.CudaNotFoundException;
import io.gpunvme.cuda.nvml.NvLink;
import io.gpunvme.cuda.nvml.Nvml;
import io.gpunvme.cuda.nvml.NvmlException;
import io.gpunvme.nvme.pci.PciAddress;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * The NVLinks of a machine.
 *
 * @param problem why they are not known; empty if they are
 * @param bundles all links of two ends together, in the order in which NVML tells them
 */
public record NvLinks(String problem, List<Bundle> bundles) {
  /** Copies the list. */
  public NvLinks {
    bundles = List.copyOf(bundles);
  }

  /**
   * All links between two GPUs, or between a GPU and the NVSwitches.
   *
   * @param gpu the GPU with the lower address
   * @param peer the other GPU; null for the NVSwitches
   * @param links how many
   * @param gigabytesPerSecond of all in one direction; 0 if not known
   */
  public record Bundle(
      PciAddress gpu, @Nullable PciAddress peer, int links, double gigabytesPerSecond) {}

  /** Not known. */
  public static NvLinks unknown(String problem) {
    return new NvLinks(problem, List.of());
  }

  /** Asks NVIDIA's management library. */
  public static NvLinks look() {
    try {
      return of(Nvml.load().links());
    } catch (CudaNotFoundException e) {
      return unknown(e.summary());
    } catch (NvmlException | CudaFunctionMissingException e) {
      return unknown(String.valueOf(e.getMessage()));
    }
  }

  /** The two ends of links; the second is null for NVSwitches. */
  private record Ends(PciAddress gpu, @Nullable PciAddress peer) {}

  static NvLinks of(List<NvLink> links) {
    Map<Ends, List<NvLink>> groups = new LinkedHashMap<>();
    for (NvLink link : links) {
      ends(link).ifPresent(e -> groups.computeIfAbsent(e, _ -> new ArrayList<>()).add(link));
    }
    List<Bundle> bundles = new ArrayList<>();
    groups.forEach(
        (ends, all) -> {
          double sum = all.stream().mapToDouble(NvLink::gigabytesPerSecond).sum();
          boolean known = all.stream().allMatch(link -> link.gigabytesPerSecond() > 0);
          bundles.add(new Bundle(ends.gpu, ends.peer, all.size(), known ? sum : 0));
        });
    return new NvLinks("", bundles);
  }

  /** A link between GPUs is told by both: it counts where the lower address tells it. */
  private static Optional<Ends> ends(NvLink link) {
    Optional<PciAddress> gpu = PciAddress.find(link.gpu());
    return switch (link.end()) {
      case SWITCH -> gpu.map(own -> new Ends(own, null));
      case GPU ->
          gpu.flatMap(
              own ->
                  PciAddress.find(link.remote())
                      .filter(peer -> own.compareTo(peer) < 0)
                      .map(peer -> new Ends(own, peer)));
      case OTHER -> Optional.empty();
    };
  }

  /** Whether they are known. */
  public boolean known() {
    return problem.isEmpty();
  }

  /** The links between two GPUs; those to NVSwitches, the fewer of both, if there are no others. */
  Optional<Bundle> between(PciAddress a, PciAddress b) {
    Optional<Bundle> direct =
        bundles.stream()
            .filter(x -> x.peer != null)
            .filter(
                x -> (x.gpu.equals(a) && b.equals(x.peer)) || (x.gpu.equals(b) && a.equals(x.peer)))
            .findFirst();
    return direct.or(
        () -> toSwitches(a).flatMap(x -> toSwitches(b).map(y -> x.links <= y.links ? x : y)));
  }

  private Optional<Bundle> toSwitches(PciAddress gpu) {
    return bundles.stream().filter(x -> x.peer == null && x.gpu.equals(gpu)).findFirst();
  }
}
