package io.gpunvme.storage;

import io.gpunvme.base.CloseAll;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.HostMemoryKind;
import io.gpunvme.gpu.accel.HostWindow;
import io.gpunvme.gpu.device.Device;
import io.gpunvme.gpu.device.DeviceAddress;
import io.gpunvme.gpu.queue.DeviceExtent;
import io.gpunvme.gpu.queue.StripeSet;
import io.gpunvme.gpu.transfer.InitiatorOptions;
import io.gpunvme.nvme.driver.Namespace;
import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.nvme.pci.NumaHome;
import io.gpunvme.storage.path.DataPath;
import io.gpunvme.storage.path.PathKind;
import io.gpunvme.storage.path.Range;
import io.gpunvme.storage.path.Verdict;
import io.gpunvme.storage.path.direct.DirectPath;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.concurrent.locks.ReadWriteLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import org.jspecify.annotations.Nullable;

/** A namespace of a controller that this process drives. */
final class DeviceSource implements Source {
  private final Accelerator accelerator;
  private final StorageOptions options;
  private final NvmeController controller;
  private final String name;

  /** What is closed with this; null: the controller stays somebody else's. */
  private final @Nullable Device device;

  /** The namespace's memory, for GPUs to pin; null: they do not. */
  private final @Nullable MemorySegment medium;

  /** How a GPU has that; null: not at all. */
  private final @Nullable HostWindow pinned;

  /** Of writes to the namespace, for whichever accelerator. */
  private final ReadWriteLock writes;

  /** Null before it is opened. */
  private volatile @Nullable DirectPath path;

  private DeviceSource(
      NvmeController controller,
      String name,
      Accelerator accelerator,
      StorageOptions options,
      @Nullable Device device,
      @Nullable MemorySegment medium,
      ReadWriteLock writes) {
    this.accelerator = accelerator;
    this.options = options;
    this.controller = controller;
    this.name = name;
    this.device = device;
    this.medium = medium;
    this.writes = writes;
    controller.namespace(options.nsid());
    serve();
    // Copies between pinned memory and a GPU are several times as fast.
    pinned =
        medium != null && accelerator.gpu()
            ? accelerator.mapHost(medium, HostMemoryKind.MEMORY)
            : null;
  }

  /** A controller that stays the caller's. */
  DeviceSource(NvmeController controller, Accelerator accelerator, StorageOptions options) {
    this(controller, controller.name(), accelerator, options, null, null, newLock());
  }

  static DeviceSource open(DeviceAddress address, Accelerator accelerator, StorageOptions options) {
    Device device = Device.open(address, options.controller(), "");
    return CloseAll.orClose(
        () ->
            new DeviceSource(
                device.controller(),
                address.toString(),
                accelerator,
                options,
                device,
                address.pinned() ? medium(device, options) : null,
                newLock()),
        device::close);
  }

  /** Queue pairs of its own for each accelerator, at one controller. */
  @Override
  public DeviceSource on(Accelerator other) {
    return new DeviceSource(controller, name, other, options, null, medium, writes);
  }

  private static ReadWriteLock newLock() {
    return new ReentrantReadWriteLock(true);
  }

  /** From now on: callers allocate memory before the path is opened, which is when it is used. */
  private void serve() {
    accelerator.servePinned(controller.function());
  }

  private static MemorySegment medium(Device ssd, StorageOptions options) {
    return ssd.memory(options.nsid())
        .orElseThrow(
            () ->
                new InvalidRequestException(
                    ssd.address()
                        + ": pinned=true needs a namespace in memory, and this one is a file"));
  }

  @Override
  public StripeSet set() {
    return StripeSet.of(controller, options.nsid());
  }

  @Override
  public List<DeviceExtent> extents() {
    return List.of(new DeviceExtent(0, size(), 0));
  }

  @Override
  public String name() {
    return name;
  }

  @Override
  public long size() {
    return controller.namespace(options.nsid()).bytes();
  }

  @Override
  public NumaHome home() {
    return controller.function().home();
  }

  @Override
  public int blockSize() {
    return controller.namespace(options.nsid()).blockSize();
  }

  @Override
  public List<BlockRun> blocks(long offset, long length) {
    Namespace namespace = controller.namespace(options.nsid());
    long first = Math.ceilDiv(offset, namespace.blockSize());
    long count = (offset + length) / namespace.blockSize() - first;
    return count > 0 ? List.of(new BlockRun(controller, namespace, first, count)) : List.of();
  }

  @Override
  public List<Verdict> verdicts() {
    String reason = "this is not a file";
    return List.of(
        Verdict.yes(PathKind.DIRECT, "this process drives the controller"),
        Verdict.no(PathKind.CUFILE, reason, ""),
        Verdict.no(PathKind.PINNED, reason, ""),
        Verdict.no(PathKind.MMAP, reason, ""));
  }

  @Override
  public DataPath open(PathKind kind) {
    // Who pins the SSD's memory asks for CUDA's fast copies straight to the GPU, whoever else uses
    // CUDA.
    InitiatorOptions initiator =
        pinned != null ? options.initiator().withForeignCuda(false) : options.initiator();
    DirectPath opened = DirectPath.open(controller, options.nsid(), accelerator, initiator, writes);
    path = opened;
    return opened;
  }

  /** Flush of the namespace (NVM Command Set 1.0, 3.2.2). */
  @Override
  public void flush() {
    DirectPath open = path;
    if (open != null) {
      open.flush();
    } else {
      DirectPath.flush(controller, options.nsid());
    }
  }

  @Override
  public double resident(List<Range> ranges) {
    return 0;
  }

  @Override
  public void close() {
    try {
      HostWindow window = pinned;
      if (window != null) {
        window.close();
      }
    } finally {
      Device own = device;
      if (own != null) {
        own.close();
      }
    }
  }
}
