package io.gpunvme.cuda.cufile;

/** Parameters of cuFile that are on or off, named as in its header, in its order. */
public enum CuFileSwitch {
  PROPERTIES_USE_POLL_MODE,
  /** Whether what cannot be direct is copied through host memory. */
  PROPERTIES_ALLOW_COMPAT_MODE,
  /** Whether everything is. */
  FORCE_COMPAT_MODE,
  FS_MISC_API_CHECK_AGGRESSIVE,
  EXECUTION_PARALLEL_IO,
  PROFILE_NVTX,
  PROPERTIES_ALLOW_SYSTEM_MEMORY,
  /** Direct transfers without nvidia-fs. */
  USE_PCIP2PDMA,
  PREFER_IO_URING,
  FORCE_ODIRECT_MODE,
  SKIP_TOPOLOGY_DETECTION,
  STREAM_MEMOPS_BYPASS;

  /** Its number in {@code cuFileGetParameter...}. */
  int number() {
    return ordinal();
  }
}
