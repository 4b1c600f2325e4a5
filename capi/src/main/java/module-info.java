/** The Java side of the C API. */
module io.gpunvme.capi {
  requires static org.jspecify;
  requires io.gpunvme.core;
  requires io.gpunvme.cuda;
  requires io.gpunvme.ffi;
  requires io.gpunvme.nvme;
  requires com.google.gson;
  requires HdrHistogram;

  exports io.gpunvme.capi;
}
