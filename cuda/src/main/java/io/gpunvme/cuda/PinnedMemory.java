package io.gpunvme.cuda;

import io.gpunvme.base.CloseAll;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * Host memory that the driver allocated: it never moves, the GPU reaches it by {@link
 * #deviceAddress}, and copies are fastest from and to it.
 *
 * <p>Safe for all threads. Using the segment after close throws {@link IllegalStateException} and
 * never touches the pages; the caller makes sure that the GPU does not use them any more.
 */
public final class PinnedMemory extends ContextResource {
  private final Arena arena;
  private final MemorySegment segment;
  private final long address;
  private final long deviceAddress;

  private PinnedMemory(
      CudaContext context, Arena arena, MemorySegment segment, long deviceAddress) {
    super(
        context,
        segment.byteSize() + " bytes of pinned memory at " + Driver.hex(segment.address()));
    this.arena = arena;
    this.segment = segment;
    this.address = segment.address();
    this.deviceAddress = deviceAddress;
  }

  @SuppressWarnings("restricted")
  static PinnedMemory allocate(CudaContext context, long bytes) {
    if (bytes <= 0) {
      throw new IllegalArgumentException(bytes + " bytes of pinned memory");
    }
    MemoryCalls calls = context.api().memory();
    long address = calls.allocateHost(bytes);
    try {
      long deviceAddress = calls.devicePointer(MemorySegment.ofAddress(address));
      Arena arena = Arena.ofShared();
      MemorySegment segment = MemorySegment.ofAddress(address).reinterpret(bytes, arena, null);
      return new PinnedMemory(context, arena, segment, deviceAddress);
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, () -> calls.freeHost(address));
      throw e;
    }
  }

  /** The memory, page-aligned; its bytes are undefined until written. */
  public MemorySegment segment() {
    return segment;
  }

  /**
   * Its address for kernels and {@link CopyBatch}.
   *
   * @throws IllegalStateException if it is closed
   */
  public long deviceAddress() {
    requireOpen();
    return deviceAddress;
  }

  /** The requested size in bytes. */
  public long size() {
    return segment.byteSize();
  }

  @Override
  void revoke() {
    arena.close();
  }

  @Override
  long pinnedBytes() {
    return segment.byteSize();
  }

  @Override
  void free() {
    api().memory().freeHost(address);
  }
}
