package io.gpunvme.sim;

import io.gpunvme.nvme.spec.StatusCode;
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
  int check(SimCommand c, boolean sgl, boolean strict) {
    // Base 2.0, 3.3.3.1: no fused operations here; PSDT 11b is reserved; no SGL on the admin queue.
    int psdt = c.psdt();
    boolean bad = c.fuse() != 0 || psdt == PSDT_RESERVED || (psdt != 0 && !sgl);
    if (bad || (strict && !reservedClear(c))) {
      return StatusCode.INVALID_FIELD.dnr();
    }
    return 0;
  }

  private boolean reservedClear(SimCommand c) {
    int[] u = used;
    int dwords =
        c.cdw(2)
            | c.cdw(3)
            | (c.cdw(10) & ~u[0])
            | (c.cdw(11) & ~u[1])
            | (c.cdw(12) & ~u[2])
            | (c.cdw(13) & ~u[3])
            | (c.cdw(14) & ~u[4])
            | (c.cdw(15) & ~u[5])
            | (c.flags() & RESERVED_FLAGS);
    // No namespace has metadata, so the metadata pointer is reserved in every command.
    long pointers = c.mptr();
    if (pointer != Pointer.DATA) {
      pointers |= c.prp2() | (pointer == Pointer.UNUSED ? c.prp1() : 0);
    }
    boolean nsid = namespace == NamespaceUse.UNUSED && c.nsid() != 0;
    return dwords == 0 && pointers == 0 && !nsid;
  }
}
