package io.gpunvme.sim;

import static io.gpunvme.sim.MalformedRow.prp1;
import static io.gpunvme.sim.MalformedRow.row;
import static io.gpunvme.sim.MalformedRow.shiftPrp1;

import io.gpunvme.nvme.spec.Prp;
import io.gpunvme.nvme.spec.SglDescriptor;
import io.gpunvme.nvme.spec.Sqe;
import io.gpunvme.nvme.spec.StatusCode;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

/** Rows about PRP entries and SGLs. */
final class MalformedPointerRows {
  private static final StatusCode OFFSET = StatusCode.PRP_OFFSET_INVALID;
  private static final StatusCode TRANSFER = StatusCode.DATA_TRANSFER_ERROR;
  private static final StatusCode LENGTH = StatusCode.DATA_SGL_LENGTH_INVALID;
  private static final StatusCode TYPE = StatusCode.SGL_DESCRIPTOR_TYPE_INVALID;
  private static final StatusCode SEGMENT = StatusCode.INVALID_SGL_SEGMENT_DESCRIPTOR;
  private static final String PRP = "Base 2.0, 4.1.1";
  private static final String SGL = "Base 2.0, 4.1.2";
  private static final long PAGE = CommandLab.PAGE;

  /** Commands that move data; the second half more than a page when told to. */
  private static final List<Example> WITH_DATA =
      List.of(
          Example.IDENTIFY,
          Example.GET_LOG_PAGE,
          Example.SET_TIMESTAMP,
          Example.GET_TIMESTAMP,
          Example.CREATE_NAMESPACE,
          Example.ATTACH,
          Example.WRITE,
          Example.READ,
          Example.COMPARE,
          Example.DSM,
          Example.COPY);

  private static final List<Example> BLOCKS = List.of(Example.WRITE, Example.READ, Example.COMPARE);

  private MalformedPointerRows() {}

  static Stream<MalformedRow> rows() {
    List<MalformedRow> rows = new ArrayList<>();
    for (Example e : WITH_DATA) {
      rows.add(row(e, "PRP1 not dword aligned", shiftPrp1(2), OFFSET).in(PRP));
      rows.add(row(e, "PRP1 odd", shiftPrp1(1), OFFSET).in(PRP));
      rows.add(row(e, "PRP1 not mapped", prp1(CommandLab.NOWHERE), TRANSFER).retryable().in(PRP));
      rows.add(row(e, "PRP1 0", prp1(0), TRANSFER).retryable().in(PRP));
      rows.add(row(e, "PRP1 FFFFFFFFFFFFF000h", prp1(-PAGE), TRANSFER).retryable().in(PRP));
    }
    for (Example e : List.of(Example.IDENTIFY, Example.CREATE_NAMESPACE, Example.ATTACH)) {
      twoPages(rows, e, shiftPrp1(64));
    }
    for (Example e : BLOCKS) {
      twoPages(rows, e, blocks(16));
      lists(rows, e);
      Stream.concat(sglDescriptors(e).stream(), sglSegments(e).stream())
          .forEach(r -> rows.add(r.in(SGL)));
    }
    return rows.stream();
  }

  private static MalformedRow.Spoil blocks(int blocks) {
    return (lab, s) -> Sqe.cdw12(s, 0, blocks - 1);
  }

  /** A second page is needed, and PRP2 names it wrongly. */
  private static void twoPages(List<MalformedRow> rows, Example e, MalformedRow.Spoil longer) {
    rows.add(
        row(
                e,
                "PRP2 not page aligned",
                longer.and((lab, s) -> Sqe.dptr2(s, 0, lab.bus() + PAGE + 8)),
                OFFSET)
            .in(PRP));
    rows.add(
        row(
                e,
                "PRP2 not mapped",
                longer.and((lab, s) -> Sqe.dptr2(s, 0, CommandLab.NOWHERE)),
                TRANSFER)
            .retryable()
            .in(PRP));
    rows.add(
        row(e, "PRP2 0", longer.and((lab, s) -> Sqe.dptr2(s, 0, 0)), TRANSFER).retryable().in(PRP));
  }

  /** Four pages by a list at {@code offset} in the list buffer. */
  private static MalformedRow.Spoil list(long offset) {
    return blocks(32)
        .and(
            (lab, s) -> {
              for (int i = 0; i < 3; i++) {
                Prp.put(lab.list.memory(), offset + i * 8L, lab.bus() + (i + 1) * PAGE);
              }
              Sqe.dptr2(s, 0, lab.list.busAddress(offset));
            });
  }

  private static MalformedRow.Spoil entry(long offset, long value, boolean relative) {
    return (lab, s) -> Prp.put(lab.list.memory(), offset, relative ? lab.bus() + value : value);
  }

