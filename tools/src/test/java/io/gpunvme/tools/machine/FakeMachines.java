package io.gpunvme.tools.machine;

import io.gpunvme.testing.FakeMachine;

/** Made-up machines, as {@link Machine} reads them. */
public final class FakeMachines {
  private FakeMachines() {}

  public static Machine read(FakeMachine machine) {
    return Machine.read(machine.paths(), machine.root(), machine::mayOpen);
  }
}
