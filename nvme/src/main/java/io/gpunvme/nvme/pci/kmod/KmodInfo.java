package io.gpunvme.nvme.pci.kmod;

import static java.lang.foreign.ValueLayout.JAVA_INT_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_LONG_UNALIGNED;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.ffi.Posix;
import io.gpunvme.nvme.pci.PciAddress;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * What the module says about one function, checked.
 *
 * @param address whose file was asked
 * @param isolated whether the function reaches only what the file has pinned and imported
 * @param translated whether an IOMMU translates its bus addresses
 * @param resettable whether it can be reset alone
 * @param barBytes size of BAR0
 * @param addressBits of bus addresses that it may be given, 32 to 64
 * @param mostBytes that may be pinned and imported at a time
 * @param bytes that are now
 * @param mostRanges likewise, ranges
 * @param ranges that are now
 */
record KmodInfo(
    PciAddress address,
    boolean isolated,
    boolean translated,
    boolean resettable,
    long barBytes,
    int addressBits,
    long mostBytes,
    long bytes,
    long mostRanges,
    long ranges) {
  /** Up to the end of the doorbells of the admin queue. */
  private static final long LEAST_BAR = 0x1008;

  private static final long MOST_BAR = 1L << 40;
  private static final int LEAST_BITS = 32;

  /**
   * Asks the module.
   *
   * @param name the function, for messages
   * @throws InvalidRequestException if it is of another version, or its answer makes no sense
   * @throws io.gpunvme.ffi.PosixException if it refuses
   */
  static KmodInfo ask(KmodCalls calls, String name) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment info = arena.allocate(KmodAbi.DeviceInfo.SIZE, Long.BYTES);
      calls.ioctl(KmodAbi.GET_INFO, info);
      int version = info.get(JAVA_INT_UNALIGNED, KmodAbi.DeviceInfo.ABI_VERSION);
      if (version != KmodAbi.VERSION) {
        throw new InvalidRequestException(
            "%s: the module gpunvme that is loaded has interface version %d, this program knows %d: load the module that came with it (scripts/kmod-build, scripts/kmod-unload, scripts/kmod-load)"
                .formatted(name, version, KmodAbi.VERSION));
      }
      return read(info, name);
    }
  }

  private static KmodInfo read(MemorySegment info, String name) {
    int flags = info.get(JAVA_INT_UNALIGNED, KmodAbi.DeviceInfo.FLAGS);
    KmodInfo read =
        new KmodInfo(
            address(info),
            (flags & KmodAbi.DeviceInfo.ISOLATED) != 0,
            (flags & KmodAbi.DeviceInfo.TRANSLATED) != 0,
            (flags & KmodAbi.DeviceInfo.RESET) != 0,
            info.get(JAVA_LONG_UNALIGNED, KmodAbi.DeviceInfo.BAR0_BYTES),
            info.get(JAVA_INT_UNALIGNED, KmodAbi.DeviceInfo.ADDRESS_BITS),
            info.get(JAVA_LONG_UNALIGNED, KmodAbi.DeviceInfo.MOST_BYTES),
            info.get(JAVA_LONG_UNALIGNED, KmodAbi.DeviceInfo.BYTES),
            unsigned(info, KmodAbi.DeviceInfo.MOST_RANGES),
            unsigned(info, KmodAbi.DeviceInfo.RANGES));
    long page = unsigned(info, KmodAbi.DeviceInfo.PAGE_BYTES);
    require(read.barBytes >= LEAST_BAR && read.barBytes <= MOST_BAR, name, "BAR0", read.barBytes);
    require(page == Posix.pageSize(), name, "a page", page);
    int bits = read.addressBits;
    if (bits < LEAST_BITS || bits > Long.SIZE) {
      throw new InvalidRequestException(
          "%s: the module says that bus addresses have %d bits; 32 to 64 make sense"
              .formatted(name, bits));
    }
    return read;
  }

  private static PciAddress address(MemorySegment info) {
    int function = info.get(JAVA_INT_UNALIGNED, KmodAbi.DeviceInfo.PCI_FUNCTION);
    int domain = info.get(JAVA_INT_UNALIGNED, KmodAbi.DeviceInfo.PCI_DOMAIN);
    return new PciAddress(domain, function >>> 8, function >>> 3 & 0x1F, function & 7);
  }

  private static long unsigned(MemorySegment info, long offset) {
    return Integer.toUnsignedLong(info.get(JAVA_INT_UNALIGNED, offset));
  }

  private static void require(boolean holds, String name, String what, long bytes) {
    if (!holds) {
      throw new InvalidRequestException(
          "%s: the module says that %s has %d bytes, which makes no sense"
              .formatted(name, what, bytes));
    }
  }
}
