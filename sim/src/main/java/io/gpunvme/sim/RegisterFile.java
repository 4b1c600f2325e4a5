package io.gpunvme.sim;

import io.gpunvme.nvme.spec.Aqa;
import io.gpunvme.nvme.spec.Cap;
import io.gpunvme.nvme.spec.Cc;
import io.gpunvme.nvme.spec.Crto;
import io.gpunvme.nvme.spec.Csts;
import io.gpunvme.nvme.spec.Registers;
import io.gpunvme.nvme.spec.Vs;
import java.util.function.BooleanSupplier;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * The controller's registers below the doorbells (Base 2.0, 3.1.3), in accesses of 4 bytes: values,
 * reserved bits, and what a write sets off.
 *
 * <p>Reads take no lock. Writes are made one after the other; those that change the controller's
 * state take the locks of all workers inside this object's monitor.
 */
final class RegisterFile {
  /** Reserved bits of CC, and CRIME, which this controller does not offer, read as zero. */
  private static final int CC_MASK = 0x00FF_FFF1;

  private static final int AQA_MASK = 0x0FFF_0FFF;
  private static final int PAGE_MASK = 0xFFF;
  private static final int CMBMSC_MASK = 0xFFFF_F003;
  private static final int CSS_NVM = 1;
  private static final int CRMS_WITH_MEDIA = 1;
  private static final int HIGH = Integer.BYTES;

  private final Cap cap;
  private final Vs version;
  private final ControllerStatus status;
  private final Transitions transitions;
  private final Interrupts interrupts;
  private final @Nullable Cmb cmb;
  private final LongSupplier clock;
  private final BooleanSupplier silent;
  private final SimConfig config;

  // Volatile: a host thread may read what another one wrote.
  private volatile int cc;
  private volatile int aqa;
  private volatile long asq;
  private volatile long acq;

  RegisterFile(
      SimConfig config,
      LongSupplier clock,
      ControllerStatus status,
      Interrupts interrupts,
      Transitions transitions,
      BooleanSupplier silent,
      @Nullable Cmb cmb) {
    this.clock = clock;
    this.silent = silent;
    this.config = config;
    this.transitions = transitions;
    this.cmb = cmb;
    this.status = status;
    this.interrupts = interrupts;
    version = config.version();
    cap =
        new Cap(0)
            .with(Cap.MQES, config.mqes())
            .with(Cap.CQR, config.contiguousQueues())
            .with(Cap.TO, config.to())
            .with(Cap.DSTRD, config.dstrd())
            .with(Cap.NSSRS, config.subsystemReset())
            .with(Cap.CSS, CSS_NVM)
            .with(Cap.MPSMAX, config.mpsMax())
            .with(Cap.CMBS, cmb != null)
            .with(Cap.CRMS, hasReadyModes() ? CRMS_WITH_MEDIA : 0);
  }

  private boolean hasReadyModes() {
    return version.isAtLeast(Vs.V2_0);
  }

  Cap cap() {
    return cap;
  }

  Cc cc() {
    return new Cc(cc);
  }

  Aqa aqa() {
    return new Aqa(aqa);
  }

  long asq() {
    return asq;
  }

  long acq() {
    return acq;
  }

  /** Reads a register at a 4-byte aligned offset. */
  int read(int offset) {
    return switch (offset) {
      case Registers.CAP -> (int) cap.value();
      case Registers.CAP + HIGH -> high(cap.value());
      case Registers.VS -> version.value();
      case Registers.INTMS, Registers.INTMC -> interrupts.masked();
      case Registers.CC -> cc;
      case Registers.CSTS -> status.csts(clock.getAsLong());
      case Registers.AQA -> aqa;
      case Registers.ASQ -> (int) asq;
      case Registers.ASQ + HIGH -> high(asq);
      case Registers.ACQ -> (int) acq;
      case Registers.ACQ + HIGH -> high(acq);
      case Registers.CRTO ->
          hasReadyModes() ? new Crto(0).with(Crto.CRWMT, config.to()).value() : 0;
      default -> cmb == null ? 0 : readCmb(cmb, offset);
    };
  }

  private static int readCmb(Cmb cmb, int offset) {
    return switch (offset) {
      case Registers.CMBLOC -> cmb.cmbloc();
      case Registers.CMBSZ -> cmb.cmbsz();
      case Registers.CMBMSC -> (int) cmb.cmbmsc();
      case Registers.CMBMSC + HIGH -> high(cmb.cmbmsc());
      case Registers.CMBSTS -> cmb.cmbsts();
      default -> 0;
    };
  }

  /** Writes a register at a 4-byte aligned offset; read-only and reserved ones ignore it. */
  synchronized void write(int offset, int value) {
    if (silent.getAsBoolean()) {
      return;
    }
    switch (offset) {
      case Registers.INTMS -> interrupts.mask(value);
      case Registers.INTMC -> interrupts.unmask(value);
      case Registers.CC -> writeCc(value & CC_MASK);
      case Registers.CSTS -> {
        if ((value & Csts.NSSRO.mask()) != 0) {
          status.subsystemReset(false);
        }
      }
      case Registers.NSSR -> {
        if (cap.isSet(Cap.NSSRS) && value == Registers.NSSR_MAGIC) {
          resetAll();
          status.subsystemReset(true);
        }
      }
      case Registers.AQA -> aqa = value & AQA_MASK;
      case Registers.ASQ -> asq = withLow(asq, value & ~PAGE_MASK);
      case Registers.ASQ + HIGH -> asq = withHigh(asq, value);
      case Registers.ACQ -> acq = withLow(acq, value & ~PAGE_MASK);
      case Registers.ACQ + HIGH -> acq = withHigh(acq, value);
      default -> {
        if (cmb != null) {
          writeCmb(cmb, offset, value);
        }
      }
    }
  }

  private static void writeCmb(Cmb cmb, int offset, int value) {
    switch (offset) {
      case Registers.CMBMSC -> cmb.cmbmsc(withLow(cmb.cmbmsc(), value & CMBMSC_MASK));
      case Registers.CMBMSC + HIGH -> cmb.cmbmsc(withHigh(cmb.cmbmsc(), value));
      default -> {}
    }
  }

  private void writeCc(int value) {
    Cc old = cc();
    Cc fresh = new Cc(value);
    cc = value;
    if (fresh.isSet(Cc.EN) && !old.isSet(Cc.EN)) {
      transitions.enable(this);
    } else if (!fresh.isSet(Cc.EN) && old.isSet(Cc.EN)) {
      transitions.disable();
    }
    if (fresh.get(Cc.SHN) != Cc.SHN_NONE && old.get(Cc.SHN) == Cc.SHN_NONE) {
      transitions.shutDown();
    }
  }

  /** Power-on state of everything behind the registers: function level reset. */
  synchronized void resetAll() {
    if (status.isClosed()) {
      return;
    }
    transitions.reset();
    cc = 0;
    aqa = 0;
    asq = 0;
    acq = 0;
    if (cmb != null) {
      cmb.reset();
    }
  }

  private static int high(long value) {
    return (int) (value >>> Integer.SIZE);
  }

  private static long withLow(long value, int low) {
    return value & 0xFFFF_FFFF_0000_0000L | Integer.toUnsignedLong(low);
  }

  private static long withHigh(long value, int high) {
    return value & 0xFFFF_FFFFL | (long) high << Integer.SIZE;
  }
}
