package io.gpunvme.gpu.accel;

import io.gpunvme.base.CloseAll;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.cuda.ContextMemory;
import io.gpunvme.cuda.CudaContext;
import io.gpunvme.cuda.CudaDevice;
import io.gpunvme.cuda.CudaException;
import io.gpunvme.cuda.DeviceMemory;
import io.gpunvme.cuda.PinnedMemory;
import io.gpunvme.cuda.PointerInfo;
import io.gpunvme.cuda.RegisterFlag;
import io.gpunvme.cuda.RegisteredMemory;
import io.gpunvme.ffi.SharedMemory;
import io.gpunvme.nvme.DmaMappingException;
import io.gpunvme.nvme.memory.BusMapper;
import io.gpunvme.nvme.memory.BusRange;
import io.gpunvme.nvme.pci.HostPaths;
import io.gpunvme.nvme.pci.NumaHome;
import io.gpunvme.nvme.pci.NumaOption;
import io.gpunvme.nvme.pci.PciAddress;
import java.lang.foreign.MemorySegment;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;

/**
 * A CUDA GPU. It uses the GPU's primary context, which it shares with every other CUDA user of this
 * process.
 *
 * <p>The driver allocates and frees memory only when no kernel runs. While a kernel runs that was
 * announced by {@link #kernelRun}, memory freed here is really freed after the kernel, and an
 * allocation waits for the kernel's end, for 10 s at most. Other code in this process that calls
 * CUDA to allocate or free memory waits for such kernels, too. Such a kernel may itself wait for an
 * embedded SSD, which needs the driver if its data is in GPU memory: then the call returns only
 * when the kernel gives up. {@code InitiatorOptions.withForeignCuda} keeps the data in host memory.
 */
public final class GpuAccelerator implements Accelerator {
  /**
   * The variable that names the NUMA node of pinned memory: {@code auto}, {@code off}, a number.
   */
  public static final String NUMA_VARIABLE = "GPUNVME_GPU_NUMA";

  private static final int PAGE = 4096;

  /** What something weighs that waits to be closed, so that not too many do. */
  private static final long CLOSING_BYTES = 1 << 20;

  private final CudaContext context;
  private final NumaHome home;
  private final Staging staging;
  private final String name;
  private final Set<DeviceBuffer> buffers = ConcurrentHashMap.newKeySet();

  /** Those of this accelerator, by address; guarded by itself. */
  private final Map<Long, Registration> registrations = new HashMap<>();

  /** Guarded by itself. */
  private final Map<String, Object> shared = new HashMap<>();

  private final KernelPauses pauses;
  private final CopyStock stock;
  private volatile boolean closed;

  /** Guarded by this. */
  private boolean gone;

  // Only ever set; who allocates for such a controller has set it before.
  private volatile boolean pinDescriptors;

  private GpuAccelerator(CudaContext context, NumaHome home) {
    this.context = context;
    this.home = home;
    this.name = name(context.device());
    try (var _ = home.memory()) {
      this.staging = new Staging(context);
    }
    this.pauses = DevicePauses.take(context.device());
    this.stock = new CopyStock(context, home, pauses);
  }

  /** Where there are several, it says which. */
  private static String name(CudaDevice device) {
    return device.only() ? device.name() : AcceleratorName.of(device) + " " + device.name();
  }

  /** Opens the GPU that {@link Accelerators#open} calls {@code gpu}; fails as that does. */
  public static GpuAccelerator open() {
    return (GpuAccelerator) Accelerators.open("gpu").accelerator();
  }

  /**
   * Opens a GPU. {@value #NUMA_VARIABLE} says where its pinned memory is.
   *
   * @throws InvalidRequestException if the variable makes no sense, or names a node that is not
   *     there
   */
  public static GpuAccelerator open(CudaDevice device) {
    return open(device, System.getenv(), HostPaths.host());
  }

  static GpuAccelerator open(CudaDevice device, Map<String, String> environment, HostPaths paths) {
    NumaHome home = home(device, environment.getOrDefault(NUMA_VARIABLE, ""), paths);
    CudaContext context = device.openPrimary();
    return CloseAll.orClose(() -> new GpuAccelerator(context, home), context::close);
  }

