package io.gpunvme.capi;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.cuda.CudaContext;
import io.gpunvme.cuda.CudaEvent;
import io.gpunvme.cuda.CudaException;
import io.gpunvme.cuda.CudaStream;
import io.gpunvme.cuda.PointerInfo;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.models.tensor.Dequantizer;
import io.gpunvme.storage.StorageOptions;
import io.gpunvme.storage.path.StorageException;
import io.gpunvme.storage.path.StorageException.Kind;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.function.IntFunction;
import org.jspecify.annotations.Nullable;

/**
 * The memory of one accelerator: whose an address is, and how transfers get there. Safe for all
 * threads.
 */
final class Memory {
  /** Of storages: the program, and what it uses, call CUDA as they like. */
  static final StorageOptions OPTIONS = StorageOptions.defaults().withForeignCuda(true);

  /** What short reads need less of and long ones are fast with. */
  private static final long PIECE = 4 << 20;

  private static final int MOST_PIECES = 16;

  private final String name;
  private final Accelerator accelerator;

  /** The memory of other GPUs of this process, by their ordinals. */
  private final IntFunction<Memory> ofGpu;

  private final @Nullable PointerWindows windows;

  /** What {@link #allocate} gave, by address. */
  private final ConcurrentSkipListMap<Long, DeviceBuffer> own = new ConcurrentSkipListMap<>();

  /** Those that belong to no storage. */
  private final Set<Long> forItself = ConcurrentHashMap.newKeySet();

  private final HostPieces pieces;

  /** Null until somebody asks; set by who holds this. */
  private volatile @Nullable Dequantizer dequantizer;

  Memory(String name, Accelerator accelerator, IntFunction<Memory> ofGpu) {
    this.name = name;
    this.accelerator = accelerator;
    this.ofGpu = ofGpu;
    pieces = new HostPieces(accelerator, PIECE, MOST_PIECES);
    windows = accelerator.cuda().map(PointerWindows::new).orElse(null);
  }

  Accelerator accelerator() {
    return accelerator;
  }

  /** {@code gpu:1} or {@code cpu}. */
  String name() {
    return name;
  }

  /**
   * A stream of the caller's.
   *
   * @param user for messages
   * @throws StorageException if there are none
   */
  CudaStream stream(long handle, String user) {
    return context("has no streams; call without one", user).foreignStream(handle);
  }

  /**
   * An event of the caller's.
   *
   * @param user for messages
   * @throws StorageException if there are none
   */
  CudaEvent event(long handle, String user) {
    return context("has no events", user).foreignEvent(handle);
  }

  private CudaContext context(String lack, String user) {
    return accelerator
        .cuda()
        .orElseThrow(
            () ->
                new StorageException(
                    Kind.UNSUPPORTED, user, -1, -1, accelerator.name() + " " + lack, null))
        .context();
  }

  /** Takes memory; returns its address. */
  long allocate(long bytes) {
    DeviceBuffer buffer = accelerator.allocate(bytes);
    own.put(buffer.deviceAddress(), buffer);
    return buffer.deviceAddress();
  }

  /** The same for memory that belongs to no storage. */
  long allocateForItself(long bytes) {
    long address = allocate(bytes);
    forItself.add(address);
    return address;
  }

  /**
   * Frees what {@link #allocateForItself} gave.
   *
   * @throws InvalidRequestException if it did not give that
   */
  void freeForItself(long address) {
    if (!forItself.remove(address)) {
      throw new InvalidRequestException(
          "%Xh was not allocated by gpunvme_memory_allocate".formatted(address));
    }
    free(address);
  }

  /**
   * Frees what {@link #allocate} gave.
   *
   * @throws InvalidRequestException if it did not give that
   */
  void free(long address) {
    DeviceBuffer buffer = own.remove(address);
    if (buffer == null) {
      throw new InvalidRequestException(
          "%Xh was not allocated by gpunvme_memory_allocate".formatted(address));
    }
    buffer.close();
  }

  /**
   * Where an address is; null if it is host memory that transfers do not reach.
   *
   * @throws InvalidRequestException if the range leaves memory that is known, or is memory of
   *     another GPU
   */
  @Nullable Place place(long address, long bytes) {
    Place place = find(address, bytes);
    if (place != null && place.memory() != this) {
      throw new InvalidRequestException(
          "%Xh is memory of %s, and this was opened for %s: open it for the one that has the memory"
              .formatted(address, place.memory().accelerator.name(), accelerator.name()));
    }
    return place;
  }

  /**
   * The same, of whichever GPU of this process.
   *
   * @throws InvalidRequestException if the range leaves memory that is known
   */
  @Nullable Place find(long address, long bytes) {
    if (address == 0) {
      throw new InvalidRequestException("the address is 0");
    }
    CTypes.requireAddress(address, bytes);
    Place there = allocated(address, bytes);
    if (there != null) {
      return there;
    }
    PointerWindows gpu = windows;
    if (gpu == null) {
      // Whoever frees host memory tells nobody: it is mapped for one transfer only.
      var foreign = accelerator.foreign(address, bytes);
      return new Place(
          this,
          foreign.buffer(),
          address - foreign.offset(),
          address,
          address + bytes,
          foreign::close);
    }
    PointerInfo info = info(gpu.context(), address, bytes);
    if (info == null) {
      return null;
    }
    if (info.device() != gpu.context().device().ordinal()) {
      return ofGpu.apply(info.device()).find(address, bytes);
    }
    return gpu.place(this, info, address, bytes);
  }

  /** In what {@link #allocate} gave; null if it is not. */
  private @Nullable Place allocated(long address, long bytes) {
    Map.Entry<Long, DeviceBuffer> there = own.floorEntry(address);
    if (there == null || address - there.getKey() >= there.getValue().size()) {
      return null;
    }
    long start = there.getKey();
    DeviceBuffer buffer = there.getValue();
    if (bytes > buffer.size() - (address - start)) {
      throw new InvalidRequestException(
          "%d bytes at %Xh are not inside the %d bytes that were allocated there"
              .formatted(bytes, address, buffer.size()));
    }
    return new Place(this, buffer, start, start, start + buffer.size(), () -> {});
  }

  private static @Nullable PointerInfo info(CudaContext gpu, long address, long bytes) {
    try {
      PointerInfo info = gpu.pointerInfo(address, bytes);
      return info.kind() == PointerInfo.Kind.DEVICE ? info : null;
    } catch (CudaException e) {
      if (e.code() == CudaException.INVALID_VALUE) {
        return null;
      }
      throw e;
    }
  }

  /** What makes floats of tensors in it, loaded when it is first asked for. */
  Dequantizer dequantizer() {
    Dequantizer there = dequantizer;
    return there == null ? loadDequantizer() : there;
  }

  private synchronized Dequantizer loadDequantizer() {
    Dequantizer there = dequantizer;
    if (there == null) {
      there = Dequantizer.open(accelerator);
      dequantizer = there;
    }
    return there;
  }

  /** Pinned memory through which host memory is reached. */
  HostPieces pieces() {
    return pieces;
  }
}
