package io.gpunvme.cuda;

/**
 * The abilities of a GPU and its driver for devices that reach its memory over PCIe.
 *
 * @param rdma the nvidia_p2p interface of the kernel driver works for this GPU
 * @param dmaBuf memory can be exported as a dma-buf
 * @param ordering for whom such writes need no flush
 * @param hostFlush {@link CudaContext#flushGpuDirectWrites} works
 */
public record GpuDirect(boolean rdma, boolean dmaBuf, WritesOrdering ordering, boolean hostFlush) {}
