/** The Java side of the C API. */
module io.gpunvme.capi {
  requires static transitive org.jspecify;
  requires io.gpunvme.models;
  requires com.google.gson;
  requires HdrHistogram;

  exports io.gpunvme.capi;
}
