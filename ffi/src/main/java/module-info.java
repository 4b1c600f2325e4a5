/** POSIX calls over java.lang.foreign. Knows nothing of NVMe. */
module io.gpunvme.ffi {
  requires static transitive org.jspecify;

  exports io.gpunvme.base;

  // For the modules of this project only.
  exports io.gpunvme.ffi to
      io.gpunvme.nvme,
      io.gpunvme.cuda,
      io.gpunvme.sim,
      io.gpunvme.gpu,
      io.gpunvme.storage,
      io.gpunvme.tools,
      io.gpunvme.cli,
      io.gpunvme.capi;
}
