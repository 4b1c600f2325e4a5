package io.gpunvme.nvme.vfiouser;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/** Numbers of the vfio-user specification and of VFIO's ABI, which it borrows. */
public final class Protocol {
  public static final int MAJOR = 0;
  public static final int MINOR = 1;

  /** Bytes of a message's header: id u16, command u16, size u32, flags u32, error number u32. */
  public static final int HEADER = 16;

  /** Flags of a header: bits 0 to 3 are the type. */
  public static final int TYPE_MASK = 0xF;

  public static final int TYPE_COMMAND = 0;
  public static final int TYPE_REPLY = 1;
  public static final int NO_REPLY = 1 << 4;
  public static final int ERROR = 1 << 5;

  /** What a peer that says nothing else takes in one message. */
  public static final int DEFAULT_MAX_FDS = 1;

  public static final long DEFAULT_MAX_TRANSFER = 1 << 20;

  // DMA_MAP: argsz u32, flags u32, offset u64, address u64, size u64
  public static final int DMA_MAP_BYTES = 32;
  public static final int DMA_READABLE = 1;
  public static final int DMA_WRITABLE = 2;

  // DMA_UNMAP: argsz u32, flags u32, address u64, size u64
  public static final int DMA_UNMAP_BYTES = 24;
  public static final int DMA_UNMAP_DIRTY = 1;
  public static final int DMA_UNMAP_ALL = 2;

  // DEVICE_GET_INFO: argsz, flags, regions, interrupts
  public static final int DEVICE_INFO_BYTES = 16;
  public static final int DEVICE_RESETS = 1;
  public static final int DEVICE_PCI = 2;

  // DEVICE_GET_REGION_INFO: argsz u32, flags u32, index u32, capabilities u32, size u64, offset u64
  public static final int REGION_INFO_BYTES = 32;
  public static final int REGION_READ = 1;
  public static final int REGION_WRITE = 2;
  public static final int REGION_MMAP = 4;
  public static final int REGION_CAPABILITIES = 8;

  /** Header of a capability: id u16, version u16, offset of the next u32. */
  public static final int CAPABILITY_BYTES = 8;

  /** The areas that can be mapped: count u32, reserved u32, then offset u64, size u64 of each. */
  public static final int SPARSE_MMAP = 1;

  public static final int SPARSE_AREA_BYTES = 16;

  // DEVICE_GET_IRQ_INFO: argsz, flags, index, count
  public static final int IRQ_INFO_BYTES = 16;
  public static final int IRQ_EVENTFD = 1;
  public static final int IRQ_MASKABLE = 2;
  public static final int IRQ_AUTOMASKED = 4;
  public static final int IRQ_NORESIZE = 8;

  // DEVICE_SET_IRQS: argsz, flags, index, start, count, data
  public static final int SET_IRQS_BYTES = 20;
  public static final int SET_NONE = 1;
  public static final int SET_BOOL = 2;
  public static final int SET_EVENTFD = 4;
  public static final int SET_MASK = 8;
  public static final int SET_UNMASK = 16;
  public static final int SET_TRIGGER = 32;

  // REGION_READ and REGION_WRITE: offset u64, region u32, count u32, data
  public static final int REGION_ACCESS_BYTES = 16;

  // DMA_READ and DMA_WRITE: address u64, count u64, data
  public static final int DMA_ACCESS_BYTES = 16;

  public static final int REGIONS = 9;
  public static final int REGION_CONFIG = 7;
  public static final int BARS = 6;

  public static final int IRQ_TYPES = 5;
  public static final int IRQ_INTX = 0;
  public static final int IRQ_MSIX = 2;
  public static final int IRQ_ERROR = 3;
  public static final int IRQ_REQUEST = 4;

  private Protocol() {}

  /** A payload of the host's byte order, as both ends are on one host. */
  public static ByteBuffer payload(int bytes) {
    return ByteBuffer.allocate(bytes).order(ByteOrder.nativeOrder());
  }
}
