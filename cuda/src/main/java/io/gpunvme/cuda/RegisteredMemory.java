package io.gpunvme.cuda;

import io.gpunvme.base.CloseAll;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;

/**
 * Host memory of others that is pinned for the GPU until this is closed. Close this before the
 * memory is freed. Safe for all threads.
 */
public final class RegisteredMemory extends ContextResource {
  private final MemorySegment segment;
  private final long deviceAddress;

  private RegisteredMemory(CudaContext context, MemorySegment segment, long deviceAddress) {
    super(
        context,
        segment.byteSize() + " bytes of registered memory at " + Driver.hex(segment.address()));
    this.segment = segment;
    this.deviceAddress = deviceAddress;
  }

  static RegisteredMemory register(
      CudaContext context, MemorySegment memory, RegisterFlag... flags) {
    if (!memory.isNative() || memory.byteSize() == 0) {
      throw new IllegalArgumentException("only native memory of at least 1 byte can be registered");
    }
    int bits = Arrays.stream(flags).mapToInt(RegisterFlag::bit).reduce(0, (a, b) -> a | b);
    MemoryCalls calls = context.api().memory();
    calls.register(memory, bits);
    return CloseAll.orClose(
        () -> new RegisteredMemory(context, memory, calls.devicePointer(memory)),
        () -> calls.unregister(memory.address()));
  }

  /** The memory, as it was given. */
  public MemorySegment segment() {
    return segment;
  }

  /**
   * Its address for kernels and {@link CopyBatch}.
   *
   * @throws IllegalStateException if it is closed
   */
  public long deviceAddress() {
    requireOpen();
    return deviceAddress;
  }

  @Override
  long pinnedBytes() {
    return segment.byteSize();
  }

  @Override
  void free() {
    api().memory().unregister(segment.address());
  }
}
