package io.gpunvme.sim;

import io.gpunvme.nvme.spec.Sqe;
import io.gpunvme.nvme.spec.Status;
import io.gpunvme.nvme.spec.StatusCode;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.function.UnaryOperator;

/**
 * One row of the table: a valid command, what is done to it, the status it then must end with, and
 * where the specification says so.
 */
record MalformedRow(
    Example example,
    String field,
    Spoil spoil,
    StatusCode code,
    boolean dnr,
    String section,
    UnaryOperator<SimConfigBuilder> config) {
  /** Changes one thing about a command, or about what it points to. */
  @FunctionalInterface
  interface Spoil {
    void apply(CommandLab lab, MemorySegment sqe);

    default Spoil and(Spoil other) {
      return (lab, sqe) -> {
        apply(lab, sqe);
        other.apply(lab, sqe);
      };
    }
  }

  static MalformedRow row(Example example, String field, Spoil spoil, StatusCode code) {
    return new MalformedRow(example, field, spoil, code, true, example.section, b -> b);
  }

  /** The error may go away by itself, so DNR must be clear. */
  MalformedRow retryable() {
    return new MalformedRow(example, field, spoil, code, false, section, config);
  }

  /** Another section than the command's own. */
  MalformedRow in(String where) {
    return new MalformedRow(example, field, spoil, code, dnr, where, config);
  }

  /** Another controller than the usual one. */
  MalformedRow with(UnaryOperator<SimConfigBuilder> variation) {
    return new MalformedRow(example, field, spoil, code, dnr, section, variation);
  }

  int status() {
    return dnr ? code.dnr() : code.status();
  }

  @Override
  public String toString() {
    return "%s: %s -> %s [%s]".formatted(example, field, Status.describe(status()), section);
  }

  // ---- what can be done to a command

  static Spoil nothing() {
    return (lab, s) -> {};
  }

  static Spoil set(int dword, int value) {
    return (lab, s) -> s.set(ValueLayout.JAVA_INT, dword * 4L, value);
  }

  static Spoil or(int dword, int bits) {
    return (lab, s) ->
        s.set(ValueLayout.JAVA_INT, dword * 4L, s.get(ValueLayout.JAVA_INT, dword * 4L) | bits);
  }

  static Spoil nsid(int nsid) {
    return (lab, s) -> Sqe.nsid(s, 0, nsid);
  }

  static Spoil slba(long slba) {
    return (lab, s) -> Sqe.slba(s, 0, slba);
  }

  static Spoil prp1(long value) {
    return (lab, s) -> Sqe.dptr1(s, 0, value);
  }

  static Spoil prp2(long value) {
    return (lab, s) -> Sqe.dptr2(s, 0, value);
  }

  /** Moves the data pointer by some bytes. */
  static Spoil shiftPrp1(long bytes) {
    return (lab, s) -> Sqe.dptr1(s, 0, Sqe.dptr1(s, 0) + bytes);
  }

  static Spoil opcode(int opcode) {
    return (lab, s) -> Sqe.opcode(s, 0, opcode);
  }
}
