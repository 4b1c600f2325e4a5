package io.gpunvme.nvme.pci.vfio;

import io.gpunvme.ffi.Errno;
import io.gpunvme.ffi.PosixException;
import io.gpunvme.nvme.DmaMappingException;
import io.gpunvme.nvme.memory.BusRange;
import io.gpunvme.nvme.memory.PeerMemory;
import io.gpunvme.nvme.pci.DmaChecks;
import io.gpunvme.nvme.pci.HostPaths;
import io.gpunvme.nvme.pci.host.IovaSpace;
import io.gpunvme.nvme.pci.host.LockedMemoryLimit;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Bus addresses that an IOMMU translates: each mapped range is one run of our choice. Ranges and
 * this may be closed in any order.
 */
final class TranslatedDomain implements IommuDomain {
  private static final System.Logger LOG = System.getLogger("io.gpunvme.nvme.pci.vfio");

  private final HostPaths paths;
  private final DmaTable table;
  private final IovaSpace space;

  /** Bytes by first bus address. */
  private final Map<Long, Long> mapped = new HashMap<>();

  /** Bytes of each part of a BAR, by the bus address of the first. */
  private final Map<Long, List<Long>> peers = new HashMap<>();

  private boolean closed;

  TranslatedDomain(HostPaths paths, DmaTable table) {
    this.paths = paths;
    this.table = table;
    this.space = new IovaSpace(table.ranges(), table.page());
  }

  @Override
  public String how() {
    return table.how();
  }

  @Override
  public int addressBits() {
    return space.addressBits();
  }

  @Override
  public synchronized BusRange map(MemorySegment memory) {
    if (closed) {
      throw new DmaMappingException("the device is closed; nothing can be mapped any more");
    }
    DmaChecks.check(memory, space.page());
    long bytes = memory.byteSize();
    long iova = space.take(bytes, IovaSpace.suitableAlignment(memory.address(), bytes));
    try {
      table.map(memory.address(), iova, bytes);
    } catch (PosixException e) {
      space.release(iova);
      throw new DmaMappingException(explain(e, bytes), e);
    }
    mapped.put(iova, bytes);
    return BusRange.contiguous(memory, iova, () -> unmap(iova));
  }

  @Override
  public synchronized BusRange mapPeer(List<PeerMemory> parts) {
    if (closed) {
      throw new DmaMappingException("the device is closed; nothing can be mapped any more");
    }
    String problem = table.peerProblem();
    if (problem != null) {
      throw new DmaMappingException(problem);
    }
    DmaChecks.check(parts, space.page());
    long bytes = parts.stream().mapToLong(PeerMemory::size).sum();
    // However scattered the parts are in their BAR, the controller finds them one after the other.
    long first = space.take(bytes, IovaSpace.suitableAlignment(0, bytes));
    long next = first;
    for (PeerMemory part : parts) {
      try {
        table.map(part.memory().address(), next, part.size());
      } catch (PosixException e) {
        DmaMappingException refused =
            new DmaMappingException(explainPeer(e, part, parts.size()), e);
        undo(first, refused);
        throw refused;
      }
      next += part.size();
      peers.computeIfAbsent(first, f -> new ArrayList<>()).add(part.size());
    }
    return BusRange.remote(bytes, first, () -> unmapPeer(first));
  }

  private void undo(long first, DmaMappingException refused) {
    try {
      if (peers.containsKey(first)) {
        unmapPeer(first);
      } else {
        space.release(first);
      }
    } catch (PosixException e) {
      // The addresses stay taken: the kernel has some of them still.
      refused.addSuppressed(e);
    }
  }

  private String explainPeer(PosixException e, PeerMemory part, int parts) {
    if (e.errno() == Errno.EFAULT) {
      return ("%d bytes of a BAR at physical address %Xh could not be mapped for DMA (EFAULT): this"
              + " kernel gives the IOMMU only memory that has pages. /dev/vfio/vfio must be that of"
              + " vfio_iommu_type1, not of iommufd")
          .formatted(part.size(), part.physical());
    }
    return explain(e, part.size()) + "; the buffer has %d runs in its BAR".formatted(parts);
  }

  private synchronized void unmapPeer(long first) {
    List<Long> sizes = peers.remove(first);
    if (sizes == null) {
      return; // closed before the range was
    }
    unmapAll(first, sizes);
    space.release(first);
  }

  /** The kernel promises to undo what was mapped by one call, not several at once. */
  private void unmapAll(long first, List<Long> sizes) {
    long next = first;
    for (long size : sizes) {
      table.unmap(next, size);
      next += size;
    }
  }

  private String explain(PosixException e, long bytes) {
    String what = "%d bytes could not be mapped for DMA (%s)".formatted(bytes, e.errnoName());
    return switch (e.errno()) {
      case Errno.ENOMEM -> what + ": " + LockedMemoryLimit.advice(paths);
      case Errno.ENOSPC ->
          what
              + ": "
              + mapped.size()
              + " ranges are mapped, which is the kernel's limit; map fewer and larger ones, or"
              + " load vfio_iommu_type1 with a higher dma_entry_limit";
      default -> what + ": " + e.getMessage();
    };
  }

  private synchronized void unmap(long iova) {
    Long bytes = mapped.remove(iova);
    if (bytes == null) {
      return; // closed before the range was
    }
    // Only then: while the kernel still has it, nobody else may be given the address.
    table.unmap(iova, bytes);
    space.release(iova);
  }

  @Override
  public synchronized void close() {
    if (closed) {
      return;
    }
    closed = true;
    try {
      mapped.forEach(table::unmap);
      peers.forEach(this::unmapAll);
    } catch (PosixException e) {
      // What is left ends with the table.
      LOG.log(System.Logger.Level.DEBUG, "unmapping at close", e);
    } finally {
      mapped.clear();
      peers.clear();
      table.close();
    }
  }
}
