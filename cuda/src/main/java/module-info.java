/** CUDA driver API, NVRTC, cuFile and NVML over java.lang.foreign. Knows nothing of NVMe. */
module io.gpunvme.cuda {
  requires static transitive org.jspecify;
  requires transitive io.gpunvme.ffi;

  exports io.gpunvme.cuda;

  // For the modules of this project only.
  exports io.gpunvme.cuda.cufile to
      io.gpunvme.storage,
      io.gpunvme.tools;
  exports io.gpunvme.cuda.nvml to
      io.gpunvme.tools;
}
