package io.gpunvme.capi;

import io.gpunvme.core.accel.Accelerator;
import io.gpunvme.core.accel.DeviceBuffer;
import io.gpunvme.core.accel.GpuAccelerator;
import io.gpunvme.cuda.CudaException;
import io.gpunvme.cuda.PointerInfo;
import io.gpunvme.nvme.InvalidRequestException;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Map;
import java.util.concurrent.ConcurrentSkipListMap;
import org.jspecify.annotations.Nullable;

/**
 * The memory of one accelerator: whose an address is, and how transfers get there. Safe for all
 * threads.
 */
final class Memory {
  /** Pinned memory through which host memory is reached, bytes of a piece. */
  static final long PIECE = 8 << 20;

  private static final int MOST_PIECES = 4;

  private final Accelerator accelerator;
  private final @Nullable Windows windows;

  /** What {@link #allocate} gave, by address. */
  private final ConcurrentSkipListMap<Long, DeviceBuffer> own = new ConcurrentSkipListMap<>();

  private final Deque<DeviceBuffer> pieces = new ArrayDeque<>();

  Memory(Accelerator accelerator) {
    this.accelerator = accelerator;
    windows = accelerator instanceof GpuAccelerator gpu ? new Windows(gpu) : null;
  }

  Accelerator accelerator() {
    return accelerator;
  }

  /** Takes memory; returns its address. */
  long allocate(long bytes) {
    DeviceBuffer buffer = accelerator.allocate(bytes);
    own.put(buffer.deviceAddress(), buffer);
    return buffer.deviceAddress();
  }

  /**
   * Frees what {@link #allocate} gave.
   *
   * @throws InvalidRequestException if it did not give that
   */
  void free(long address) {
    DeviceBuffer buffer = own.remove(address);
    if (buffer == null) {
      throw new InvalidRequestException("%Xh was not allocated here".formatted(address));
    }
    buffer.close();
  }

  /**
   * Where an address is; null if it is host memory that transfers do not reach.
   *
   * @throws InvalidRequestException if the range leaves memory that is known
   */
  @Nullable Place place(long address, long bytes) {
    if (address == 0) {
      throw new InvalidRequestException("the address is 0");
    }
    Map.Entry<Long, DeviceBuffer> there = own.floorEntry(address);
    if (there != null) {
      long offset = address - there.getKey();
      DeviceBuffer buffer = there.getValue();
      if (offset < buffer.size()) {
        if (bytes > buffer.size() - offset) {
          throw new InvalidRequestException(
              "%d bytes at %Xh leave the %d bytes that were allocated there"
                  .formatted(bytes, address, buffer.size()));
        }
        return new Place(buffer, offset, () -> {});
      }
    }
    Windows gpu = windows;
    if (gpu == null) {
      // Whoever frees host memory tells nobody: it is mapped for one transfer only.
      var foreign = accelerator.foreign(address, bytes);
      return new Place(foreign.buffer(), foreign.offset(), foreign::close);
    }
    PointerInfo info = info((GpuAccelerator) accelerator, address);
    return info == null ? null : gpu.place(info, address, bytes);
  }

  private static @Nullable PointerInfo info(GpuAccelerator gpu, long address) {
    try {
      PointerInfo info = gpu.context().pointerInfo(address);
      return info.kind() == PointerInfo.Kind.DEVICE ? info : null;
    } catch (CudaException e) {
      if (e.code() == CudaException.INVALID_VALUE) {
        return null;
      }
      throw e;
    }
  }

  /** Pinned memory of {@link #PIECE} bytes. */
  DeviceBuffer takePiece() {
    synchronized (pieces) {
      DeviceBuffer there = pieces.poll();
      if (there != null) {
        return there;
      }
    }
    return accelerator.allocatePinned(PIECE);
  }

  void givePiece(DeviceBuffer piece) {
    synchronized (pieces) {
      if (pieces.size() < MOST_PIECES) {
        pieces.push(piece);
        return;
      }
    }
    piece.close();
  }
}
