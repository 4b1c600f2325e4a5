package io.gpunvme.gpu.queue;

import com.google.gson.JsonObject;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.cuda.CudaException;
import io.gpunvme.cuda.GpuDirect;
import io.gpunvme.cuda.WritesOrdering;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.accel.HostMemoryKind;
import io.gpunvme.nvme.DmaMappingException;
import io.gpunvme.nvme.NvmeException;
import io.gpunvme.nvme.memory.BusMapper;
import io.gpunvme.nvme.pci.PciFunction;
import io.gpunvme.nvme.spec.Registers;
import java.util.EnumMap;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * The placements that an accelerator and an SSD can really use together, found by a trial.
 * Immutable.
 */
public final class Placements {
  private static final int PAGE = 4096;

  private final String accelerator;
  private final String function;
  private final Map<Placement, String> reasons;
  private final @Nullable GpuDirect gpuDirect;
  private final Map<Placement, CompletionPlace> completions = new EnumMap<>(Placement.class);

  private Placements(
      Accelerator accelerator,
      PciFunction function,
      Map<Placement, String> reasons,
      @Nullable GpuDirect gpuDirect) {
    this.accelerator = accelerator.name();
    this.function = function.name();
    this.reasons = reasons;
    this.gpuDirect = gpuDirect;
    for (Placement placement : Placement.values()) {
      completions.put(placement, CompletionPlace.of(placement, accelerator.gpu(), function));
    }
  }

  /**
   * Tries each placement with a page of memory and the first doorbells, and releases both. Sends no
   * command and touches no doorbell.
   */
  public static Placements probe(Accelerator accelerator, PciFunction function) {
    accelerator.servePinned(function);
    Map<Placement, String> reasons = new EnumMap<>(Placement.class);
    GpuDirect gpuDirect =
        accelerator.cuda().map(gpu -> gpu.context().device().gpuDirect()).orElse(null);
    if (gpuDirect != null) {
      String doorbells = doorbellProblem(accelerator, function);
      String host = doorbells == null ? memoryProblem(accelerator, function, true) : doorbells;
      put(reasons, Placement.HOST, host);
      String remote = host == null ? memoryProblem(accelerator, function, false) : host;
      String visible = remote == null ? visibilityProblem(gpuDirect, function) : remote;
      put(reasons, Placement.VRAM_DATA, visible);
      put(reasons, Placement.VRAM, visible);
    } else {
      for (Placement placement : Placement.values()) {
        reasons.put(placement, "no GPU: the accelerator is " + accelerator.name());
      }
    }
    return new Placements(accelerator, function, reasons, gpuDirect);
  }

  private static void put(
      Map<Placement, String> reasons, Placement placement, @Nullable String reason) {
    if (reason != null) {
      reasons.put(placement, reason);
    }
  }

  private static @Nullable String doorbellProblem(Accelerator accelerator, PciFunction function) {
    HostMemoryKind kind = function.polled() ? HostMemoryKind.MEMORY : HostMemoryKind.REGISTERS;
    try {
      accelerator
          .mapHost(function.bar(0).peerMemory(Registers.DOORBELLS, 2L * Long.BYTES), kind)
          .close();
      return null;
    } catch (NvmeException | InvalidRequestException e) {
      return "the GPU cannot get the doorbells: " + e.getMessage();
    }
  }

  private static @Nullable String memoryProblem(
      Accelerator accelerator, BusMapper controller, boolean host) {
    try (DeviceBuffer page = host ? accelerator.allocatePinned(PAGE) : accelerator.allocate(PAGE)) {
      page.mapFor(controller);
      return null;
    } catch (DmaMappingException e) {
      return "the controller cannot get %s memory: %s"
          .formatted(host ? "pinned host" : "GPU", e.getMessage());
    } catch (CudaException e) {
      return "no %s memory: %s".formatted(host ? "pinned host" : "GPU", e.getMessage());
    }
  }

  /**
   * An embedded controller's CUDA copies are visible when they end; writes over PCIe may not be.
   */
  private static @Nullable String visibilityProblem(GpuDirect direct, PciFunction function) {
    if (function.polled() || direct.ordering() != WritesOrdering.NONE) {
      return null;
    }
    return "running kernels do not see data that the SSD writes into GPU memory without a"
        + " flush (GPU_DIRECT_RDMA_WRITES_ORDERING is NONE)";
  }

  /** Whether the controller can reach the accelerator's own memory. */
  public static boolean reachable(Accelerator accelerator, PciFunction function) {
    return accelerator.gpu() && memoryProblem(accelerator, function, false) == null;
  }

  /** Whether a placement works. */
  public boolean possible(Placement placement) {
    return !reasons.containsKey(placement);
  }

  /** Why a placement does not work, or null if it does. */
  public @Nullable String reason(Placement placement) {
    return reasons.get(placement);
  }

  /** Where the completion queues of a placement lie, and why. */
  public CompletionPlace completions(Placement placement) {
    return Objects.requireNonNull(completions.get(placement));
  }

  /** What the GPU can do for devices that reach its memory; null without a GPU. */
  public @Nullable GpuDirect gpuDirect() {
    return gpuDirect;
  }

  /** All of it as one JSON object. */
  public JsonObject toJson() {
    JsonObject json = new JsonObject();
    json.addProperty("accelerator", accelerator);
    json.addProperty("device", function);
    JsonObject placements = new JsonObject();
    for (Placement placement : Placement.values()) {
      JsonObject one = new JsonObject();
      one.addProperty("possible", possible(placement));
      one.addProperty("reason", reason(placement));
      one.addProperty("completions", completions(placement).toString());
      placements.add(placement.toString(), one);
    }
    json.add("placements", placements);
    GpuDirect direct = gpuDirect;
    if (direct != null) {
      JsonObject one = new JsonObject();
      one.addProperty("rdma", direct.rdma());
      one.addProperty("dma_buf", direct.dmaBuf());
      one.addProperty("writes_ordering", direct.ordering().name());
      one.addProperty("host_flush", direct.hostFlush());
      json.add("gpu_direct", one);
    }
    return json;
  }

  /** One line for each placement. */
  @Override
  public String toString() {
    StringBuilder text = new StringBuilder();
    for (Placement placement : Placement.values()) {
      String reason = reason(placement);
      text.append(
          "%-9s  %s%n"
              .formatted(
                  placement, reason == null ? "possible; " + completions(placement) : reason));
    }
    GpuDirect direct = gpuDirect;
    if (direct != null) {
      text.append("%-9s  %s%n".formatted("GPUDirect", direct));
    }
    return text.toString();
  }
}
