package io.gpunvme.nvme.pci.kmod;

import static java.lang.foreign.ValueLayout.JAVA_INT_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_LONG_UNALIGNED;

import io.gpunvme.base.CloseAll;
import io.gpunvme.base.DmaBuf;
import io.gpunvme.ffi.Errno;
import io.gpunvme.ffi.Posix;
import io.gpunvme.ffi.PosixException;
import io.gpunvme.nvme.DeviceGoneException;
import io.gpunvme.nvme.DmaMappingException;
import io.gpunvme.nvme.memory.BusRange;
import io.gpunvme.nvme.memory.RemoteMemory;
import io.gpunvme.nvme.pci.DmaChecks;
import io.gpunvme.nvme.pci.HostPaths;
import io.gpunvme.nvme.pci.kmod.KmodAbi.Import;
import io.gpunvme.nvme.pci.kmod.KmodAbi.Pin;
import io.gpunvme.nvme.pci.kmod.KmodAbi.Release;
import io.gpunvme.nvme.pci.kmod.KmodAbi.Run;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.HashSet;
import java.util.Objects;
import java.util.Set;

/**
 * Memory that the module has pinned and imported for one function. Ranges and this may be closed in
 * any order. Safe for all threads.
 */
final class KmodRanges implements AutoCloseable {
  private static final System.Logger LOG = System.getLogger("io.gpunvme.nvme.pci.kmod");

  /** Enough for almost everything: behind an IOMMU a range is one run. */
  private static final long FIRST_ARRAY = 512;

  /** Of 4 KiB pages: 1 TiB in one range. */
  private static final long LONGEST_ARRAY = 1L << 28;

  private static final int ATTEMPTS = 8;

  private final KmodCalls calls;
  private final HostPaths paths;
  private final String name;
  private final int addressBits;
  private final Set<Long> handles = new HashSet<>();
  private boolean closed;

  KmodRanges(KmodCalls calls, HostPaths paths, String name, int addressBits) {
    this.calls = calls;
    this.paths = paths;
    this.name = name;
    this.addressBits = addressBits;
  }

