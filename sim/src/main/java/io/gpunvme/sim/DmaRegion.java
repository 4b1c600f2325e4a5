package io.gpunvme.sim;

import io.gpunvme.nvme.memory.RemoteMemory;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/**
 * A run of bus addresses and the memory behind it: host memory, or remote memory, which is reached
 * through a worker's {@link RemoteChannel} only. Immutable; the same only if it is the same object.
 *
 * @param base first bus address, a multiple of 4096
 * @param size bytes, a multiple of 4096
 * @param memory as many bytes of host memory; {@link MemorySegment#NULL} if the memory is remote
 * @param internal the controller's own memory: reaching it is not a DMA
 * @param remote the remote memory; null if it is host memory
 * @param access what the controller may do with it
 */
record DmaRegion(
    long base,
    long size,
    MemorySegment memory,
    boolean internal,
    @Nullable RemoteMemory remote,
    DmaAccess access) {
  /** Host memory. */
  DmaRegion(long base, long size, MemorySegment memory, boolean internal) {
    this(base, size, memory, internal, null, DmaAccess.READ_WRITE);
  }

  /** Host memory of which the controller may do only so much. */
  DmaRegion(long base, MemorySegment memory, DmaAccess access) {
    this(base, memory.byteSize(), memory, false, null, access);
  }

  /** Remote memory. */
  DmaRegion(long base, RemoteMemory remote) {
    this(base, remote, DmaAccess.READ_WRITE);
  }

  /** Remote memory of which the controller may do only so much. */
  DmaRegion(long base, RemoteMemory remote, DmaAccess access) {
    this(base, remote.size(), MemorySegment.NULL, false, remote, access);
  }

  boolean isRemote() {
    return remote != null;
  }

  /** Whether all of {@code length} bytes from {@code address} on lie inside. */
  boolean contains(long address, long length) {
    long offset = address - base;
    // Negative and enormous offsets alike fail the first test, so that nothing can overflow.
    return Long.compareUnsigned(offset, size) < 0 && length <= size - offset;
  }

  /** Where in the memory a bus address lies that this region contains. */
  long offset(long address) {
    return address - base;
  }
}
