package io.gpunvme.tools.doctor;

import io.gpunvme.cuda.ComputeCapability;
import io.gpunvme.cuda.Cuda;
import io.gpunvme.cuda.CudaDevice;
import io.gpunvme.cuda.CudaException;
import io.gpunvme.cuda.CudaNotFoundException;
import io.gpunvme.cuda.GpuDirect;
import java.util.ArrayList;
import java.util.List;

/**
 * This machine as CUDA shows it.
 *
 * @param installed whether the driver's library is there
 * @param problem why CUDA does not work, empty if it does
 * @param version of CUDA that the driver is for, empty if it does not work
 * @param gpus that it lists
 */
public record CudaView(boolean installed, String problem, String version, List<Gpu> gpus) {
  /** Copies the list. */
  public CudaView {
    gpus = List.copyOf(gpus);
  }

  /**
   * A GPU.
   *
   * @param name as the driver says
   * @param address on the PCI bus, as the driver writes it
   * @param capability what code it runs
   * @param direct what it can do for devices that reach its memory
   */
  public record Gpu(String name, String address, ComputeCapability capability, GpuDirect direct) {
    static Gpu of(CudaDevice device) {
      return new Gpu(
          device.name(), device.pciBusId(), device.computeCapability(), device.gpuDirect());
    }
  }

  /** Asks the driver, if there is one. No context is made, no memory taken. */
  public static CudaView look() {
    try {
      Cuda cuda = Cuda.load();
      List<Gpu> gpus = new ArrayList<>();
      for (int i = 0; i < cuda.deviceCount(); i++) {
        gpus.add(Gpu.of(cuda.device(i)));
      }
      return new CudaView(true, "", cuda.driverVersion().toString(), gpus);
    } catch (CudaNotFoundException e) {
      return new CudaView(false, String.valueOf(e.getMessage()), "", List.of());
    } catch (CudaException e) {
      return new CudaView(true, String.valueOf(e.getMessage()), "", List.of());
    }
  }
}
