/**
 * Accelerators and their memory, queues for kernels, transfers between namespaces and accelerators.
 */
module io.gpunvme.gpu {
  requires static transitive org.jspecify;
  requires transitive io.gpunvme.cuda;
  requires transitive io.gpunvme.nvme;
  requires transitive io.gpunvme.sim;
  requires transitive com.google.gson;
  requires transitive HdrHistogram;

  exports io.gpunvme.gpu.accel;
  exports io.gpunvme.gpu.device;
  exports io.gpunvme.gpu.queue;
  exports io.gpunvme.gpu.transfer;

  // For the modules of this project only.
  exports io.gpunvme.gpu.watch to
      io.gpunvme.cli,
      io.gpunvme.tools;
}
