package io.gpunvme.sim;

import static io.gpunvme.sim.MalformedRow.nothing;
import static io.gpunvme.sim.MalformedRow.nsid;
import static io.gpunvme.sim.MalformedRow.opcode;
import static io.gpunvme.sim.MalformedRow.or;
import static io.gpunvme.sim.MalformedRow.row;
import static io.gpunvme.sim.MalformedRow.set;
import static io.gpunvme.sim.MalformedRow.slba;

import io.gpunvme.nvme.spec.DsmRange;
import io.gpunvme.nvme.spec.IoOpcode;
import io.gpunvme.nvme.spec.Sqe;
import io.gpunvme.nvme.spec.StatusCode;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/** Rows about namespaces, logical blocks and sizes of I/O commands. */
final class MalformedIoRows {
  private static final StatusCode FIELD = StatusCode.INVALID_FIELD;
  private static final StatusCode NAMESPACE = StatusCode.INVALID_NAMESPACE_OR_FORMAT;
  private static final StatusCode RANGE = StatusCode.LBA_OUT_OF_RANGE;
  private static final StatusCode LIMIT = StatusCode.COMMAND_SIZE_LIMIT_EXCEEDED;
  private static final StatusCode PROTECTED = StatusCode.NAMESPACE_WRITE_PROTECTED;
  private static final String MDTS = "Base 2.0, 5.17.2.1 (MDTS)";
  private static final long NSZE = CommandLab.BLOCKS;

  private static final List<Example> ALL =
      List.of(
          Example.FLUSH,
          Example.WRITE,
          Example.READ,
          Example.WRITE_UNCORRECTABLE,
          Example.COMPARE,
          Example.WRITE_ZEROES,
          Example.DSM,
          Example.VERIFY,
          Example.COPY);

  private static final List<Example> WITH_RANGE =
      List.of(
          Example.WRITE,
          Example.READ,
          Example.WRITE_UNCORRECTABLE,
          Example.COMPARE,
          Example.WRITE_ZEROES,
          Example.VERIFY);

  private MalformedIoRows() {}

  static Stream<MalformedRow> rows() {
    return Stream.of(opcodes(), namespaces(), ranges(), sizes(), dsm(), copy(), media())
        .flatMap(List::stream);
  }

  private static List<MalformedRow> opcodes() {
    int[] unknown = {
      0x03,
      0x06,
      0x07,
      0x0A,
      IoOpcode.RESERVATION_REGISTER,
      IoOpcode.RESERVATION_REPORT,
      IoOpcode.RESERVATION_ACQUIRE,
      IoOpcode.RESERVATION_RELEASE,
      0x79,
      0x7D,
      0x80,
      0xFF
    };
    return IntStream.of(unknown)
        .mapToObj(
            op ->
                row(
                        Example.FLUSH,
                        "opcode %02Xh".formatted(op),
                        opcode(op),
                        StatusCode.INVALID_OPCODE)
                    .in("NVM 1.0, 3"))
        .toList();
  }

  private static List<MalformedRow> namespaces() {
    List<MalformedRow> rows = new ArrayList<>();
    for (Example e : ALL) {
      String where = "Base 2.0, 3.2.1";
      rows.add(row(e, "NSID 0", nsid(0), NAMESPACE).in(where));
      rows.add(row(e, "NSID beyond NN", nsid(CommandLab.NN + 1), NAMESPACE).in(where));
      rows.add(row(e, "NSID 2^31", nsid(1 << 31), NAMESPACE).in(where));
      rows.add(row(e, "NSID FFFFFFFEh", nsid(-2), NAMESPACE).in(where));
      rows.add(row(e, "NSID inactive", nsid(CommandLab.INACTIVE), FIELD).in("Base 2.0, 3.3.3.1"));
      rows.add(row(e, "last NSID, inactive", nsid(CommandLab.NN), FIELD).in("Base 2.0, 3.3.3.1"));
      if (e != Example.FLUSH) {
        rows.add(row(e, "NSID all", nsid(-1), FIELD).in("Base 2.0, 3.3.3.1"));
      }
      rows.add(
          row(
                  e,
                  "namespace detached a moment ago",
                  (lab, s) -> {
                    byte[] keep = lab.memory().asSlice(0, 64).toArray(ValueLayout.JAVA_BYTE);
                    lab.host.adminOk(lab.attach(1, 1));
                    lab.memory().asSlice(0, 64).copyFrom(MemorySegment.ofArray(keep));
                  },
                  FIELD)
              .in("Base 2.0, 5.22"));
    }
    for (Example e :
        List.of(
            Example.WRITE,
            Example.WRITE_UNCORRECTABLE,
            Example.WRITE_ZEROES,
            Example.DSM,
            Example.COPY)) {
      rows.add(row(e, "write protected", nsid(2), PROTECTED).in("NVM 1.0, 4.1.5 (NSATTR)"));
    }
    return rows;
  }

  private static MalformedRow.Spoil blocks(long slba, int blocks) {
    return slba(slba).and((lab, s) -> Sqe.cdw12(s, 0, blocks - 1));
  }

