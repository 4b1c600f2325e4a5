package io.gpunvme.nvme.memory;

import io.gpunvme.nvme.DmaMappingException;
import java.lang.foreign.MemorySegment;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Whatever makes memory reachable for one controller; every {@code PciFunction} is one. */
@FunctionalInterface
public interface BusMapper {
  /**
   * Maps memory for reading and writing by the controller until the range is closed.
   *
   * @param memory native memory, its address and size multiples of 4096 bytes
   * @return the range; closing it unmaps but never frees the memory
   * @throws DmaMappingException if the memory is misaligned, on the heap, or the system refuses
   *     (limits, IOMMU)
   */
  BusRange map(MemorySegment memory);

  /**
   * Maps parts of another function's BAR for reading and writing by the controller until the range
   * is closed. Nothing checks what lies there: the caller knows.
   *
   * @param parts in the order of the range, at least one; their mappings outlive the range
   * @return the range, without a {@link BusRange#memory}
   * @throws DmaMappingException if the controller cannot reach such memory, as by default, or the
   *     system refuses; nothing is mapped then
   */
  default BusRange mapPeer(List<PeerMemory> parts) {
    throw new DmaMappingException(
        "memory behind another function's BAR cannot be mapped for this controller");
  }

  /**
   * Whether only memory with a descriptor can be mapped ({@link io.gpunvme.ffi.SharedMemory}),
   * because the controller is in another process.
   */
  default boolean needsDescriptors() {
    return false;
  }

  /**
   * Why memory that was mapped here may still be written to although nobody uses the controller any
   * more: it could not be stopped. Null if that cannot be, as ever with a controller at work.
   */
  default @Nullable String inDoubt() {
    return null;
  }

  /**
   * Memory of the kind that this controller reaches best: queues and buffers of the driver's own
   * are made of it. Not mapped yet.
   *
   * @param bytes &gt; 0; rounded up to a multiple of the system's page size
   * @return zeroed and page-aligned
   */
  default HostMemory allocate(long bytes) {
    return HostMemory.shared(bytes);
  }

  /**
   * Maps memory of another device for reading and writing by the controller until the range is
   * closed.
   *
   * @param memory its size a multiple of 4096 bytes
   * @return the range, without a {@link BusRange#memory}; when its {@code close} returns, nothing
   *     copies to or from the memory any more
   * @throws DmaMappingException if the controller cannot reach such memory, as by default, or the
   *     size is not a multiple of 4096
   */
  default BusRange map(RemoteMemory memory) {
    throw new DmaMappingException(
        memory.name()
            + " cannot be mapped: this controller reaches host memory only; keep queues and data"
            + " in host memory");
  }
}