  private static NumaHome home(CudaDevice device, String option, HostPaths paths) {
    try {
      NumaOption asked = option.isEmpty() ? NumaOption.AUTO : NumaOption.parse(option);
      return PciAddress.find(device.pciBusId())
          .map(address -> NumaHome.ofPci(paths, address, asked))
          .orElse(NumaHome.NONE);
    } catch (InvalidRequestException e) {
      throw new InvalidRequestException(NUMA_VARIABLE + ": " + e.getMessage());
    }
  }

  @Override
  public NumaHome home() {
    return home;
  }

  @Override
  public String name() {
    return name;
  }

  @Override
  public boolean gpu() {
    return true;
  }

  @Override
  public Optional<GpuAccelerator> cuda() {
    return Optional.of(this);
  }

  /** The context, for kernels and streams; closed with this accelerator. */
  public CudaContext context() {
    return context;
  }

  @Override
  public DeviceBuffer allocateUncleared(long bytes) {
    requireOpen();
    return keep(new GpuBuffer(take(bytes), true, true));
  }

  @Override
  public long availableBytes() {
    return context.memoryInfo().free();
  }

  @Override
  public MemoryInUse memoryInUse() {
    ContextMemory memory = context.memoryInUse();
    synchronized (registrations) {
      long registered = registrations.values().stream().mapToLong(r -> r.memory.bytes()).sum();
      return new MemoryInUse(memory.device(), memory.pinned() + registered);
    }
  }

