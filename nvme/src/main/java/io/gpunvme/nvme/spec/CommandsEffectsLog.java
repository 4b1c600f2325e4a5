package io.gpunvme.nvme.spec;

import java.lang.foreign.MemorySegment;

/**
 * Commands Supported and Effects log page: 4096 bytes, a dword of flags for each admin and each I/O
 * opcode (Base 2.0, 5.16.1.6).
 */
public final class CommandsEffectsLog extends DwordTable {
  /** Bytes of the structure. */
  public static final int SIZE = 4096;

  /** Command Supported; without it the dword means nothing. */
  public static final int CSUPP = 1;

  /** Logical Block Content Change. */
  public static final int LBCC = 1 << 1;

  /** Namespace Capability Change. */
  public static final int NCC = 1 << 2;

  /** Namespace Inventory Change. */
  public static final int NIC = 1 << 3;

  /** Controller Capability Change. */
  public static final int CCC = 1 << 4;

  /** Command Submission and Execution: 1 alone on its namespace, 2 alone on the controller. */
  public static final int CSE_SHIFT = 16;

  /** UUID Selection Supported. */
  public static final int UUID_SELECTION = 1 << 19;

  private static final int ADMIN = 0;
  private static final int IO = 1024;

  /**
   * Wraps the first 4096 bytes of {@code segment}.
   *
   * @throws IllegalArgumentException if the segment is shorter
   */
  public CommandsEffectsLog(MemorySegment segment) {
    super(segment, SIZE);
  }

  /** The flags of admin opcode 0..255. */
  public int admin(int opcode) {
    return entry(ADMIN, opcode);
  }

  public CommandsEffectsLog admin(int opcode, int flags) {
    entry(ADMIN, opcode, flags);
    return this;
  }

  /** The flags of I/O opcode 0..255. */
  public int io(int opcode) {
    return entry(IO, opcode);
  }

  public CommandsEffectsLog io(int opcode, int flags) {
    entry(IO, opcode, flags);
    return this;
  }
}
