/** POSIX calls over java.lang.foreign. Knows nothing of NVMe. */
module io.gpunvme.ffi {
  requires static org.jspecify;

  exports io.gpunvme.ffi;
}
