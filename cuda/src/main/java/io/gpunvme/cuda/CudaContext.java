package io.gpunvme.cuda;

import io.gpunvme.base.CloseAll;
import java.lang.foreign.MemorySegment;
import java.util.function.Supplier;

/**
 * A hold on a device's primary context, and the owner of everything made through it: {@link #close}
 * frees everything that is still open, and closing such an object later does nothing.
 *
 * <p>Safe for all threads. Every call of this module makes the context current for the calling
 * thread and leaves it so. Two of these on one device share the context, but each owns its own
 * objects.
 *
 * <p>Allocating, registering, loading and all freeing may wait until the GPU is idle. While a
 * kernel runs that waits for the host, they can wait for ever: call them before its launch or after
 * its end.
 */
public final class CudaContext implements AutoCloseable {
  private final DriverApi api;
  private final CudaDevice device;
  private final int deviceHandle;
  private final long handle;
  private final int highestPriority;
  private final TransferStreams transfers;
  private final ResourceRegistry resources = new ResourceRegistry();
  private final Lifetime lifetime;

  private CudaContext(
      DriverApi api, CudaDevice device, int deviceHandle, long handle, int highestPriority) {
    this.api = api;
    this.device = device;
    this.deviceHandle = deviceHandle;
    this.handle = handle;
    this.highestPriority = highestPriority;
    transfers = new TransferStreams(api.streams(), highestPriority);
    lifetime = new Lifetime("the context of CUDA device " + device.ordinal());
  }

