package io.gpunvme.gpu.accel;

import io.gpunvme.base.CloseAll;
import io.gpunvme.cuda.CudaContext;
import io.gpunvme.cuda.CudaDevice;
import io.gpunvme.cuda.RegisterFlag;
import io.gpunvme.cuda.RegisteredMemory;
import io.gpunvme.nvme.DmaMappingException;
import java.lang.foreign.MemorySegment;
import java.util.HashMap;
import java.util.Map;

/**
 * Host memory that CUDA has pinned for all GPUs of this process. CUDA refuses to register a range
 * twice, whichever GPU asks, so accelerators share registrations: all of them may need the
 * doorbells of one SSD. A registration keeps the primary context that it was made in until its last
 * user is gone, because the accelerator that asked first may be closed before others. Safe for all
 * threads.
 */
final class HostRegistration {
  /** Ranges are told apart by their driver library and first byte. */
  private record Key(Object driver, long address) {}

  /** Guarded by itself. */
  private static final Map<Key, HostRegistration> ALL = new HashMap<>();

  private final Key key;
  private final CudaContext context;
  private final RegisteredMemory memory;

  /** Guarded by {@link #ALL}. */
  private int users;

  private HostRegistration(Key key, CudaContext context, RegisteredMemory memory) {
    this.key = key;
    this.context = context;
    this.memory = memory;
  }

  /**
   * A registration of a range, made by the first who asks for it. Whoever calls this has no kernel
   * of the device run meanwhile.
   *
   * @throws io.gpunvme.cuda.CudaException if CUDA cannot pin it
   * @throws DmaMappingException if less of it is registered already
   */
  static HostRegistration of(CudaDevice device, MemorySegment range, RegisterFlag... flags) {
    Key key = new Key(device.driver(), range.address());
    synchronized (ALL) {
      HostRegistration there = ALL.get(key);
      if (there == null) {
        there = register(key, device, range, flags);
        ALL.put(key, there);
      } else {
        there.requireBytes(range.byteSize());
      }
      there.users++;
      return there;
    }
  }

  private static HostRegistration register(
      Key key, CudaDevice device, MemorySegment range, RegisterFlag... flags) {
    CudaContext context = device.openPrimary();
    return CloseAll.orClose(
        () -> new HostRegistration(key, context, context.register(range, flags)), context::close);
  }

  /**
   * Checks that it is long enough for one more user.
   *
   * @throws DmaMappingException if it is not
   */
  void requireBytes(long bytes) {
    if (bytes() < bytes) {
      throw new DmaMappingException(
          "%d bytes at %Xh are pinned for CUDA already, but only %d of them"
              .formatted(bytes, key.address, bytes()));
    }
  }

  /** The length of the range that is registered. */
  long bytes() {
    return memory.segment().byteSize();
  }

  /** Where the device of a context finds the first byte. */
  long addressIn(CudaContext user) {
    return user.deviceAddressOf(memory.segment());
  }

  /**
   * A user is done with it; the last one ends it, and has no kernel of its device run meanwhile.
   */
  void release() {
    synchronized (ALL) {
      users--;
      if (users == 0) {
        ALL.remove(key);
        context.close();
      }
    }
  }
}
