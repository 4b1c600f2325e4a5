package io.gpunvme.cli;

import io.gpunvme.nvme.pci.Bar;
import io.gpunvme.nvme.spec.Aqa;
import io.gpunvme.nvme.spec.Cap;
import io.gpunvme.nvme.spec.Cc;
import io.gpunvme.nvme.spec.Cmbloc;
import io.gpunvme.nvme.spec.Cmbmsc;
import io.gpunvme.nvme.spec.Cmbsts;
import io.gpunvme.nvme.spec.Cmbsz;
import io.gpunvme.nvme.spec.Crto;
import io.gpunvme.nvme.spec.Csts;
import io.gpunvme.nvme.spec.FieldValue;
import io.gpunvme.nvme.spec.Registers;
import io.gpunvme.nvme.spec.Structure;
import io.gpunvme.nvme.spec.Vs;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.function.LongFunction;

/**
 * A register as it was read.
 *
 * @param bytes 4 or 8
 * @param fields empty for a register that is one number
 */
record Register(
    String name, int offset, int bytes, String meaning, long value, List<FieldValue> fields) {
  /** A register of BAR0, and how its value is taken apart. */
  private record Place(
      String name, int offset, int bytes, String meaning, LongFunction<Structure> decoder) {
    Register read(Bar bar) {
      long value =
          bytes == Long.BYTES ? bar.read64(offset) : Integer.toUnsignedLong(bar.read32(offset));
      return new Register(name, offset, bytes, meaning, value, decoder.apply(value).fields());
    }
  }

  private static final List<Place> PLACES =
      List.of(
          new Place("CAP", Registers.CAP, 8, "Controller Capabilities", Cap::new),
          word("VS", Registers.VS, "Version", v -> new Vs((int) v)),
          word("INTMS", Registers.INTMS, "Interrupt Mask Set", Register::number),
          word("INTMC", Registers.INTMC, "Interrupt Mask Clear", Register::number),
          word("CC", Registers.CC, "Controller Configuration", v -> new Cc((int) v)),
          word("CSTS", Registers.CSTS, "Controller Status", v -> new Csts((int) v)),
          word("NSSR", Registers.NSSR, "NVM Subsystem Reset", Register::number),
          word("AQA", Registers.AQA, "Admin Queue Attributes", v -> new Aqa((int) v)),
          new Place(
              "ASQ", Registers.ASQ, 8, "Admin Submission Queue Base Address", Register::number),
          new Place(
              "ACQ", Registers.ACQ, 8, "Admin Completion Queue Base Address", Register::number),
          word(
              "CMBLOC",
              Registers.CMBLOC,
              "Controller Memory Buffer Location",
              v -> new Cmbloc((int) v)),
          word("CMBSZ", Registers.CMBSZ, "Controller Memory Buffer Size", v -> new Cmbsz((int) v)),
          word("BPINFO", Registers.BPINFO, "Boot Partition Information", Register::number),
          new Place(
              "CMBMSC",
              Registers.CMBMSC,
              8,
              "Controller Memory Buffer Memory Space Control",
              Cmbmsc::new),
          word(
              "CMBSTS",
              Registers.CMBSTS,
              "Controller Memory Buffer Status",
              v -> new Cmbsts((int) v)),
          word(
              "CMBEBS",
              Registers.CMBEBS,
              "Controller Memory Buffer Elasticity Buffer Size",
              Register::number),
          word(
              "CMBSWTP",
              Registers.CMBSWTP,
              "Controller Memory Buffer Sustained Write Throughput",
              Register::number),
          word("NSSD", Registers.NSSD, "NVM Subsystem Shutdown", Register::number),
          word("CRTO", Registers.CRTO, "Controller Ready Timeouts", v -> new Crto((int) v)),
          word(
              "PMRCAP",
              Registers.PMRCAP,
              "Persistent Memory Region Capabilities",
              Register::number));

  /** A register that is one number. */
  private static Structure number(long value) {
    return List::of;
  }

  private static Place word(
      String name, int offset, String meaning, LongFunction<Structure> decoder) {
    return new Place(name, offset, Integer.BYTES, meaning, decoder);
  }

  /** Reads every register that a read does not change, in the order of offsets. */
  static List<Register> readAll(Bar bar) {
    List<Register> all = new ArrayList<>();
    for (Place place : PLACES) {
      all.add(place.read(bar));
    }
    return all;
  }

  String hex() {
    return hex(value, bytes);
  }

  static String hex(long value, int bytes) {
    return "0x" + HexFormat.of().toHexDigits(value, 2 * bytes);
  }
}
