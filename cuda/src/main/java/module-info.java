/** CUDA driver API, NVRTC and cuFile over java.lang.foreign. Knows nothing of NVMe. */
module io.gpunvme.cuda {
  requires static org.jspecify;
  requires io.gpunvme.ffi;

  exports io.gpunvme.cuda;
  exports io.gpunvme.cuda.cufile;
}
