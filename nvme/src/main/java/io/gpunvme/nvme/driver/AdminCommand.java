package io.gpunvme.nvme.driver;

import io.gpunvme.nvme.spec.AdminOpcode;
import io.gpunvme.nvme.spec.Sqe;
import java.lang.foreign.MemorySegment;

/** A 64-byte admin command under construction; the queue fills in CID and data pointer. */
final class AdminCommand {
  /** A long array, so that every field is aligned. */
  private final MemorySegment sqe = MemorySegment.ofArray(new long[Sqe.SIZE / Long.BYTES]);

  private AdminCommand(int opcode) {
    Sqe.opcode(sqe, 0, opcode);
  }

  static AdminCommand of(int opcode) {
    return new AdminCommand(opcode);
  }

  /** Identify (Base 2.0, 5.17). */
  static AdminCommand identify(int cns, int nsid) {
    return of(AdminOpcode.IDENTIFY).nsid(nsid).cdw10(cns);
  }

  MemorySegment sqe() {
    return sqe;
  }

  AdminCommand nsid(int value) {
    Sqe.nsid(sqe, 0, value);
    return this;
  }

  /** PRP entry 1 of a command whose memory is described by its address alone (Create Queue). */
  AdminCommand prp1(long value) {
    Sqe.dptr1(sqe, 0, value);
    return this;
  }

  AdminCommand cdw10(int value) {
    Sqe.cdw10(sqe, 0, value);
    return this;
  }

  AdminCommand cdw11(int value) {
    Sqe.cdw11(sqe, 0, value);
    return this;
  }

  AdminCommand cdw12(int value) {
    Sqe.cdw12(sqe, 0, value);
    return this;
  }

  AdminCommand cdw13(int value) {
    Sqe.cdw13(sqe, 0, value);
    return this;
  }

  AdminCommand cdw14(int value) {
    Sqe.cdw14(sqe, 0, value);
    return this;
  }

  AdminCommand cdw15(int value) {
    Sqe.cdw15(sqe, 0, value);
    return this;
  }
}
