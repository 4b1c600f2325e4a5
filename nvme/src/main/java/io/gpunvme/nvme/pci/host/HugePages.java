package io.gpunvme.nvme.pci.host;

import io.gpunvme.ffi.Mapping;
import io.gpunvme.ffi.Posix;
import io.gpunvme.ffi.PosixException;
import io.gpunvme.ffi.SharedMemory;
import io.gpunvme.nvme.memory.HostMemory;
import io.gpunvme.nvme.pci.NumaHome;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Memory for devices out of huge pages where the system has some: contiguous for the device, and
 * few entries in the tables of CPU and IOMMU. Small pieces share a page. Where there are none, it
 * is ordinary memory. Safe for all threads.
 */
public final class HugePages {
  private static final System.Logger LOG = System.getLogger("io.gpunvme.nvme.pci");

  private final NumaHome home;
  private final List<Chunk> chunks = new ArrayList<>();
  private boolean told;

  /**
   * Takes nothing yet.
   *
   * @param home of the device: memory is taken there
   */
  public HugePages(NumaHome home) {
    this.home = home;
  }

  /** One huge page that pieces are cut from. */
  private static final class Chunk {
    final SharedMemory memory;
    final IovaSpace room;

    Chunk(SharedMemory memory) {
      this.memory = memory;
      // Offsets, moved up by one huge page: addresses begin above 0, offsets do not.
      this.room =
          IovaSpace.withoutGaps(
              new IovaSpace.Range(SharedMemory.HUGE_PAGE, 2 * SharedMemory.HUGE_PAGE - 1),
              Posix.pageSize());
    }
  }

  /**
   * Zeroed memory.
   *
   * @param bytes &gt; 0; rounded up to a multiple of the system's page size
   */
  public synchronized HostMemory allocate(long bytes) {
    long page = Posix.pageSize();
    long size = Math.ceilDiv(bytes, page) * page;
    try (var _ = home.memory()) {
      return take(size);
    }
  }

  private HostMemory take(long size) {
    try {
      return size < SharedMemory.HUGE_PAGE ? piece(size) : whole(size);
    } catch (PosixException e) {
      if (!told) {
        told = true;
        LOG.log(
            System.Logger.Level.DEBUG,
            "no huge pages ({0}): ordinary ones are used; `sysctl vm.nr_hugepages=64` as root"
                + " reserves some",
            e.getMessage());
      }
      return HostMemory.shared(size);
    }
  }

  private static HostMemory whole(long size) {
    SharedMemory memory = SharedMemory.allocateHuge("gpunvme-dma", size);
    return new HostMemory(memory.segment().asSlice(0, size), memory::close);
  }

  private HostMemory piece(long size) {
    for (Chunk chunk : chunks) {
      HostMemory found = cut(chunk, size);
      if (found != null) {
        return found;
      }
    }
    Chunk chunk = new Chunk(SharedMemory.allocateHuge("gpunvme-dma", SharedMemory.HUGE_PAGE));
    chunks.add(chunk);
    HostMemory first = cut(chunk, size);
    if (first == null) {
      throw new AssertionError("an empty page has no room for " + size + " bytes");
    }
    return first;
  }

  private @Nullable HostMemory cut(Chunk chunk, long size) {
    long at = chunk.room.takeIfFree(size, Posix.pageSize());
    if (at < 0) {
      return null;
    }
    MemorySegment slice = chunk.memory.segment().asSlice(at - SharedMemory.HUGE_PAGE, size);
    slice.fill((byte) 0);
    Mapping own = Mapping.part(slice, () -> giveBack(chunk, at));
    return new HostMemory(own.segment(), own::close);
  }

  private synchronized void giveBack(Chunk chunk, long at) {
    chunk.room.release(at);
    if (chunk.room.count() == 0) {
      chunks.remove(chunk);
      chunk.memory.close();
    }
  }
}
