package io.gpunvme.gpu.accel;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.cuda.CudaException;
import io.gpunvme.cuda.CudaNotFoundException;

/** The accelerators of this machine. */
public final class Accelerators {
  private Accelerators() {}

  /**
   * An open accelerator and the reason for this choice.
   *
   * @param accelerator the caller's to close
   * @param reason one line, e.g. {@code the first GPU that CUDA lists}
   */
  public record Choice(Accelerator accelerator, String reason) {}

  /** The first GPU, or the CPU stand-in if no GPU works, with the reason. */
  public static Choice best() {
    try {
      return new Choice(GpuAccelerator.open(), "the first GPU that CUDA lists");
    } catch (CudaNotFoundException e) {
      // Where it was looked for fills lines, and many machines have none.
      return new Choice(
          CpuAccelerator.open(), "no GPU: " + e.summary() + " (gpunvme doctor says more)");
    } catch (CudaException e) {
      return new Choice(CpuAccelerator.open(), "no GPU: " + e.getMessage());
    }
  }

  /**
   * Opens an accelerator by its kind.
   *
   * @param kind {@code gpu}, {@code cpu}, or {@code auto} for {@link #best}
   * @throws InvalidRequestException for another kind
   * @throws CudaNotFoundException if a GPU is asked for and there is no driver
   * @throws CudaException if a GPU is asked for and there is none that works
   */
  public static Choice open(String kind) {
    return switch (kind) {
      case "auto" -> best();
      case "gpu" -> new Choice(GpuAccelerator.open(), "a GPU was requested");
      case "cpu" -> new Choice(CpuAccelerator.open(), "the CPU stand-in was requested");
      default ->
          throw new InvalidRequestException(
              "no accelerator '" + kind + "': must be auto, gpu or cpu");
    };
  }
}
