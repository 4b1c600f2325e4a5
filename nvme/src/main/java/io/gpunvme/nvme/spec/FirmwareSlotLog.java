package io.gpunvme.nvme.spec;

import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Objects;
import java.util.stream.IntStream;

/**
 * Firmware Slot Information log page: 512 bytes (Base 2.0, 5.16.1.4). Setters take the unit of the
 * getter and return this view.
 */
public final class FirmwareSlotLog extends View {
  /** Bytes of the structure. */
  public static final int SIZE = 512;

  /** Firmware slots in the page. */
  public static final int SLOTS = 7;

  private static final FieldTable TABLE = new FieldTable();

  private static final Field AFI =
      TABLE.flags(
          "AFI",
          0,
          1,
          "Active Firmware Info: bits 2:0 active slot, bits 6:4 slot of the next reset");

  private static final List<Field> FRS =
      IntStream.rangeClosed(1, SLOTS)
          .mapToObj(i -> TABLE.text("FRS" + i, 8 * i, 8, "Firmware Revision for Slot " + i))
          .toList();

  /**
   * Wraps the first 512 bytes of {@code segment}.
   *
   * @throws IllegalArgumentException if the segment is shorter
   */
  public FirmwareSlotLog(MemorySegment segment) {
    super(segment, SIZE);
  }

  @Override
  List<Field> table() {
    return TABLE.fields();
  }

  /** Active Firmware Info: bits 2:0 active slot, bits 6:4 slot of the next reset. */
  public int afi() {
    return int32(AFI);
  }

  public FirmwareSlotLog afi(int value) {
    AFI.number(s, value);
    return this;
  }

  /** Firmware revision in slot 1..7; empty when there is none. */
  public String frs(int slot) {
    return FRS.get(Objects.checkIndex(slot - 1, SLOTS)).text(s);
  }

  /** Sets the firmware revision in slot 1..7, at most 8 characters. */
  public FirmwareSlotLog frs(int slot, String revision) {
    FRS.get(Objects.checkIndex(slot - 1, SLOTS)).text(s, revision, ' ');
    return this;
  }
}
