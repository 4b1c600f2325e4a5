package io.gpunvme.nvme.memory;

/**
 * Fills in a command's data pointer (Base 2.0, 3.3.3.1, DPTR) for a piece of mapped memory.
 *
 * <p>Each command slot of a queue has list memory of its own, so a list lives exactly as long as
 * the command that names it. Used by the one thread that drives the queue; allocates nothing.
 */
public sealed interface DataPointerBuilder permits PrpBuilder, SglBuilder {
  /**
   * Describes {@code length} bytes of {@code data} from {@code offset}; results are in {@link
   * #dptr1} and {@link #dptr2} until the next call.
   *
   * @param slot whose list memory to use; no command in flight may own it
   * @throws io.gpunvme.base.InvalidRequestException if the range is not inside the memory, is
   *     misaligned, or is longer than this builder was made for
   */
  void build(int slot, BusRange data, long offset, long length);

  /** Bytes 7:0 of the data pointer. */
  long dptr1();

  /** Bytes 15:8 of the data pointer. */
  long dptr2();

  /** The PSDT field (CDW0 bits 15:14) these data pointers need: 0 for PRPs, 1 for an SGL. */
  int psdt();

  /** Bytes of list memory one slot needs for the longest transfer. */
  long bytesPerSlot();
}
