package io.gpunvme.nvme.driver;

import io.gpunvme.nvme.ControllerFatalException;
import io.gpunvme.nvme.DeviceGoneException;
import io.gpunvme.nvme.pci.Bar;
import io.gpunvme.nvme.spec.Aqa;
import io.gpunvme.nvme.spec.Cap;
import io.gpunvme.nvme.spec.Cc;
import io.gpunvme.nvme.spec.Crto;
import io.gpunvme.nvme.spec.Csts;
import io.gpunvme.nvme.spec.Registers;
import io.gpunvme.nvme.spec.Vs;

/** The controller's registers in BAR0 by name (Base 2.0, 3.1.3). Safe for all threads. */
final class ControllerRegisters {
  private final Bar bar;

  ControllerRegisters(Bar bar) {
    this.bar = bar;
  }

  Bar bar() {
    return bar;
  }

  Cap cap() {
    return new Cap(bar.read64(Registers.CAP));
  }

  Vs version() {
    return new Vs(bar.read32(Registers.VS));
  }

  Cc cc() {
    return new Cc(bar.read32(Registers.CC));
  }

  void cc(Cc value) {
    bar.write32(Registers.CC, value.value());
  }

  Csts csts() {
    return new Csts(bar.read32(Registers.CSTS));
  }

  Crto crto() {
    return new Crto(bar.read32(Registers.CRTO));
  }

  void adminQueues(Aqa sizes, long submission, long completion) {
    bar.write32(Registers.AQA, sizes.value());
    bar.write64(Registers.ASQ, submission);
    bar.write64(Registers.ACQ, completion);
  }

  /** Whether waiting longer is pointless: the device is gone or reports a fatal error. */
  boolean troubled() {
    Csts csts = csts();
    return csts.gone() || csts.isSet(Csts.CFS);
  }

  /**
   * Looks at CSTS once.
   *
   * @param during what the caller is doing, for the message
   */
  void requireAlive(String during) {
    Csts csts = csts();
    if (csts.gone()) {
      throw new DeviceGoneException(
          during + ": CSTS reads all ones; the device was removed, lost power or its link is down");
    }
    if (csts.isSet(Csts.CFS)) {
      throw new ControllerFatalException(
          during + ": the controller reports a fatal error (CSTS.CFS); " + describe());
    }
  }

  String describe() {
    return "CC %08Xh, CSTS %08Xh".formatted(cc().value(), csts().value());
  }
}