  static CudaContext open(DriverApi api, CudaDevice device, int deviceHandle) {
    long handle = api.contexts().retainPrimary(deviceHandle);
    try {
      api.contexts().setCurrent(handle);
      return new CudaContext(api, device, deviceHandle, handle, api.contexts().highestPriority());
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, () -> api.contexts().releasePrimary(deviceHandle));
      throw e;
    }
  }

  /** The device it is on. */
  public CudaDevice device() {
    return device;
  }

  /** Makes it the current context of this thread, for calls of other libraries. */
  public void makeCurrent() {
    inside(() -> {});
  }

  /** GPU memory, aligned to at least 256 bytes. */
  public DeviceMemory allocate(long bytes) {
    return make(() -> DeviceMemory.allocate(this, bytes, 0));
  }

  /**
   * GPU memory.
   *
   * @param bytes &gt; 0
   * @param alignment of its address, a power of two
   */
  public DeviceMemory allocate(long bytes, long alignment) {
    return make(() -> DeviceMemory.allocate(this, bytes, alignment));
  }

  /**
   * CUDA's information about an address.
   *
   * @throws CudaException {@link CudaException#INVALID_VALUE} if CUDA does not know the address
   */
  public PointerInfo pointerInfo(long address) {
    return getInside(() -> api.memory().pointer(address));
  }

  /**
   * The same for a range. Memory that was mapped in several adjacent pieces (cuMemMap) counts as
   * one within the range; its id is made from theirs.
   *
   * @param bytes &gt; 0
   */
  public PointerInfo pointerInfo(long address, long bytes) {
    return getInside(() -> api.memory().pointer(address, bytes));
  }

  /** Whether memory belongs to this context, or to its device and to no context. */
  public boolean reaches(PointerInfo memory) {
    return memory.device() == device.ordinal()
        && (memory.context() == 0 || memory.context() == handle);
  }

  /**
   * Memory of this device that another library allocated. Closing it frees nothing; the library
   * keeps the memory until then.
   *
   * @param bytes &gt; 0; neither this nor the address is checked, see {@link #pointerInfo}
   */
  public DeviceMemory foreignMemory(long address, long bytes) {
    return make(() -> DeviceMemory.foreign(this, address, bytes));
  }

  /**
   * A stream of this device that another library made, or one of the driver's default streams (0,
   * 1, 2). Closing it destroys nothing; the library keeps the stream until then.
   */
  public CudaStream foreignStream(long handle) {
    return make(() -> new CudaStream(this, handle, false));
  }

  /**
   * An event of this device that another library made. Closing it destroys nothing; the library
   * keeps the event until then.
   */
  public CudaEvent foreignEvent(long handle) {
    return make(() -> new CudaEvent(this, handle, false));
  }

  /** Host memory that the GPU reaches, and with which copies are fastest; {@code bytes} &gt; 0. */
  public PinnedMemory allocatePinned(long bytes) {
    return make(() -> PinnedMemory.allocate(this, bytes));
  }

  /**
   * Pins memory of the caller for the GPU.
   *
   * @param memory native; page-aligned memory is best, the last page is pinned whole
   * @throws CudaException {@link CudaException#HOST_MEMORY_ALREADY_REGISTERED} if part of it is
   *     registered already; others if the kernel cannot pin it (a mapped file, or I/O memory on
   *     some kernels)
   */
  public RegisteredMemory register(MemorySegment memory, RegisterFlag... flags) {
    return make(() -> RegisteredMemory.register(this, memory, flags));
  }

  /**
   * Where this device finds memory that is pinned already, by this context or, with {@link
   * RegisterFlag#PORTABLE}, by that of another device.
   *
   * @throws CudaException if it is not pinned for this context
   */
  public long deviceAddressOf(MemorySegment pinned) {
    return getInside(() -> api.memory().devicePointer(pinned));
  }

  /** A stream that is independent of the default stream. */
  public CudaStream stream() {
    return stream(StreamPriority.NORMAL);
  }

  /** A stream with a priority. */
  public CudaStream stream(StreamPriority priority) {
    int number = priority.number(highestPriority);
    return make(() -> new CudaStream(this, api.streams().create(number), true));
  }

  /** An event that cannot measure time, the cheapest. */
  public CudaEvent event() {
    return make(() -> new CudaEvent(this, api.streams().createEvent(false), true));
  }

  /** An event for {@link CudaEvent#millisecondsSince}. */
  public CudaEvent timingEvent() {
    return make(() -> new CudaEvent(this, api.streams().createEvent(true), true));
  }

  /**
   * Loads device code.
   *
   * @param ptxOrCubin PTX text, or an image for this GPU
   * @throws CudaModuleException with the compiler's log
   */
  public CudaModule loadModule(byte[] ptxOrCubin) {
    return make(() -> CudaModule.load(this, ptxOrCubin));
  }

  /**
   * Attaches a resource of another library, which is closed with the context at the latest.
   *
   * @param what names it in errors
   * @param closing run once, when the attachment or the context is closed, with the context
   *     current; an exception from it refuses the close, which can be tried again
   */
  public ContextAttachment attach(String what, Runnable closing) {
    return make(() -> new ContextAttachment(this, what, closing));
  }

  /** Waits, without a limit, for all work of the context, whoever started it. */
  public void synchronize() {
    inside(api.contexts()::synchronize);
  }

  /** Memory of the device that is free now. */
  public MemoryInfo memoryInfo() {
    return getInside(api.contexts()::memoryInfo);
  }

  /** The open memory of this context, without that of other libraries. */
  public ContextMemory memoryInUse() {
    return resources.memory();
  }

  /** Whether the driver has {@link CudaStream#copyBatchAsync}: CUDA 12.8 and newer. */
  public boolean hasBatchCopies() {
    return api.copies().hasBatch();
  }

  /**
   * Makes writes of other devices into memory of this context that happened before this call
   * visible to {@code scope}; needed where {@link GpuDirect#ordering} is weaker than it.
   *
   * @param scope {@link WritesOrdering#OWNER} or {@link WritesOrdering#ALL_DEVICES}
   */
  public void flushGpuDirectWrites(WritesOrdering scope) {
    if (scope == WritesOrdering.NONE) {
      throw new IllegalArgumentException("a flush needs a scope other than NONE");
    }
    inside(() -> api.contexts().flushGpuDirectWrites(scope.number()));
  }

  DriverApi api() {
    return api;
  }

  /** Makes it current; the caller keeps it open, by itself or by something that it owns. */
  void enter() {
    api.contexts().setCurrent(handle);
  }

  /** For copies that are waited for. */
  TransferStreams transfers() {
    return transfers;
  }

  void forget(ContextResource resource) {
    resources.remove(resource);
  }

  private void inside(Runnable call) {
    lifetime.acquire();
    try {
      enter();
      call.run();
    } finally {
      lifetime.release();
    }
  }

  private <T> T getInside(Supplier<T> call) {
    lifetime.acquire();
    try {
      enter();
      return call.get();
    } finally {
      lifetime.release();
    }
  }

  private <R extends ContextResource> R make(Supplier<R> maker) {
    return getInside(
        () -> {
          R made = maker.get();
          if (!resources.add(made)) {
            made.close();
            throw new IllegalStateException("the context is being closed");
          }
          return made;
        });
  }

  /**
   * Frees everything that is still open, the newest first, and releases the primary context; a
   * second call does nothing. Before this, the caller must end kernels and copies that still run.
   *
   * @throws IllegalStateException if another thread is inside a call; part may be freed then, and
   *     closing can be tried again
   * @throws CudaException the first error of freeing, with the others suppressed; everything is
   *     closed nevertheless
   */
  @Override
  public void close() {
    if (!resources.beginClose()) {
      return;
    }
    CloseAll steps = new CloseAll();
    for (ContextResource resource : resources.newestFirst()) {
      steps.run(resource::close);
    }
    if (!resources.isEmpty() || !endLifetime()) {
      resources.cancelClose();
      RuntimeException inUse = lifetime.inUse();
      Throwable failure = steps.failure();
      if (failure != null) {
        inUse.addSuppressed(failure);
      }
      throw inUse;
    }
    steps.run(this::enter);
    transfers.close(steps);
    steps.run(() -> api.contexts().releasePrimary(deviceHandle));
    endUnlessGone(steps);
  }

  /** When the driver or the context is gone already, what was in it is gone too. */
  static void endUnlessGone(CloseAll steps) {
    boolean gone =
        steps.failure() instanceof CudaException cuda
            && (cuda.code() == CudaException.DEINITIALIZED
                || cuda.code() == CudaException.CONTEXT_IS_DESTROYED);
    if (!gone) {
      steps.<RuntimeException>end();
    }
  }

  private boolean endLifetime() {
    try {
      return lifetime.end();
    } catch (IllegalStateException e) {
      return false;
    }
  }
}
