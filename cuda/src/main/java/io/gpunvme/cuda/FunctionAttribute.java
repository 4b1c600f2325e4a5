package io.gpunvme.cuda;

/** Properties of a compiled kernel ({@code CUfunction_attribute}). */
public enum FunctionAttribute {
  /** Most threads of a block, given the kernel's needs. */
  MAX_THREADS_PER_BLOCK(0),
  /** Shared memory of a block in bytes, without the memory that a launch adds. */
  SHARED_SIZE_BYTES(1),
  /** Constant memory in bytes. */
  CONST_SIZE_BYTES(2),
  /** Local memory of a thread in bytes: spills and stack. */
  LOCAL_SIZE_BYTES(3),
  /** Registers of a thread. */
  NUM_REGS(4),
  /** PTX version it was compiled from, 10 * major + minor of the architecture. */
  PTX_VERSION(5),
  /** Architecture it was compiled for, 10 * major + minor. */
  BINARY_VERSION(6),
  /** Most shared memory that a launch may add, in bytes. */
  MAX_DYNAMIC_SHARED_SIZE_BYTES(8);

  private final int number;

  FunctionAttribute(int number) {
    this.number = number;
  }

  int number() {
    return number;
  }
}
