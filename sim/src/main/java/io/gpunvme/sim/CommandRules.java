package io.gpunvme.sim;

import io.gpunvme.nvme.spec.AdminOpcode;
import io.gpunvme.nvme.spec.CommandsEffectsLog;
import io.gpunvme.nvme.spec.IoOpcode;
import io.gpunvme.sim.CommandRule.NamespaceUse;
import io.gpunvme.sim.CommandRule.Pointer;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** The commands a controller implements, as two tables indexed by opcode. Immutable. */
final class CommandRules {
  private static final int LBCC = CommandsEffectsLog.LBCC;
  private static final int NCC = CommandsEffectsLog.NCC;
  private static final int NIC = CommandsEffectsLog.NIC;

  // CSE: the command wants no other command to the same namespace, or to any namespace, beside it.
  private static final int CSE_NAMESPACE = 1 << CommandsEffectsLog.CSE_SHIFT;
  private static final int CSE_ALL = 2 << CommandsEffectsLog.CSE_SHIFT;

  private static final int ALL = 0xFFFF_FFFF;
  private static final int OPCODES = 256;

  // CDW12 of the commands with an LBA range: NLB, then PRINFO, FUA and LR at the top. Protection
  // information fields (PRINFO, CDW14, CDW15) are ignored, as no namespace is formatted with it.
  private static final int NLB = 0xFFFF;
  private static final int PRINFO = 0xF << 26;
  private static final int FUA = 1 << 30;
  private static final int LR = 1 << 31;
  private static final int DEAC = 1 << 25;

  private final @Nullable CommandRule[] admin;
  private final @Nullable CommandRule[] io;

  CommandRules(SimConfig config) {
    admin = index(adminRules(config));
    io = index(ioRules());
  }

  /** The rule of an admin command; null if there is no such command. */
  @Nullable CommandRule admin(int opcode) {
    return admin[opcode];
  }

  /** The rule of an I/O command; null if there is no such command. */
  @Nullable CommandRule io(int opcode) {
    return io[opcode];
  }

  private static @Nullable CommandRule[] index(List<CommandRule> rules) {
    @Nullable CommandRule[] byOpcode = new @Nullable CommandRule[OPCODES];
    for (CommandRule rule : rules) {
      byOpcode[rule.opcode()] = rule;
    }
    return byOpcode;
  }

  private static CommandRule rule(
      int opcode, NamespaceUse ns, Pointer pointer, int effects, int... used) {
    return new CommandRule(opcode, ns, pointer, effects | CommandsEffectsLog.CSUPP, used);
  }

  // NVM 1.0, 3.2 and Base 2.0, 7.
  private static List<CommandRule> ioRules() {
    int rw = NLB | PRINFO | FUA | LR;
    return List.of(
        rule(IoOpcode.FLUSH, NamespaceUse.ONE_OR_ALL, Pointer.UNUSED, 0),
        rule(IoOpcode.WRITE, NamespaceUse.ONE, Pointer.DATA, LBCC, ALL, ALL, rw, 0xFF, ALL, ALL),
        rule(IoOpcode.READ, NamespaceUse.ONE, Pointer.DATA, 0, ALL, ALL, rw, 0xFF, ALL, ALL),
        rule(IoOpcode.WRITE_UNCORRECTABLE, NamespaceUse.ONE, Pointer.UNUSED, LBCC, ALL, ALL, NLB),
        rule(IoOpcode.COMPARE, NamespaceUse.ONE, Pointer.DATA, 0, ALL, ALL, rw, 0, ALL, ALL),
        rule(
            IoOpcode.WRITE_ZEROES,
            NamespaceUse.ONE,
            Pointer.UNUSED,
            LBCC,
            ALL,
            ALL,
            rw | DEAC,
            0,
            ALL,
            ALL),
        rule(IoOpcode.DATASET_MANAGEMENT, NamespaceUse.ONE, Pointer.DATA, LBCC, 0xFF, 7),
        rule(IoOpcode.VERIFY, NamespaceUse.ONE, Pointer.UNUSED, 0, ALL, ALL, rw, 0, ALL, ALL),
        rule(
            IoOpcode.COPY,
            NamespaceUse.ONE,
            Pointer.DATA,
            LBCC,
            ALL,
            ALL,
            0xFFFF | PRINFO | FUA | LR,
            0,
            ALL,
            ALL));
  }

  // Base 2.0, 5. Opcodes of queues first.
  private static List<CommandRule> adminRules(SimConfig config) {
    NamespaceUse none = NamespaceUse.UNUSED;
    NamespaceUse special = NamespaceUse.SPECIAL;
    List<CommandRule> rules = new ArrayList<>();
    rules.add(rule(AdminOpcode.DELETE_IO_SQ, none, Pointer.UNUSED, 0, 0xFFFF));
    rules.add(rule(AdminOpcode.CREATE_IO_SQ, none, Pointer.ONE, 0, ALL, 0xFFFF_0007));
    rules.add(rule(AdminOpcode.DELETE_IO_CQ, none, Pointer.UNUSED, 0, 0xFFFF));
    rules.add(rule(AdminOpcode.CREATE_IO_CQ, none, Pointer.ONE, 0, ALL, 0xFFFF_0003));
    rules.add(rule(AdminOpcode.ABORT, none, Pointer.UNUSED, 0, ALL));
    rules.add(rule(AdminOpcode.ASYNC_EVENT_REQUEST, none, Pointer.UNUSED, 0));
    rules.add(
        rule(AdminOpcode.GET_LOG_PAGE, special, Pointer.DATA, 0, 0xFFFF_80FF, 0xFFFF, ALL, ALL));
    rules.add(rule(AdminOpcode.IDENTIFY, special, Pointer.DATA, 0, 0xFFFF_00FF, 0xFF00_0000));
    rules.add(
        rule(
            AdminOpcode.SET_FEATURES,
            special,
            Pointer.DATA,
            NCC,
            0x8000_00FF,
            ALL,
            ALL,
            ALL,
            ALL,
            ALL));
    rules.add(rule(AdminOpcode.GET_FEATURES, special, Pointer.DATA, 0, 0x7FF, ALL));
    rules.add(
        rule(
            AdminOpcode.FORMAT_NVM,
            NamespaceUse.ONE_OR_ALL,
            Pointer.UNUSED,
            LBCC | NCC | CSE_NAMESPACE,
            0xFFF));
    if (config.dbbuf()) {
      rules.add(rule(AdminOpcode.DOORBELL_BUFFER_CONFIG, none, Pointer.DATA, 0));
    }
    if (config.keepAlive()) {
      rules.add(rule(AdminOpcode.KEEP_ALIVE, none, Pointer.UNUSED, 0));
    }
    if (config.namespaceManagement()) {
      int effects = NIC | CSE_ALL;
      rules.add(rule(AdminOpcode.NS_MANAGEMENT, special, Pointer.DATA, effects, 0xF, 0xFF00_0000));
      rules.add(rule(AdminOpcode.NS_ATTACHMENT, special, Pointer.DATA, effects, 0xF));
    }
    return rules;
  }
}
