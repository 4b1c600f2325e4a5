package io.gpunvme.nvme.pci;

import io.gpunvme.nvme.DmaMappingException;
import io.gpunvme.nvme.memory.PeerMemory;
import java.lang.foreign.MemorySegment;
import java.util.List;

/** Checks memory before a device may reach it. */
public final class DmaChecks {
  // A device's user is never the thread that made the memory.
  private static final Thread ANOTHER_THREAD = Thread.ofPlatform().unstarted(() -> {});

  private DmaChecks() {}

  /**
   * Refuses memory that cannot be mapped.
   *
   * @param page address and size must be multiples of this, bytes
   * @throws DmaMappingException if it is on the heap, read-only, misaligned or confined to a thread
   */
  public static void check(MemorySegment memory, long page) {
    if (!memory.isNative() || memory.isReadOnly()) {
      throw new DmaMappingException("only writable native memory can be mapped");
    }
    long bytes = memory.byteSize();
    if (bytes == 0 || (bytes | memory.address()) % page != 0) {
      throw new DmaMappingException(
          "address %Xh and size %d of the memory to map are not multiples of the page of %d bytes"
              .formatted(memory.address(), bytes, page));
    }
    if (!memory.isAccessibleBy(ANOTHER_THREAD)) {
      throw new DmaMappingException("the memory is confined to one thread; map shared memory");
    }
  }

  /**
   * Refuses parts of a BAR that cannot be mapped.
   *
   * @param page addresses and sizes must be multiples of this, bytes
   * @throws DmaMappingException if there are none, or as {@link #check(MemorySegment, long)}
   */
  public static void check(List<PeerMemory> parts, long page) {
    if (parts.isEmpty()) {
      throw new DmaMappingException("no part of a BAR to map");
    }
    for (PeerMemory part : parts) {
      check(part.memory(), page);
      if (part.physical() <= 0 || part.physical() % page != 0) {
        throw new DmaMappingException(
            "physical address %Xh of a part of a BAR is not a multiple of the page of %d bytes"
                .formatted(part.physical(), page));
      }
    }
  }
}
