package io.gpunvme.cuda;

import java.util.List;
import java.util.Optional;

/** A kernel of a module, usable until the module is closed. Safe for all threads. */
public final class CudaFunction {
  private final CudaModule module;
  private final String name;
  private final long handle;
  private final Optional<List<Long>> parameterSizes;

  CudaFunction(CudaModule module, String name, long handle, Optional<List<Long>> parameterSizes) {
    this.module = module;
    this.name = name;
    this.handle = handle;
    this.parameterSizes = parameterSizes;
  }

  /** Its name in the module. */
  public String name() {
    return name;
  }

  CudaModule module() {
    return module;
  }

  long handle() {
    return handle;
  }

  /** A property of the compiled code. */
  public int attribute(FunctionAttribute attribute) {
    module.begin();
    try {
      return module.api().functions().attribute(handle, attribute);
    } finally {
      module.end();
    }
  }

  /**
   * How many blocks of a launch one multiprocessor can run at the same time.
   *
   * @param blockSize threads of a block
   * @param sharedBytes dynamic shared memory of a block
   */
  public int maxActiveBlocks(int blockSize, long sharedBytes) {
    module.begin();
    try {
      return module.api().functions().maxActiveBlocks(handle, blockSize, sharedBytes);
    } finally {
      module.end();
    }
  }

  /** Lets launches have up to {@code bytes} of dynamic shared memory, needed above 48 KiB. */
  public void allowDynamicShared(int bytes) {
    module.begin();
    try {
      module.api().functions().allowDynamicShared(handle, bytes);
    } finally {
      module.end();
    }
  }

  /** The driver reads as many values as the kernel has parameters, whatever it is given. */
  void requireMatch(KernelArguments arguments) {
    List<Long> given = arguments.sizes();
    if (parameterSizes.isPresent() && !parameterSizes.get().equals(given)) {
      throw new IllegalArgumentException(
          "kernel "
              + name
              + " has parameters of "
              + parameterSizes.get()
              + " bytes, the launch has arguments of "
              + given);
    }
  }
}
