package io.gpunvme.nvme.sim;

import io.gpunvme.nvme.spec.Sqe;
import io.gpunvme.nvme.spec.StatusCode;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;

/** What the 64 bytes of one command may contain, before anybody asks what they mean. */
final class CommandRule {
  /** What the NSID field of a command is for (Base 2.0, 3.3.3.1). */
  enum NamespaceUse {
    /** Nothing: zero. */
    UNUSED,
    /** One active namespace. */
    ONE,
    /** One active namespace, or all of them. */
    ONE_OR_ALL,
    /** The command itself knows. */
    SPECIAL
  }

  /** What the data pointer of a command is for. */
  enum Pointer {
    /** Nothing: zero. */
    UNUSED,
    /** PRP Entry 1 only; PRP Entry 2 is zero. */
    ONE,
    /** Data, or depending on the command's fields nothing. */
    DATA
  }

  /** The flags byte between FUSE and PSDT. */
  private static final int RESERVED_FLAGS = 0x3C;

  private static final int PSDT_RESERVED = 3;

  private static final int DWORDS = 6;

  private final int opcode;
  private final NamespaceUse namespace;
  private final Pointer pointer;
  private final int effects;
  private final int[] used;

  /**
   * @param opcode 0..255
   * @param effects the command's dword in the Commands Supported and Effects log
   * @param used bits with a meaning in command dwords 10 and following, at most six
   */
  CommandRule(int opcode, NamespaceUse namespace, Pointer pointer, int effects, int... used) {
    this.opcode = opcode;
    this.namespace = namespace;
    this.pointer = pointer;
    this.effects = effects;
    this.used = Arrays.copyOf(used, DWORDS);
  }

  int opcode() {
    return opcode;
  }

  NamespaceUse namespace() {
    return namespace;
  }

  int effects() {
    return effects;
  }

  /**
   * Checks everything that does not depend on the command's meaning.
   *
   * @param sgl whether the command may use an SGL
   * @param strict whether reserved fields must be zero
   * @return 0 or Invalid Field in Command
   */
  int check(MemorySegment sqe, boolean sgl, boolean strict) {
    // Base 2.0, 3.3.3.1: no fused operations here; PSDT 11b is reserved; no SGL on the admin queue.
    int psdt = Sqe.psdt(sqe, 0);
    boolean bad = Sqe.fuse(sqe, 0) != 0 || psdt == PSDT_RESERVED || (psdt != 0 && !sgl);
    if (bad || (strict && !reservedClear(sqe))) {
      return StatusCode.INVALID_FIELD.dnr();
    }
    return 0;
  }

  private boolean reservedClear(MemorySegment sqe) {
    int[] u = used;
    int dwords =
        Sqe.cdw2(sqe, 0)
            | Sqe.cdw3(sqe, 0)
            | (Sqe.cdw10(sqe, 0) & ~u[0])
            | (Sqe.cdw11(sqe, 0) & ~u[1])
            | (Sqe.cdw12(sqe, 0) & ~u[2])
            | (Sqe.cdw13(sqe, 0) & ~u[3])
            | (Sqe.cdw14(sqe, 0) & ~u[4])
            | (Sqe.cdw15(sqe, 0) & ~u[5])
            | (Sqe.flags(sqe, 0) & RESERVED_FLAGS);
    // No namespace has metadata, so the metadata pointer is reserved in every command.
    long pointers = Sqe.mptr(sqe, 0);
    if (pointer != Pointer.DATA) {
      pointers |= Sqe.dptr2(sqe, 0) | (pointer == Pointer.UNUSED ? Sqe.dptr1(sqe, 0) : 0);
    }
    boolean nsid = namespace == NamespaceUse.UNUSED && Sqe.nsid(sqe, 0) != 0;
    return dwords == 0 && pointers == 0 && !nsid;
  }
}
