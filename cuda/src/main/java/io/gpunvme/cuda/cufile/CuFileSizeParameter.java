package io.gpunvme.cuda.cufile;

/** Parameters of cuFile that are numbers, named as in its header, in its order. */
public enum CuFileSizeParameter {
  /** Level of the statistics, 0 to 3. */
  PROFILE_STATS,
  EXECUTION_MAX_IO_QUEUE_DEPTH,
  EXECUTION_MAX_IO_THREADS,
  EXECUTION_MIN_IO_THRESHOLD_SIZE_KB,
  EXECUTION_MAX_REQUEST_PARALLELISM,
  /** Longest request to the kernel. */
  PROPERTIES_MAX_DIRECT_IO_SIZE_KB,
  /** GPU memory for what is not registered, per GPU. */
  PROPERTIES_MAX_DEVICE_CACHE_SIZE_KB,
  PROPERTIES_PER_BUFFER_CACHE_SIZE_KB,
  /** Most memory that may be registered. */
  PROPERTIES_MAX_DEVICE_PINNED_MEM_SIZE_KB,
  PROPERTIES_IO_BATCHSIZE,
  POLLTHRESHOLD_SIZE_KB,
  PROPERTIES_BATCH_IO_TIMEOUT_MS;

  /** Its number in {@code cuFileGetParameter...}. */
  int number() {
    return ordinal();
  }
}
