package io.gpunvme.cuda;

/**
 * Attributes of a device ({@code CUdevice_attribute}); the value of an ability is 0 or 1. A driver
 * that is older than an attribute fails with {@code CUDA_ERROR_INVALID_VALUE}.
 */
public enum CudaAttribute {
  MAX_THREADS_PER_BLOCK(1),
  MAX_BLOCK_DIM_X(2),
  MAX_GRID_DIM_X(5),
  MAX_SHARED_MEMORY_PER_BLOCK(8),
  WARP_SIZE(10),
  MAX_REGISTERS_PER_BLOCK(12),
  /** Typical clock of the multiprocessors in kHz. */
  CLOCK_RATE(13),
  MULTIPROCESSOR_COUNT(16),
  /** Whether kernels that run for seconds are ended, as on a GPU with a display. */
  KERNEL_EXEC_TIMEOUT(17),
  /** Whether the GPU uses the host's memory. */
  INTEGRATED(18),
  CAN_MAP_HOST_MEMORY(19),
  CONCURRENT_KERNELS(31),
  ECC_ENABLED(32),
  PCI_BUS_ID(33),
  PCI_DEVICE_ID(34),
  /** Peak clock of the memory in kHz. */
  MEMORY_CLOCK_RATE(36),
  /** In bits. */
  GLOBAL_MEMORY_BUS_WIDTH(37),
  /** In bytes. */
  L2_CACHE_SIZE(38),
  MAX_THREADS_PER_MULTIPROCESSOR(39),
  /** Copy engines: copies that can run at the same time, together with kernels. */
  ASYNC_ENGINE_COUNT(40),
  UNIFIED_ADDRESSING(41),
  PCI_DOMAIN_ID(50),
  COMPUTE_CAPABILITY_MAJOR(75),
  COMPUTE_CAPABILITY_MINOR(76),
  MAX_SHARED_MEMORY_PER_MULTIPROCESSOR(81),
  MAX_REGISTERS_PER_MULTIPROCESSOR(82),
  HOST_NATIVE_ATOMIC_SUPPORTED(86),
  PAGEABLE_MEMORY_ACCESS(88),
  COMPUTE_PREEMPTION_SUPPORTED(90),
  /** Whether the device address of registered memory is the host's. */
  CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM(91),
  COOPERATIVE_LAUNCH(95),
  MAX_SHARED_MEMORY_PER_BLOCK_OPTIN(97),
  CAN_FLUSH_REMOTE_WRITES(98),
  HOST_REGISTER_SUPPORTED(99),
  MAX_BLOCKS_PER_MULTIPROCESSOR(106),
  GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED(110),
  READ_ONLY_HOST_REGISTER_SUPPORTED(113),
  GPU_DIRECT_RDMA_SUPPORTED(116),
  /** Bits: 1 cuFlushGPUDirectRDMAWrites works, 2 stream memory operations flush. */
  GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS(117),
  /** 0 none, 100 ordered for the device itself, 200 for all devices. */
  GPU_DIRECT_RDMA_WRITES_ORDERING(118),
  DMA_BUF_SUPPORTED(124),
  /** Vendor in the low half, device in the high half; since CUDA 12.8. */
  GPU_PCI_DEVICE_ID(139),
  /** Whether pinned host memory can be exported as a dma-buf; since CUDA 13.0. */
  HOST_ALLOC_DMA_BUF_SUPPORTED(146);

  private final int number;

  CudaAttribute(int number) {
    this.number = number;
  }

  int number() {
    return number;
  }
}
