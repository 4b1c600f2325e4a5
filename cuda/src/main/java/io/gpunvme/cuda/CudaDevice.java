package io.gpunvme.cuda;

import java.util.Locale;
import java.util.UUID;

/** A GPU. Safe for all threads; nothing here allocates on it. */
public final class CudaDevice {
  private final DriverApi api;
  private final int ordinal;
  private final int handle;

  CudaDevice(DriverApi api, int ordinal) {
    this.api = api;
    this.ordinal = ordinal;
    handle = api.devices().get(ordinal);
  }

  /** Its number, counted from 0 among those that CUDA_VISIBLE_DEVICES leaves. */
  public int ordinal() {
    return ordinal;
  }

  /** Whether it is the only GPU for this process. */
  public boolean only() {
    return api.devices().count() == 1;
  }

  /** The product's name, as in {@code NVIDIA H200}. */
  public String name() {
    return api.devices().name(handle);
  }

  /**
   * The answer to a question about it.
   *
   * @throws CudaException {@link CudaException#INVALID_VALUE} if the driver is older than the
   *     attribute
   */
  public int attribute(CudaAttribute attribute) {
    return api.devices().attribute(handle, attribute);
  }

  /** Like {@link #attribute} for those about an ability; false if the driver does not know it. */
  public boolean can(CudaAttribute ability) {
    return attributeOrZero(ability) != 0;
  }

  private int attributeOrZero(CudaAttribute attribute) {
    try {
      return attribute(attribute);
    } catch (CudaException e) {
      if (e.code() == CudaException.INVALID_VALUE) {
        return 0;
      }
      throw e;
    }
  }

  /** Its memory in bytes. */
  public long totalMemory() {
    return api.devices().totalMemory(handle);
  }

  /** Its place on the PCI bus as Linux writes it, as in {@code 0000:3b:00.0}. */
  public String pciBusId() {
    return api.devices().pciBusId(handle).toLowerCase(Locale.ROOT);
  }

  /**
   * Its UUID as {@code nvidia-smi -L} writes it: {@code GPU-} and 36 characters, of a MIG instance
   * {@code MIG-} and those of its own.
   */
  public String uuid() {
    UUID own = api.devices().uuid(handle);
    return (own.equals(api.devices().gpuUuid(handle)) ? "GPU-" : "MIG-") + own;
  }

  /** The UUID of the whole GPU, which differs from {@link #uuid} for a MIG instance. */
  public String gpuUuid() {
    return "GPU-" + api.devices().gpuUuid(handle);
  }

  /** Its architecture. */
  public ComputeCapability computeCapability() {
    return new ComputeCapability(
        attribute(CudaAttribute.COMPUTE_CAPABILITY_MAJOR),
        attribute(CudaAttribute.COMPUTE_CAPABILITY_MINOR));
  }

  /** Its abilities for devices that reach its memory over PCIe. */
  public GpuDirect gpuDirect() {
    int flush = attributeOrZero(CudaAttribute.GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS);
    return new GpuDirect(
        can(CudaAttribute.GPU_DIRECT_RDMA_SUPPORTED),
        can(CudaAttribute.DMA_BUF_SUPPORTED),
        WritesOrdering.of(attributeOrZero(CudaAttribute.GPU_DIRECT_RDMA_WRITES_ORDERING)),
        (flush & 1) != 0);
  }

  /**
   * Its primary context, which the CUDA runtime, PyTorch and others of this process use too. It is
   * made if it does not exist yet, and becomes current in the calling thread.
   */
  public CudaContext openPrimary() {
    return CudaContext.open(api, this, handle);
  }

  /** Whether both are the same device of the same driver library. */
  @Override
  public boolean equals(Object other) {
    return other instanceof CudaDevice that && api == that.api && ordinal == that.ordinal;
  }

  @Override
  public int hashCode() {
    return 31 * System.identityHashCode(api) + ordinal;
  }

  /** The same for all devices of one driver library, and different for others. */
  public Object driver() {
    return api;
  }

  @Override
  public String toString() {
    return "CUDA device " + ordinal + " (" + name() + ", " + pciBusId() + ")";
  }
}