  @Override
  public DeviceBuffer allocate(long bytes) {
    requireOpen();
    DeviceMemory memory = take(bytes);
    try {
      memory.fill((byte) 0);
      return keep(new GpuBuffer(memory, true, true));
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, () -> pauses.free(memory.size(), memory::close));
      throw e;
    }
  }

  private DeviceMemory take(long bytes) {
    return pauses.take(() -> context.allocate(pages(bytes), PAGE));
  }

  /**
   * {@inheritDoc} For a controller in another process, pinned memory is a memfd, which CUDA
   * registers.
   */
  @Override
  public void servePinned(BusMapper controller) {
    if (controller.needsDescriptors()) {
      pinDescriptors = true;
    }
  }

  @Override
  public DeviceBuffer allocatePinned(long bytes) {
    requireOpen();
    try (var _ = home.memory()) {
      long size = pages(bytes);
      return pinDescriptors ? allocateShared(size) : allocateOfCuda(size);
    }
  }

  private DeviceBuffer allocateOfCuda(long size) {
    PinnedMemory memory = pauses.take(() -> context.allocatePinned(size));
    if (memory.segment().address() % PAGE != 0) {
      // Small allocations may share a page.
      pauses.free(size, memory::close);
      memory = pauses.take(() -> context.allocatePinned(size + PAGE));
    }
    long skip = -memory.segment().address() & (PAGE - 1);
    MemorySegment aligned = memory.segment().asSlice(skip, size);
    aligned.fill((byte) 0);
    return keep(new PinnedBuffer(memory, aligned, memory.deviceAddress() + skip));
  }

  private DeviceBuffer allocateShared(long size) {
    SharedMemory memory = SharedMemory.allocate("gpunvme-pinned", size);
    try {
      RegisteredMemory registered =
          pauses.take(
              () ->
                  pinning(
                      size,
                      HostMemoryKind.MEMORY,
                      () -> context.register(memory.segment(), flags(HostMemoryKind.MEMORY))));
      return keep(new SharedBuffer(memory, registered));
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, memory::close);
      throw e;
    }
  }

  /**
   * Makes a resource of this GPU for which the driver may wait for kernels: a loaded module, a
   * stream, a registration. Waits for the announced kernels first, for 10 s at most.
   */
  public <T> T betweenKernels(Supplier<T> maker) {
    requireOpen();
    return pauses.take(maker);
  }

  /**
   * A resource of this GPU that is made once, between kernels, for all users, and closed with this.
   *
   * @param name distinguishes it from others
   */
  public <T> T shared(Class<T> type, String name, Supplier<T> maker) {
    requireOpen();
    synchronized (shared) {
      Object there = shared.get(name);
      if (there == null) {
        there = betweenKernels(maker);
        shared.put(name, there);
      }
      return type.cast(there);
    }
  }

  /** Something shared that keeps resources which nobody uses just now. */
  public interface Keeper {
    /** Closes what is kept. */
    void freeKept();
  }

  /**
   * Gives back what this keeps for the next user, such as pinned memory of files that were closed.
   * What is in use stays as it is.
   */
  public void freeKept() {
    List<Object> all;
    synchronized (shared) {
      all = List.copyOf(shared.values());
    }
    CloseAll.each(
        all.stream().filter(Keeper.class::isInstance).map(Keeper.class::cast).toList(),
        Keeper::freeKept);
  }

  /**
   * Closes a resource for which the driver may wait for kernels, once no kernel runs: perhaps
   * later.
   */
  public void closeBetweenKernels(Runnable close) {
    pauses.free(CLOSING_BYTES, close);
  }

  /**
   * The CUDA memory of a buffer, for libraries that work on it; empty for host memory and for
   * buffers of others.
   */
  public Optional<DeviceMemory> deviceMemory(DeviceBuffer buffer) {
    return buffer instanceof GpuBuffer gpu && buffers.contains(buffer)
        ? Optional.of(gpu.memory)
        : Optional.empty();
  }

  private static long pages(long bytes) {
    if (bytes <= 0 || bytes > Long.MAX_VALUE - PAGE) {
      throw new IllegalArgumentException(bytes + " bytes of memory");
    }
    return Math.ceilDiv(bytes, PAGE) * PAGE;
  }

  private DeviceBuffer keep(DeviceBuffer buffer) {
    buffers.add(buffer);
    if (closed) {
      buffer.close();
      requireOpen();
    }
    return buffer;
  }

  private void requireOpen() {
    if (closed) {
      throw new IllegalStateException("this accelerator is closed");
    }
  }

  // ---- memory of others

  @Override
  public ForeignMemory foreign(long address, long bytes) {
    requireOpen();
    requireOurs(address, bytes);
    // Whole pages, as controllers are given memory; the driver maps GPU memory in larger ones.
    long start = address & -PAGE;
    long size = pages(address + bytes - start);
    DeviceMemory memory = context.foreignMemory(start, size);
    boolean whole = start == address && size == bytes;
    return new ForeignMemory(keep(new GpuBuffer(memory, false, whole)), address - start);
  }

  private void requireOurs(long address, long bytes) {
    PointerInfo info;
    try {
      info = context.pointerInfo(address, bytes);
    } catch (CudaException e) {
      throw new DmaMappingException("%Xh is not memory that CUDA knows".formatted(address), e);
    }
    if (info.kind() != PointerInfo.Kind.DEVICE) {
      throw new DmaMappingException(
          "%Xh is %s memory; give memory of the GPU (cudaMalloc)"
              .formatted(address, info.kind().name().toLowerCase(Locale.ROOT)));
    }
    if (info.device() != context.device().ordinal()) {
      throw new DmaMappingException(
          "%Xh is memory of device %d, and this is device %d"
              .formatted(address, info.device(), context.device().ordinal()));
    }
    if (!context.reaches(info)) {
      throw new DmaMappingException(
          "%Xh is memory of another CUDA context; give memory of the primary context, which the"
                  .formatted(address)
              + " CUDA runtime uses");
    }
    if (bytes <= 0 || !info.contains(address, bytes)) {
      throw new DmaMappingException(
          "%d bytes at %Xh are not inside their allocation, %d bytes at %Xh"
              .formatted(bytes, address, info.size(), info.start()));
    }
  }

  @Override
  public HostWindow mapHost(MemorySegment memory, HostMemoryKind kind) {
    requireOpen();
    synchronized (registrations) {
      Registration there = registrations.get(memory.address());
      if (there == null) {
        there = pauses.take(() -> new Registration(memory, kind));
        registrations.put(memory.address(), there);
      } else {
        there.requireBytes(memory.byteSize());
      }
      there.users++;
      return new Window(memory.address(), there);
    }
  }

  private <T> T pinning(long bytes, HostMemoryKind kind, Supplier<T> pin) {
    try {
      return pin.get();
    } catch (CudaException e) {
      throw new DmaMappingException(
          "%s cannot be given %d bytes of %s: %s"
              .formatted(
                  name,
                  bytes,
                  kind == HostMemoryKind.REGISTERS ? "a BAR" : "host memory",
                  e.getMessage()),
          e);
    }
  }

  private static RegisterFlag[] flags(HostMemoryKind kind) {
    return kind == HostMemoryKind.REGISTERS
        ? new RegisterFlag[] {RegisterFlag.PORTABLE, RegisterFlag.DEVICEMAP, RegisterFlag.IOMEMORY}
        : new RegisterFlag[] {RegisterFlag.PORTABLE, RegisterFlag.DEVICEMAP};
  }

  /** A registered range, where this GPU finds it, and how many windows show it. */
  private final class Registration {
    private final HostRegistration memory;
    private final long address;
    private int users;

    Registration(MemorySegment range, HostMemoryKind kind) {
      memory =
          pinning(
              range.byteSize(),
              kind,
              () -> HostRegistration.of(context.device(), range, flags(kind)));
      address =
          CloseAll.orClose(
              () -> pinning(range.byteSize(), kind, () -> memory.addressIn(context)),
              memory::release);
    }

    void requireBytes(long bytes) {
      memory.requireBytes(bytes);
    }
  }

  private final class Window implements HostWindow {
    private final long key;
    private final Registration registration;
    private boolean closed;

    Window(long key, Registration registration) {
      this.key = key;
      this.registration = registration;
    }

    @Override
    public long deviceAddress() {
      return registration.address;
    }

    @Override
    public void close() {
      synchronized (registrations) {
        if (!closed) {
          closed = true;
          registration.users--;
          if (registration.users == 0 && registrations.remove(key, registration)) {
            pauses.now(registration.memory::release);
          }
        }
      }
    }
  }

  @Override
  public KernelRun kernelRun(BooleanSupplier over) {
    requireOpen();
    return pauses.begin(over);
  }

  @Override
  public KernelRun runningKernel() {
    requireOpen();
    return pauses.join();
  }

  @Override
  public BufferCopies copies() {
    requireOpen();
    return pauses.take(() -> new GpuCopies(context));
  }

  @Override
  public synchronized void close() {
    closed = true;
    DeviceBuffer.closeAll(buffers);
    releaseRegistrations();
    context.close();
    if (!gone) {
      gone = true;
      DevicePauses.giveBack(context.device());
    }
  }

  /** Windows that are open still show nothing any more; closing them does nothing. */
  private void releaseRegistrations() {
    synchronized (registrations) {
      List<Registration> left = List.copyOf(registrations.values());
      registrations.clear();
      CloseAll.each(left, r -> r.memory.release());
    }
  }

  // ---- buffers

  private final class GpuBuffer extends DeviceBuffer {
    private final DeviceMemory memory;
    private final CudaRemoteMemory remote;
    private final boolean owned;

    GpuBuffer(DeviceMemory memory, boolean owned, boolean whole) {
      this.memory = memory;
      this.owned = owned;
      this.remote = new CudaRemoteMemory(GpuAccelerator.this, memory, stock, whole);
    }

    @Override
    public long size() {
      return memory.size();
    }

    @Override
    public boolean isHost() {
      return false;
    }

    @Override
    public MemorySegment segment() {
      throw new IllegalStateException(
          "these " + size() + " bytes are memory of " + name + ", which the CPU cannot address");
    }

    @Override
    public long deviceAddress() {
      return memory.address();
    }

    @Override
    protected BusRange map(BusMapper controller) {
      return controller.map(remote);
    }

    @Override
    public void copyToHost(long offset, MemorySegment target) {
      checkRange(offset, target.byteSize());
      staging.read(memory, offset, target);
    }

    @Override
    public void copyFromHost(MemorySegment source, long offset) {
      checkRange(offset, source.byteSize());
      staging.write(source, memory, offset);
    }

    @Override
    protected void free() {
      buffers.remove(this);
      if (owned) {
        pauses.free(memory.size(), memory::close);
      } else {
        memory.close();
      }
    }
  }

  /** Pinned memory with a descriptor. */
  private final class SharedBuffer extends HostBuffer {
    private final SharedMemory memory;
    private final RegisteredMemory registered;

    SharedBuffer(SharedMemory memory, RegisteredMemory registered) {
      super(memory.segment());
      this.memory = memory;
      this.registered = registered;
    }

    @Override
    public long deviceAddress() {
      return registered.deviceAddress();
    }

    @Override
    protected void free() {
      buffers.remove(this);
      pauses.free(
          memory.size(),
          () -> {
            registered.close();
            memory.close();
          });
    }
  }

  private final class PinnedBuffer extends HostBuffer {
    private final PinnedMemory memory;
    private final long address;

    PinnedBuffer(PinnedMemory memory, MemorySegment aligned, long address) {
      super(aligned);
      this.memory = memory;
      this.address = address;
    }

    @Override
    public long deviceAddress() {
      return address;
    }

    @Override
    protected void free() {
      buffers.remove(this);
      pauses.free(memory.size(), memory::close);
    }
  }
}
