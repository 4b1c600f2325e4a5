package io.gpunvme.nvme.pci.kmod;

import static java.lang.foreign.ValueLayout.JAVA_INT_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_LONG_UNALIGNED;

import io.gpunvme.ffi.Errno;
import io.gpunvme.ffi.PosixException;
import io.gpunvme.nvme.pci.kmod.KmodAbi.Import;
import io.gpunvme.nvme.pci.kmod.KmodAbi.Pin;
import io.gpunvme.nvme.pci.kmod.KmodAbi.Release;
import io.gpunvme.nvme.pci.kmod.KmodAbi.Run;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeMap;

/** Answers as the module does, and lies where it is told to. */
final class FakeModule implements KmodCalls {
  /** Flags, BAR0, bits, page: what {@code GET_INFO} says. */
  int version = KmodAbi.VERSION;

  int flags =
      KmodAbi.DeviceInfo.TRANSLATED | KmodAbi.DeviceInfo.ISOLATED | KmodAbi.DeviceInfo.RESET;

  /** Of {@code 0000:01:00.0}. */
  int pciFunction = 0x100;

  long barBytes = 0x4000;
  int addressBits = 48;
  int page = 4096;

  /** Runs of the next range, address and bytes by turns; empty for one that covers it. */
  long[] runs = {};

  /** Of a dma-buf. */
  long importBytes = 1 << 20;

  /** What it says of dma-bufs: {@link Import#RAM}, {@link Import#REMAPPED}. */
  int importFlags;

  /** Number of the next handle. */
  long next = 1;

  /** Errors by request. */
  final TreeMap<Long, Integer> errors = new TreeMap<>();

  /** Bytes by handle. */
  final TreeMap<Long, Long> ranges = new TreeMap<>();

  final List<Integer> imported = new ArrayList<>();
  int resets;
  int tooShort;

  @Override
  public int ioctl(long request, MemorySegment argument) {
    Integer error = errors.get(request);
    if (error != null) {
      throw refusal(error);
    }
    if (request == KmodAbi.GET_INFO) {
      info(argument);
    } else if (request == KmodAbi.PIN) {
      range(argument, Pin.RUNS, Pin.MOST_RUNS, Pin.RUN_COUNT, Pin.HANDLE, Pin.BYTES);
    } else if (request == KmodAbi.IMPORT) {
      argument.set(JAVA_LONG_UNALIGNED, Import.BYTES, importBytes);
      range(argument, Import.RUNS, Import.MOST_RUNS, Import.RUN_COUNT, Import.HANDLE, Import.BYTES);
      imported.add(argument.get(JAVA_INT_UNALIGNED, Import.FD));
      argument.set(JAVA_INT_UNALIGNED, Import.FLAGS, importFlags);
    } else if (request == KmodAbi.RELEASE) {
      if (ranges.remove(argument.get(JAVA_LONG_UNALIGNED, Release.HANDLE)) == null) {
        throw refusal(Errno.ENOENT);
      }
    } else if (request == KmodAbi.RESET) {
      resets++;
    } else {
      throw refusal(Errno.ENOTTY);
    }
    return 0;
  }

  private static PosixException refusal(int error) {
    return new PosixException("ioctl", "the fake module", error);
  }

  private void info(MemorySegment info) {
    info.set(JAVA_INT_UNALIGNED, KmodAbi.DeviceInfo.ABI_VERSION, version);
    info.set(JAVA_INT_UNALIGNED, KmodAbi.DeviceInfo.FLAGS, flags);
    info.set(JAVA_LONG_UNALIGNED, KmodAbi.DeviceInfo.BAR0_BYTES, barBytes);
    info.set(JAVA_INT_UNALIGNED, KmodAbi.DeviceInfo.ADDRESS_BITS, addressBits);
    info.set(JAVA_INT_UNALIGNED, KmodAbi.DeviceInfo.PAGE_BYTES, page);
    info.set(JAVA_INT_UNALIGNED, KmodAbi.DeviceInfo.PCI_FUNCTION, pciFunction);
    info.set(JAVA_LONG_UNALIGNED, KmodAbi.DeviceInfo.MOST_BYTES, 1 << 24);
    info.set(
        JAVA_LONG_UNALIGNED,
        KmodAbi.DeviceInfo.BYTES,
        ranges.values().stream().mapToLong(Long::longValue).sum());
    info.set(JAVA_INT_UNALIGNED, KmodAbi.DeviceInfo.MOST_RANGES, 100);
    info.set(JAVA_INT_UNALIGNED, KmodAbi.DeviceInfo.RANGES, ranges.size());
  }

  @SuppressWarnings("restricted")
  private void range(
      MemorySegment structure, long array, long room, long count, long handle, long bytes) {
    long size = structure.get(JAVA_LONG_UNALIGNED, bytes);
    long[] all = runs.length == 0 ? new long[] {0x1_0000_0000L + (next << 28), size} : runs;
    int most = structure.get(JAVA_INT_UNALIGNED, room);
    structure.set(JAVA_INT_UNALIGNED, count, all.length / 2);
    if (all.length / 2 > most) {
      tooShort++;
      throw refusal(Errno.ENOSPC);
    }
    MemorySegment runs =
        MemorySegment.ofAddress(structure.get(JAVA_LONG_UNALIGNED, array))
            .reinterpret(most * Run.SIZE);
    for (int i = 0; i < all.length / 2; i++) {
      runs.set(JAVA_LONG_UNALIGNED, i * Run.SIZE + Run.BUS_ADDRESS, all[2 * i]);
      runs.set(JAVA_LONG_UNALIGNED, i * Run.SIZE + Run.BYTES, all[2 * i + 1]);
    }
    structure.set(JAVA_LONG_UNALIGNED, handle, next);
    ranges.put(next++, size);
  }
}
