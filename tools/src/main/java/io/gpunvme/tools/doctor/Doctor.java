package io.gpunvme.tools.doctor;

import io.gpunvme.tools.machine.Machine;
import java.util.ArrayList;
import java.util.List;

/**
 * Looks at a machine and finds the obstacles to each way of moving data. It only looks: whether a
 * GPU really can ring an SSD's doorbell takes a trial, with {@code gpunvme check-p2p}.
 */
public final class Doctor {
  private Doctor() {}

  /**
   * All findings about a machine, its GPUs as CUDA lists them, and the means of this process to
   * read files.
   */
  public static Diagnosis examine(Machine machine, CudaView cuda, FileView files) {
    List<Finding> findings = new ArrayList<>();
    findings.addAll(SystemChecks.of(machine));
    findings.addAll(SsdChecks.of(machine));
    findings.addAll(GpuChecks.of(machine, cuda));
    findings.addAll(PairChecks.of(machine));
    findings.addAll(FileChecks.of(machine, cuda, files));
    findings.addAll(OwnCuFileChecks.of(cuda, files));
    return new Diagnosis(findings);
  }

  /** Whether a GPU is there, by the bus or by CUDA. */
  static boolean hasGpu(Machine machine, CudaView cuda) {
    return !machine.gpus().isEmpty() || !cuda.gpus().isEmpty();
  }
}
