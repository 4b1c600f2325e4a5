package io.gpunvme.nvme.pci.kmod;

import static java.lang.foreign.ValueLayout.JAVA_LONG_UNALIGNED;

import io.gpunvme.nvme.DmaMappingException;
import io.gpunvme.nvme.memory.BusRange;
import java.lang.foreign.MemorySegment;

/**
 * The bus addresses of one range as the module returned them, checked: runs of consecutive ones,
 * which together cover the range. Immutable.
 *
 * <p>A wrong address makes the controller write into somebody else's memory, so nothing is believed
 * that can be checked.
 */
final class BusRuns {
  private static final long GRANULE = BusRange.GRANULE;

  private final long[] addresses;
  private final long[] bytes;

  private BusRuns(long[] addresses, long[] bytes) {
    this.addresses = addresses;
    this.bytes = bytes;
  }

  /**
   * Reads the module's array.
   *
   * @param array of structures {@code gpunvme_run}
   * @param count how many of them the module says it filled in
   * @param covered bytes that they must add up to
   * @param addressBits of bus addresses, 32 to 64
   * @throws DmaMappingException if they do not, or one of them makes no sense
   */
  static BusRuns read(MemorySegment array, long count, long covered, int addressBits) {
    long room = array.byteSize() / KmodAbi.Run.SIZE;
    if (count < 1 || count > room) {
      throw broken("%d runs in an array of %d".formatted(count, room));
    }
    long[] addresses = new long[(int) count];
    long[] bytes = new long[(int) count];
    long left = covered;
    for (int i = 0; i < count; i++) {
      long at = i * KmodAbi.Run.SIZE;
      long address = array.get(JAVA_LONG_UNALIGNED, at + KmodAbi.Run.BUS_ADDRESS);
      long length = array.get(JAVA_LONG_UNALIGNED, at + KmodAbi.Run.BYTES);
      if (((address | length) & GRANULE - 1) != 0) {
        throw broken(
            "run %d, %Xh with %Xh bytes, is not made of pages".formatted(i, address, length));
      }
      if (length <= 0 || length > left) {
        throw broken("run %d has %Xh bytes where %Xh are left".formatted(i, length, left));
      }
      requireWithin(i, address, length, addressBits);
      addresses[i] = address;
      bytes[i] = length;
      left -= length;
    }
    if (left != 0) {
      throw broken("%d runs leave %Xh of %Xh bytes out".formatted(count, left, covered));
    }
    return new BusRuns(addresses, bytes);
  }

  private static void requireWithin(int run, long address, long length, int bits) {
    long last = address + length - 1;
    boolean wraps = Long.compareUnsigned(last, address) < 0;
    boolean wide = bits < Long.SIZE && last >>> bits != 0;
    if (wraps || wide) {
      throw broken(
          "run %d from %Xh with %Xh bytes needs more than %d bits"
              .formatted(run, address, length, bits));
    }
  }

  private static DmaMappingException broken(String what) {
    return new DmaMappingException(
        "the module gpunvme returned bus addresses that make no sense: "
            + what
            + "; nothing was mapped. Is it of the same version as this program?");
  }

  int count() {
    return addresses.length;
  }

  /** The range of host memory; it has as many bytes as the runs. */
  BusRange range(MemorySegment memory, Runnable unmap) {
    return count() == 1
        ? BusRange.contiguous(memory, addresses[0], unmap)
        : BusRange.scattered(memory, granules(0, memory.byteSize()), unmap);
  }

  /**
   * Part of another device's memory.
   *
   * @param offset where it begins, a multiple of 4096
   * @param size its bytes, likewise; the runs reach to its end
   */
  BusRange remote(long offset, long size, Runnable unmap) {
    long[] granules = granules(offset, size);
    for (int i = 1; i < granules.length; i++) {
      if (granules[i] != granules[i - 1] + GRANULE) {
        return BusRange.remote(size, granules, unmap);
      }
    }
    return BusRange.remote(size, granules[0], unmap);
  }

  private long[] granules(long offset, long size) {
    long[] granules = new long[Math.toIntExact(size / GRANULE)];
    int filled = 0;
    long skip = offset;
    for (int i = 0; i < addresses.length && filled < granules.length; i++) {
      for (long at = Math.min(skip, bytes[i]);
          at < bytes[i] && filled < granules.length;
          at += GRANULE) {
        granules[filled++] = addresses[i] + at;
      }
      skip -= Math.min(skip, bytes[i]);
    }
    return granules;
  }
}
