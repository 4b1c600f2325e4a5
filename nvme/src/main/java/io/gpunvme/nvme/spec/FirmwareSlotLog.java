package io.gpunvme.nvme.spec;

import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.stream.IntStream;

/** Firmware Slot Information log page: 512 bytes (Base 2.0, 5.16.1.4). */
public final class FirmwareSlotLog extends View<FirmwareSlotLog> {
  /** Bytes of the structure. */
  public static final int SIZE = 512;

  /** Firmware slots in the page. */
  public static final int SLOTS = 7;

  private static final FieldTable TABLE = new FieldTable();

  public static final Field AFI =
      TABLE.flags(
          "AFI",
          0,
          1,
          "Active Firmware Info: bits 2:0 active slot, bits 6:4 slot of the next reset");
  public static final List<Field> FRS =
      IntStream.rangeClosed(1, SLOTS)
          .mapToObj(i -> TABLE.text("FRS" + i, 8 * i, 8, "Firmware Revision for Slot " + i))
          .toList();

  /**
   * Wraps the first 512 bytes of {@code segment}.
   *
   * @throws IllegalArgumentException if the segment is shorter
   */
  public FirmwareSlotLog(MemorySegment segment) {
    super(segment, SIZE, TABLE);
  }
}
