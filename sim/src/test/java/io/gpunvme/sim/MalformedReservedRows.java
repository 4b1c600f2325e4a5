package io.gpunvme.sim;

import static io.gpunvme.sim.MalformedRow.or;
import static io.gpunvme.sim.MalformedRow.row;

import io.gpunvme.nvme.spec.StatusCode;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;

/** Rows about what every command has in common: flags, reserved bits, fields it does not use. */
final class MalformedReservedRows {
  private static final String COMMON = "Base 2.0, 3.3.3.1";
  private static final int CDW0 = 0;

  private MalformedReservedRows() {}

  /** Reserved bits of one command, beyond those reserved in all. */
  private record Reserved(
      Example example, boolean nsid, boolean prp1, boolean prp2, String... bits) {}

  private static Reserved reserved(Example example, String unused, String... bits) {
    return new Reserved(
        example, unused.contains("nsid"), unused.contains("prp1"), unused.contains("prp2"), bits);
  }

  // "dword:bit"; a dword without a bit is reserved as a whole, both ends are tried.
  private static final List<Reserved> TABLE =
      List.of(
          reserved(Example.DELETE_SQ, "nsid prp1 prp2", "10:16", "11", "12", "13", "14", "15"),
          reserved(Example.CREATE_SQ, "nsid prp2", "11:3", "11:15", "12", "13", "14", "15"),
          reserved(Example.GET_LOG_PAGE, "", "10:8", "10:14", "11:16", "11:31", "14", "15"),
          reserved(Example.DELETE_CQ, "nsid prp1 prp2", "10:31", "11", "12", "13", "14", "15"),
          reserved(Example.CREATE_CQ, "nsid prp2", "11:2", "11:15", "12", "13", "14", "15"),
          reserved(
              Example.IDENTIFY, "nsid", "10:8", "10:15", "10:16", "11", "12", "13", "14", "15"),
          reserved(Example.IDENTIFY_ACTIVE, "", "10:31", "11:0", "11:24"),
          reserved(Example.ABORT, "nsid prp1 prp2", "11", "12", "13", "14", "15"),
          reserved(
              Example.SET_ARBITRATION,
              "prp1 prp2",
              "10:8",
              "10:30",
              "11:3",
              "12",
              "13",
              "14",
              "15"),
          reserved(Example.SET_WRITE_CACHE, "prp1 prp2", "11:1", "11:31"),
          reserved(Example.SET_TEMPERATURE, "prp1 prp2", "11:22", "12"),
          reserved(Example.SET_ERROR_RECOVERY, "prp1 prp2", "11:17", "11:31"),
          reserved(Example.SET_TIMESTAMP, "", "11", "12", "15"),
          reserved(Example.SET_HMB, "prp1 prp2", "11:2", "11:31"),
          reserved(
              Example.GET_FEATURES, "prp1 prp2", "10:11", "10:31", "11", "12", "13", "14", "15"),
          reserved(Example.GET_TIMESTAMP, "", "11", "14"),
          reserved(
              Example.ASYNC_EVENT_REQUEST, "nsid prp1 prp2", "10", "11", "12", "13", "14", "15"),
          reserved(
              Example.CREATE_NAMESPACE, "", "10:4", "10:31", "11:0", "11:23", "12", "13", "15"),
          reserved(Example.ATTACH, "", "10:4", "10:31", "11", "12", "13", "14", "15"),
          reserved(Example.KEEP_ALIVE, "nsid prp1 prp2", "10", "11", "12", "13", "14", "15"),
          reserved(Example.DOORBELL_BUFFER, "nsid", "10", "11", "12", "13", "14", "15"),
          reserved(Example.FORMAT, "prp1 prp2", "10:12", "10:31", "11", "12", "13", "14", "15"),
          reserved(Example.FLUSH, "prp1 prp2", "10", "11", "12", "13", "14", "15"),
          reserved(Example.WRITE, "", "12:16", "12:20", "12:24", "12:25", "13:8", "13:31"),
          reserved(Example.READ, "", "12:16", "12:23", "12:24", "12:25", "13:8", "13:31"),
          reserved(Example.WRITE_UNCORRECTABLE, "prp1 prp2", "12:16", "12:31", "13", "14", "15"),
          reserved(Example.COMPARE, "", "12:16", "12:24", "12:25", "13"),
          reserved(Example.WRITE_ZEROES, "prp1 prp2", "12:16", "12:24", "13"),
          reserved(Example.DSM, "", "10:8", "10:31", "11:3", "11:31", "12", "13", "14", "15"),
          reserved(Example.VERIFY, "prp1 prp2", "12:16", "12:25", "13"),
          reserved(Example.COPY, "", "12:16", "12:20", "12:24", "12:25", "13"));

  static Stream<MalformedRow> rows() {
    List<MalformedRow> rows = new ArrayList<>();
    for (Reserved reserved : TABLE) {
      common(rows, reserved);
      for (String bit : reserved.bits()) {
        bit(rows, reserved.example(), bit);
      }
    }
    return rows.stream();
  }

  private static void add(
      List<MalformedRow> rows, Example example, String what, int dword, int bits) {
    rows.add(row(example, what, or(dword, bits), StatusCode.INVALID_FIELD).in(COMMON));
  }

  private static void common(List<MalformedRow> rows, Reserved reserved) {
    Example e = reserved.example();
    add(rows, e, "FUSE first", CDW0, 1 << 8);
    add(rows, e, "FUSE second", CDW0, 2 << 8);
    add(rows, e, "FUSE reserved", CDW0, 3 << 8);
    add(rows, e, "CDW0 bit 10 reserved", CDW0, 1 << 10);
    add(rows, e, "CDW0 bit 13 reserved", CDW0, 1 << 13);
    add(rows, e, "PSDT reserved", CDW0, 3 << 14);
    if (e.admin) {
      add(rows, e, "PSDT SGL on the admin queue", CDW0, 1 << 14);
      add(rows, e, "PSDT SGL segment on the admin queue", CDW0, 2 << 14);
    }
    add(rows, e, "CDW2 reserved", 2, 1);
    add(rows, e, "CDW3 reserved", 3, 1 << 31);
    add(rows, e, "MPTR low, no metadata", 4, 4);
    add(rows, e, "MPTR high, no metadata", 5, 1);
    if (reserved.nsid()) {
      add(rows, e, "NSID unused", 1, 1);
      rows.add(
          row(e, "NSID unused, broadcast", MalformedRow.nsid(-1), StatusCode.INVALID_FIELD)
              .in(COMMON));
    }
    if (reserved.prp1()) {
      add(rows, e, "PRP1 unused", 6, 0x1000);
      add(rows, e, "PRP1 unused, high half", 7, 1);
    }
    if (reserved.prp2()) {
      add(rows, e, "PRP2 unused", 8, 0x1000);
      add(rows, e, "PRP2 unused, high half", 9, 1 << 31);
    }
  }

  private static void bit(List<MalformedRow> rows, Example e, String text) {
    int[] parts = Arrays.stream(text.split(":")).mapToInt(Integer::parseInt).toArray();
    int[] bits = parts.length == 1 ? new int[] {0, 31} : new int[] {parts[1]};
    for (int bit : bits) {
      rows.add(
          row(
              e,
              "CDW%d bit %d reserved".formatted(parts[0], bit),
              or(parts[0], 1 << bit),
              StatusCode.INVALID_FIELD));
    }
  }
}