  synchronized BusRange pin(MemorySegment memory) {
    requireOpen();
    DmaChecks.check(memory, Posix.pageSize());
    long bytes = memory.byteSize();
    String what = "%d bytes of memory at %Xh".formatted(bytes, memory.address());
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment pin = arena.allocate(Pin.SIZE, Long.BYTES);
      pin.set(JAVA_LONG_UNALIGNED, Pin.ADDRESS, memory.address());
      pin.set(JAVA_LONG_UNALIGNED, Pin.BYTES, bytes);
      Slots slots = new Slots(KmodAbi.PIN, pin, Pin.RUNS, Pin.MOST_RUNS, Pin.RUN_COUNT);
      MemorySegment array = request(arena, slots, what);
      long handle = taken(pin.get(JAVA_LONG_UNALIGNED, Pin.HANDLE));
      try {
        BusRuns runs = BusRuns.read(array, slots.count(), bytes, addressBits);
        return runs.range(memory, () -> release(handle));
      } catch (RuntimeException | Error e) {
        CloseAll.after(e, () -> release(handle));
        throw e;
      }
    }
  }

  /**
   * Imports the memory's dma-buf.
   *
   * @throws DmaMappingException if it has none, or the module or its owner refuses
   */
  synchronized BusRange importing(RemoteMemory memory) {
    requireOpen();
    long size = memory.size();
    if (size <= 0 || size % BusRange.GRANULE != 0) {
      throw new DmaMappingException(
          memory.name() + ": " + size + " bytes are not a multiple of 4096, and cannot be mapped");
    }
    try (DmaBuf shared = memory.exportDmaBuf();
        Arena arena = Arena.ofConfined()) {
      if (shared.size() != size) {
        throw new DmaMappingException(
            "%s has %d bytes, and its dma-buf is of %d"
                .formatted(memory.name(), size, shared.size()));
      }
      return importing(memory, shared, arena);
    }
  }

  private BusRange importing(RemoteMemory memory, DmaBuf shared, Arena arena) {
    String what = memory.name();
    MemorySegment wanted = arena.allocate(Import.SIZE, Long.BYTES);
    wanted.set(JAVA_INT_UNALIGNED, Import.FD, shared.fd());
    Slots slots =
        new Slots(KmodAbi.IMPORT, wanted, Import.RUNS, Import.MOST_RUNS, Import.RUN_COUNT);
    MemorySegment array = request(arena, slots, what);
    long handle = taken(wanted.get(JAVA_LONG_UNALIGNED, Import.HANDLE));
    try {
      long covered = wanted.get(JAVA_LONG_UNALIGNED, Import.BYTES);
      if (covered <= 0 || shared.offset() > covered - shared.size()) {
        throw new DmaMappingException(
            "%s: its dma-buf has %d bytes, and the memory would be %d bytes from %d on"
                .formatted(what, covered, shared.size(), shared.offset()));
      }
      BusRuns runs = BusRuns.read(array, slots.count(), covered, addressBits);
      int flags = wanted.get(JAVA_INT_UNALIGNED, Import.FLAGS);
      requireInPlace(memory, flags);
      LOG.log(
          System.Logger.Level.DEBUG,
          "{0}: {1} runs{2}{3}",
          what,
          runs.count(),
          (flags & Import.RAM) != 0 ? ", memory of this machine" : "",
          (flags & Import.REMAPPED) != 0 ? ", mapped by the module" : "");
      return runs.remote(shared.offset(), shared.size(), () -> release(handle));
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, () -> release(handle));
      throw e;
    }
  }

  private static void requireInPlace(RemoteMemory memory, int flags) {
    if ((flags & Import.RAM) != 0 && !memory.mayBeInHost()) {
      throw new DmaMappingException(
          memory.name()
              + " was moved to the host's memory by its driver, which cannot let the controller"
              + " reach the device's own: what the controller wrote would not arrive. A path"
              + " between the two without peer-to-peer access is the usual reason; `gpunvme doctor`"
              + " shows it");
    }
  }

  /** A request and where in its structure the array of runs is described. */
  private record Slots(
      long request, MemorySegment structure, long array, long room, long countOffset) {
    long count() {
      return Integer.toUnsignedLong(structure.get(JAVA_INT_UNALIGNED, countOffset));
    }
  }

  /** The array that the module has filled in. */
  private MemorySegment request(Arena arena, Slots slots, String what) {
    long room = FIRST_ARRAY;
    PosixException last = null;
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
      MemorySegment array = arena.allocate(room * Run.SIZE, Long.BYTES);
      slots.structure.set(JAVA_LONG_UNALIGNED, slots.array, array.address());
      slots.structure.set(JAVA_INT_UNALIGNED, slots.room, (int) room);
      try {
        calls.ioctl(slots.request, slots.structure);
        return array;
      } catch (PosixException e) {
        // How many runs there are can change until the pages are pinned again.
        long wanted = Math.max(slots.count(), 2 * room);
        if (e.errno() != Errno.ENOSPC || wanted > LONGEST_ARRAY) {
          throw refusal(what, e);
        }
        room = wanted;
        last = e;
      }
    }
    throw new DmaMappingException(
        what + ": the module found more runs at each of " + ATTEMPTS + " attempts",
        Objects.requireNonNull(last));
  }

  private RuntimeException refusal(String what, PosixException e) {
    // Whoever shares a dma-buf may say ENODEV, too.
    if (e.errno() == Errno.ENODEV && gone()) {
      DeviceGoneException typed = new DeviceGoneException(what + ": " + name + " is gone");
      typed.initCause(e);
      return typed;
    }
    return new DmaMappingException(KmodRefusals.memory(what, e, paths, usage()), e);
  }

  private boolean gone() {
    try {
      KmodInfo.ask(calls, name);
      return false;
    } catch (PosixException e) {
      return e.errno() == Errno.ENODEV;
    }
  }

  private String usage() {
    try {
      KmodInfo now = KmodInfo.ask(calls, name);
      return "%d of %d bytes and %d of %d ranges are in use"
          .formatted(now.bytes(), now.mostBytes(), now.ranges(), now.mostRanges());
    } catch (RuntimeException e) {
      return "how much is in use is not known";
    }
  }

  private long taken(long handle) {
    if (handle == 0 || !handles.add(handle)) {
      throw new DmaMappingException(
          "the module gpunvme returned the handle " + handle + ", which is 0 or in use");
    }
    return handle;
  }

  private synchronized void release(long handle) {
    if (!handles.remove(handle)) {
      return; // closed before the range was
    }
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment release = arena.allocate(Release.SIZE, Long.BYTES);
      release.set(JAVA_LONG_UNALIGNED, Release.HANDLE, handle);
      calls.ioctl(KmodAbi.RELEASE, release);
    } catch (PosixException e) {
      throw new DmaMappingException(name + ": releasing memory failed: " + e.getMessage(), e);
    }
  }

  private void requireOpen() {
    if (closed) {
      throw new DmaMappingException(name + " is closed; nothing can be mapped any more");
    }
  }

  /** Forgets the ranges: the module releases them when the file is closed. Idempotent. */
  @Override
  public synchronized void close() {
    closed = true;
    if (!handles.isEmpty()) {
      LOG.log(System.Logger.Level.DEBUG, "{0} ends with {1} ranges", name, handles.size());
    }
    handles.clear();
  }
}
