package io.gpunvme.gpu.accel;

import io.gpunvme.base.DmaBuf;
import io.gpunvme.cuda.CudaDevice;
import io.gpunvme.cuda.CudaException;
import io.gpunvme.cuda.DeviceMemory;
import io.gpunvme.gpu.bar.MarkedMemory;
import io.gpunvme.gpu.bar.PageCut;
import io.gpunvme.gpu.bar.PageMarks;
import io.gpunvme.nvme.DmaMappingException;
import io.gpunvme.nvme.memory.RemotePort;
import io.gpunvme.nvme.pci.PciAddress;

/**
 * GPU memory as a controller without a bus of its own reaches it, by CUDA copies, and as it is
 * found behind the GPU's BAR.
 */
final class CudaRemoteMemory implements MarkedMemory {
  private final GpuAccelerator accelerator;
  private final DeviceMemory memory;
  private final CopyStock stock;
  private final boolean whole;

  /**
   * @param memory a multiple of 4096 bytes
   * @param whole whether all of it is the buffer's owner's
   */
  CudaRemoteMemory(
      GpuAccelerator accelerator, DeviceMemory memory, CopyStock stock, boolean whole) {
    this.accelerator = accelerator;
    this.memory = memory;
    this.stock = stock;
    this.whole = whole;
  }

  private CudaDevice device() {
    return accelerator.context().device();
  }

  @Override
  public String name() {
    return "%s, %d bytes at %Xh".formatted(device(), memory.size(), memory.address());
  }

  @Override
  public long size() {
    return memory.size();
  }

  @Override
  public void prepare() {
    stock.fill();
  }

  @Override
  public RemotePort openPort(RemotePort.Use use) {
    return new CudaRemotePort(memory, stock.lanes().lane(use), stock);
  }

  @Override
  public DmaBuf exportDmaBuf() {
    try {
      return memory.exportDmaBuf();
    } catch (CudaException e) {
      throw new DmaMappingException(
          "%s cannot be exported as a dma-buf, as data-centre and professional GPUs can: %s"
              .formatted(name(), e.getMessage()),
          e);
    }
  }

  @Override
  public Owner owner() {
    return new Owner(PciAddress.parse(device().pciBusId()), device().totalMemory());
  }

  /** The pages of a GPU's memory are at the same places in its address space and in its memory. */
  @Override
  public long pageOffset() {
    return memory.address() & (PageCut.PAGE - 1);
  }

  @Override
  public PageMarks openMarks() {
    if (!whole) {
      throw new DmaMappingException(
          name()
              + " begins or ends with memory of others, which must not be marked: to be"
              + " found behind a BAR, memory must begin and end at multiples of 4096");
    }
    return new CudaPageMarks(accelerator, memory, new PageCut(pageOffset(), size()));
  }
}