  private static List<MalformedRow> ranges() {
    List<MalformedRow> rows = new ArrayList<>();
    for (Example e : WITH_RANGE) {
      rows.add(row(e, "SLBA = NSZE", blocks(NSZE, 1), RANGE));
      rows.add(row(e, "last block beyond NSZE", blocks(NSZE - 7, 8), RANGE));
      rows.add(row(e, "SLBA 2^32", blocks(1L << 32, 1), RANGE));
      rows.add(row(e, "SLBA whose byte offset wraps 2^64", blocks(1L << 55, 8), RANGE));
      rows.add(row(e, "SLBA 2^63", blocks(Long.MIN_VALUE, 8), RANGE));
      rows.add(row(e, "SLBA + NLB wraps 2^64", blocks(-4, 8), RANGE));
      rows.add(row(e, "SLBA FFFFFFFFFFFFFFFFh", blocks(-1, 1), RANGE));
    }
    for (Example e : List.of(Example.WRITE_UNCORRECTABLE, Example.WRITE_ZEROES, Example.VERIFY)) {
      rows.add(row(e, "NLB FFFFh beyond NSZE", blocks(0, 65536), RANGE));
    }
    return rows;
  }

  private static List<MalformedRow> sizes() {
    List<MalformedRow> rows = new ArrayList<>();
    for (Example e : List.of(Example.WRITE, Example.READ, Example.COMPARE)) {
      int most = (int) (CommandLab.MDTS / 512);
      rows.add(row(e, "one block more than MDTS", blocks(0, most + 1), FIELD).in(MDTS));
      rows.add(row(e, "NLB FFFFh", blocks(0, 65536), FIELD).in(MDTS));
    }
    return rows;
  }

  private static MalformedRow.Spoil dsmRange(int index, long slba, int blocks) {
    return (lab, s) -> DsmRange.put(lab.memory(), index * 16L, 0, blocks, slba);
  }

  private static List<MalformedRow> dsm() {
    Example e = Example.DSM;
    return List.of(
        row(e, "second range beyond NSZE", dsmRange(1, NSZE - 3, 4), RANGE),
        row(e, "SLBA = NSZE", dsmRange(0, NSZE, 1), RANGE),
        row(e, "SLBA + length wraps 2^64", dsmRange(0, -1, 2), RANGE),
        row(e, "length FFFFFFFFh", dsmRange(0, 0, -1), RANGE),
        row(e, "range beyond NSZE without AD", dsmRange(0, NSZE, 1).and(set(11, 1)), RANGE));
  }

  private static MalformedRow.Spoil source(int index, long slba, int blocks) {
    return (lab, s) -> lab.copySource(index, slba, blocks);
  }

  private static List<MalformedRow> copy() {
    Example e = Example.COPY;
    return List.of(
        row(e, "descriptor format 1", or(12, 1 << 8), FIELD),
        row(e, "descriptor format 15", or(12, 15 << 8), FIELD),
        row(e, "NR beyond MSRC", set(12, 128), LIMIT),
        row(e, "NLB beyond MSSRL", source(0, 0, 4097), LIMIT).with(b -> b.maxTransfer(0)),
        row(e, "first source beyond NSZE", source(0, NSZE - 7, 8), RANGE),
        row(e, "second source SLBA = NSZE", source(1, NSZE, 1), RANGE),
        row(e, "source SLBA + NLB wraps 2^64", source(1, -1, 2), RANGE),
        row(e, "SDLBA = NSZE", slba(NSZE), RANGE),
        row(e, "destination beyond NSZE", slba(NSZE - 11), RANGE),
        row(e, "SDLBA wraps 2^64", slba(-1), RANGE));
  }

  private static MalformedRow.Spoil spoilt(long slba) {
    return (lab, s) -> lab.ioOk(RawHost.io(IoOpcode.WRITE_UNCORRECTABLE, 1, slba, 1, 0, 0));
  }

  private static List<MalformedRow> media() {
    StatusCode lost = StatusCode.UNRECOVERED_READ_ERROR;
    String where = "NVM 1.0, 3.2.7";
    return List.of(
        row(Example.READ, "last block uncorrectable", spoilt(23), lost).retryable().in(where),
        row(Example.COMPARE, "first block uncorrectable", spoilt(16), lost).retryable().in(where),
        row(Example.VERIFY, "block uncorrectable", spoilt(20), lost).retryable().in(where),
        row(Example.COPY, "source block uncorrectable", spoilt(35), lost).retryable().in(where),
        row(
            Example.COMPARE,
            "one bit differs in the last byte",
            (lab, s) -> lab.memory().set(ValueLayout.JAVA_BYTE, 8 * 512 - 1, (byte) 1),
            StatusCode.COMPARE_FAILURE),
        row(Example.READ, "SGL although SGLS = 0", or(0, 1 << 14), FIELD)
            .with(b -> b.sgl(false))
            .in("Base 2.0, 3.3.3.1"),
        row(Example.WRITE, "SGL although SGLS = 0", or(0, 2 << 14).and(nothing()), FIELD)
            .with(b -> b.sgl(false))
            .in("Base 2.0, 3.3.3.1"));
  }
}