  private static void lists(List<MalformedRow> rows, Example e) {
    rows.add(
        row(
                e,
                "list pointer misaligned",
                list(0).and((l, s) -> Sqe.dptr2(s, 0, l.list.busAddress(0) + 4)),
                OFFSET)
            .in(PRP));
    rows.add(
        row(
                e,
                "list not mapped",
                list(0).and((l, s) -> Sqe.dptr2(s, 0, CommandLab.NOWHERE)),
                TRANSFER)
            .retryable()
            .in(PRP));
    rows.add(
        row(e, "list entry not page aligned", list(0).and(entry(8, PAGE * 2 + 512, true)), OFFSET)
            .in(PRP));
    rows.add(
        row(e, "list entry not mapped", list(0).and(entry(16, CommandLab.NOWHERE, false)), TRANSFER)
            .retryable()
            .in(PRP));
    // The list starts 16 bytes before the end of its page: the second slot is the chain pointer.
    rows.add(
        row(
                e,
                "chain pointer misaligned",
                list(PAGE - 16).and(entry(PAGE - 8, PAGE + 4, true)),
                OFFSET)
            .in(PRP));
    rows.add(
        row(e, "chain not mapped", list(PAGE - 16).and(entry(PAGE - 8, 0x3000, false)), TRANSFER)
            .retryable()
            .in(PRP));
  }

  private static MalformedRow.Spoil sgl1(int type, int subtype, long length) {
    return (lab, s) -> {
      Sqe.psdt(s, 0, 1);
      SglDescriptor.put(s, Sqe.DPTR1, type, lab.bus(), (int) length);
      s.set(ValueLayout.JAVA_BYTE, Sqe.DPTR1 + 15L, (byte) (type << 4 | subtype));
    };
  }

  /** A segment of {@code bytes} in the list buffer, filled by {@code fill}. */
  private static MalformedRow.Spoil segment(int type, long bytes, MalformedRow.Spoil fill) {
    return fill.and(
        (lab, s) -> {
          Sqe.psdt(s, 0, 1);
          SglDescriptor.put(s, Sqe.DPTR1, type, lab.list.busAddress(0), (int) bytes);
        });
  }

  private static MalformedRow.Spoil descriptor(int index, int type, long offset, int length) {
    return (lab, s) ->
        SglDescriptor.put(lab.list.memory(), index * 16L, type, lab.bus() + offset, length);
  }

  private static List<MalformedRow> sglDescriptors(Example e) {
    int data = SglDescriptor.DATA_BLOCK;
    return List.of(
        row(e, "SGL shorter than the data", sgl1(data, 0, 4092), LENGTH),
        row(e, "SGL longer than the data", sgl1(data, 0, 4100), LENGTH),
        row(e, "SGL of length 0", sgl1(data, 0, 0), LENGTH),
        row(e, "SGL type 4, keyed", sgl1(SglDescriptor.KEYED_DATA_BLOCK, 0, 4096), TYPE),
        row(e, "SGL type 5, transport", sgl1(5, 0, 4096), TYPE),
        row(e, "SGL type 15, vendor", sgl1(15, 0, 4096), TYPE),
        row(e, "SGL subtype 1, offset", sgl1(data, 1, 4096), TYPE),
        row(e, "SGL not mapped", sgl1(data, 0, 4096).and(prp1(CommandLab.NOWHERE)), TRANSFER)
            .retryable());
  }

  private static List<MalformedRow> sglSegments(Example e) {
    int data = SglDescriptor.DATA_BLOCK;
    int last = SglDescriptor.LAST_SEGMENT;
    int more = SglDescriptor.SEGMENT;
    MalformedRow.Spoil whole = descriptor(0, data, 0, 4096);
    MalformedRow.Spoil pointer = descriptor(0, last, 0, 16);
    MalformedRow.Spoil short2 = descriptor(0, data, 0, 2048).and(descriptor(1, data, 2048, 2044));
    return List.of(
        row(e, "segment length not a multiple of 16", segment(last, 24, whole), SEGMENT),
        row(e, "segment of length 0", segment(last, 0, whole), SEGMENT),
        row(
                e,
                "segment not mapped",
                segment(last, 16, whole).and(prp1(CommandLab.NOWHERE)),
                TRANSFER)
            .retryable(),
        row(e, "segment pointer in a last segment", segment(last, 16, pointer), SEGMENT),
        row(e, "segment pointer not at the end", segment(more, 32, pointer), SEGMENT),
        row(e, "segment without a pointer at its end", segment(more, 16, whole), SEGMENT),
        row(e, "two blocks too short", segment(last, 32, short2), LENGTH));
  }
}
