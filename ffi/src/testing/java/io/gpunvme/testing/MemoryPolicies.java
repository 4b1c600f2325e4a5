package io.gpunvme.testing;

import io.gpunvme.ffi.Errno;
import io.gpunvme.ffi.NumaCalls;
import io.gpunvme.ffi.PosixException;
import org.junit.jupiter.api.Assumptions;

/** What tests of memory policies need of this process; without it, they are skipped. */
public final class MemoryPolicies {
  private MemoryPolicies() {}

  /** The kernel has policies, and nobody has given this process one. */
  public static void need() {
    try {
      if (!NumaCalls.hasUsualMemory()) {
        Assumptions.abort("this process has a memory policy");
      }
    } catch (PosixException e) {
      Assumptions.abort("this process may have no memory policy: " + e.getMessage());
    }
  }

  /** Also, memory of node 0 can be preferred: every machine has it, but not every cpuset. */
  public static void needNode0() {
    need();
    try {
      NumaCalls.preferNode(0);
      NumaCalls.useUsualMemory();
    } catch (PosixException e) {
      Assumptions.abort(
          e.errno() == Errno.EINVAL
              ? "this process may have no memory of node 0"
              : "this process may have no memory policy: " + e.getMessage());
    }
  }
}
