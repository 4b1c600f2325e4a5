package io.gpunvme.capi;

import io.gpunvme.cuda.CallersContext;
import io.gpunvme.cuda.Cuda;
import io.gpunvme.cuda.CudaException;
import io.gpunvme.cuda.CudaNotFoundException;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.AcceleratorName;
import io.gpunvme.gpu.accel.Accelerators;
import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The accelerators of this process, opened when they are first asked for and kept. Safe for all
 * threads.
 */
final class LibraryMachine {
  private final Map<String, Memory> memories = new HashMap<>();

  /** Null as long as no GPU was asked for. */
  private volatile @Nullable Cuda cuda;

  /**
   * The memory of an accelerator.
   *
   * @param kind a name, as {@link AcceleratorName} reads it
   */
  synchronized Memory memory(String kind) {
    Memory there = memories.get(kind);
    if (there == null) {
      there = open(kind);
      memories.put(kind, there);
    }
    return there;
  }

  /** Remembers the CUDA context of this thread; null if nothing here can change it. */
  @Nullable CallersContext keepCallersContext() {
    Cuda there = cuda;
    return there == null ? null : there.keepCallersContext();
  }

  private Memory open(String kind) {
    try (CallersContext _ = opening(kind)) {
      return memoryOf(kind);
    }
  }

  /** The same before there is anything that uses CUDA. */
  private @Nullable CallersContext opening(String kind) {
    if (!kind.equals("cpu") && cuda == null) {
      try {
        cuda = Cuda.load();
      } catch (CudaNotFoundException | CudaException e) {
        return null; // whoever needs it says so
      }
    }
    return keepCallersContext();
  }

  private Memory memoryOf(String kind) {
    Accelerator opened = Accelerators.open(kind).accelerator();
    // Whatever name it was given, there is one for each device.
    String chosen =
        opened.cuda().map(gpu -> AcceleratorName.of(gpu.context().device())).orElse("cpu");
    Memory there = memories.get(chosen);
    if (there != null) {
      opened.close();
      return there;
    }
    Memory memory = new Memory(chosen, opened, ordinal -> memory(AcceleratorName.of(ordinal)));
    memories.put(chosen, memory);
    return memory;
  }
}
