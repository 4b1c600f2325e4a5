package io.gpunvme.capi;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.cuda.CudaContext;
import io.gpunvme.cuda.PointerInfo;
import io.gpunvme.gpu.accel.ForeignMemory;
import io.gpunvme.gpu.accel.GpuAccelerator;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * GPU memory of other libraries, as transfers take it. What controllers and libraries know of a
 * piece takes a while to make, so pieces are kept: whole allocations, or large parts of larger
 * ones. Safe for all threads.
 */
final class PointerWindows {
  /** Allocations up to this are one window. */
  private static final long WHOLE = 1L << 30;

  /** Windows of larger ones begin and end at multiples of this, or where the allocation does. */
  private static final long PART = 256 << 20;

  /** How many are kept that nobody uses. */
  private static final int MOST = 32;

  private final GpuAccelerator gpu;

  /** Least recently used first. */
  private final Map<Key, Window> windows = new LinkedHashMap<>(2 * MOST, 0.75f, true);

  PointerWindows(GpuAccelerator gpu) {
    this.gpu = gpu;
  }

  /**
   * What a window is of: the number of an allocation changes when its address is given out again.
   */
  private record Key(long id, long start, long end) {}

  private static final class Window {
    private final ForeignMemory memory;
    private int users;

    Window(ForeignMemory memory) {
      this.memory = memory;
    }
  }

  /** Of the GPU that has the memory. */
  CudaContext context() {
    return gpu.context();
  }

  /**
   * A range of an allocation.
   *
   * @param memory of the GPU
   * @throws InvalidRequestException if it leaves the allocation
   */
  Place place(Memory memory, PointerInfo info, long address, long bytes) {
    if (!gpu.context().reaches(info)) {
      throw new InvalidRequestException(
          ("%Xh is memory of GPU %d in CUDA context %Xh; transfers reach the primary context of GPU"
                  + " %d, which the CUDA runtime uses")
              .formatted(address, info.device(), info.context(), gpu.context().device().ordinal()));
    }
    if (!info.contains(address, bytes)) {
      throw new InvalidRequestException(
          "%d bytes at %Xh are not inside their allocation, %d bytes at %Xh"
              .formatted(bytes, address, info.size(), info.start()));
    }
    if (info.mapped()) {
      return passing(memory, info);
    }
    Key key = key(info, address, bytes);
    Window window = use(key);
    return new Place(
        memory,
        window.memory.buffer(),
        key.start - window.memory.offset(),
        key.start,
        key.end,
        () -> release(window));
  }

  /** Of memory whose addresses can become those of other memory: for one transfer. */
  private Place passing(Memory memory, PointerInfo info) {
    ForeignMemory foreign = gpu.foreign(info.start(), info.size());
    return new Place(
        memory,
        foreign.buffer(),
        info.start() - foreign.offset(),
        info.start(),
        info.start() + info.size(),
        foreign::close);
  }

  private static Key key(PointerInfo info, long address, long bytes) {
    long end = info.start() + info.size();
    if (info.size() <= WHOLE) {
      return new Key(info.id(), info.start(), end);
    }
    long first = address & -PART;
    long last = address + bytes + PART - 1 & -PART;
    return new Key(info.id(), Math.max(info.start(), first), Math.min(end, last));
  }

  private synchronized Window use(Key key) {
    Window window = windows.get(key);
    if (window == null) {
      window = new Window(gpu.foreign(key.start, key.end - key.start));
      windows.put(key, window);
    }
    window.users++;
    return window;
  }

  private synchronized void release(Window window) {
    window.users--;
    if (windows.size() <= MOST) {
      return;
    }
    long unused = windows.values().stream().filter(w -> w.users == 0).count();
    Iterator<Window> eldest = windows.values().iterator();
    while (unused > MOST) {
      Window w = eldest.next();
      if (w.users == 0) {
        eldest.remove();
        w.memory.close();
        unused--;
      }
    }
  }
}
