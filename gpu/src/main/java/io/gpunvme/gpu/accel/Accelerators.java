package io.gpunvme.gpu.accel;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.cuda.Cuda;
import io.gpunvme.cuda.CudaDevice;
import io.gpunvme.cuda.CudaException;
import io.gpunvme.cuda.CudaNotFoundException;
import io.gpunvme.nvme.pci.HostPaths;
import java.util.Map;
import java.util.Optional;
import java.util.function.Supplier;

/** The accelerators of this machine. */
public final class Accelerators {
  private static final String FIRST = "the first GPU that CUDA lists";

  private Accelerators() {}

  /**
   * An open accelerator and the reason for this choice.
   *
   * @param accelerator the caller's to close
   * @param reason one line, e.g. {@code the first GPU that CUDA lists}
   */
  public record Choice(Accelerator accelerator, String reason) {}

  /**
   * The accelerator that {@code GPUNVME_ACCELERATOR} names; without it the first GPU, or the CPU
   * stand-in if no GPU works, with the reason.
   *
   * @throws InvalidRequestException if the variable names none, or that of the NUMA node ({@link
   *     GpuAccelerator#NUMA_VARIABLE}) makes no sense
   * @throws CudaNotFoundException if it names a GPU and there is no driver
   * @throws CudaException if it names a GPU and that does not work
   */
  public static Choice best() {
    return open("auto");
  }

  /**
   * Opens an accelerator by its name.
   *
   * @param name as {@link AcceleratorName} reads it. {@code auto} is {@link #best}; {@code gpu} is
   *     the GPU that {@code GPUNVME_ACCELERATOR} names, or else the first
   * @throws InvalidRequestException if it is no name, or CUDA lists no such GPU
   * @throws CudaNotFoundException if a GPU is asked for and there is no driver
   * @throws CudaException if a GPU is asked for and there is none that works
   */
  public static Choice open(String name) {
    return open(name, System.getenv(), Cuda::load);
  }

  static Choice open(String name, Map<String, String> environment, Supplier<Cuda> cuda) {
    AcceleratorName asked = AcceleratorName.parse(name);
    return switch (asked.kind()) {
      case CPU -> new Choice(CpuAccelerator.open(), "the CPU stand-in was requested");
      case AUTO ->
          usual(environment)
              .map(u -> named(u, environment, cuda))
              .orElseGet(() -> firstOrStandIn(environment, cuda));
      case GPU ->
          usual(environment)
              .filter(AcceleratorName::gpu)
              .map(u -> named(u, environment, cuda))
              .orElseGet(() -> gpu(asked, environment, cuda, "a GPU was requested"));
      case THIS_GPU -> gpu(asked, environment, cuda, asked + " was requested");
    };
  }

  /** The one of those who name none; empty if the environment does not say. */
  private static Optional<AcceleratorName> usual(Map<String, String> environment) {
    String name = environment.getOrDefault(AcceleratorName.VARIABLE, "");
    if (name.isEmpty()) {
      return Optional.empty();
    }
    try {
      return Optional.of(AcceleratorName.parse(name))
          .filter(n -> n.kind() != AcceleratorName.Kind.AUTO);
    } catch (InvalidRequestException e) {
      throw new InvalidRequestException(AcceleratorName.VARIABLE + ": " + e.getMessage());
    }
  }

  private static Choice named(
      AcceleratorName usual, Map<String, String> environment, Supplier<Cuda> cuda) {
    String reason = AcceleratorName.VARIABLE + "=" + usual;
    return usual.gpu()
        ? gpu(usual, environment, cuda, reason)
        : new Choice(CpuAccelerator.open(), reason);
  }

  private static Choice gpu(
      AcceleratorName name, Map<String, String> environment, Supplier<Cuda> cuda, String reason) {
    CudaDevice device = name.device(cuda.get());
    return new Choice(GpuAccelerator.open(device, environment, HostPaths.host()), reason);
  }

  private static Choice firstOrStandIn(Map<String, String> environment, Supplier<Cuda> cuda) {
    try {
      return new Choice(
          GpuAccelerator.open(cuda.get().device(0), environment, HostPaths.host()), FIRST);
    } catch (CudaNotFoundException e) {
      // Where it was looked for fills lines, and many machines have none.
      return new Choice(
          CpuAccelerator.open(), "no GPU: " + e.summary() + " (gpunvme doctor says more)");
    } catch (CudaException e) {
      return new Choice(CpuAccelerator.open(), "no GPU: " + e.getMessage());
    }
  }
}
