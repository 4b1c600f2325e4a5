/** NVMe in Java: the specification's layouts, bus memory, PCI functions, and a driver. */
module io.gpunvme.nvme {
  requires static transitive org.jspecify;
  requires transitive io.gpunvme.ffi;
  requires com.google.gson;

  exports io.gpunvme.nvme;
  exports io.gpunvme.nvme.driver;
  exports io.gpunvme.nvme.memory;
  exports io.gpunvme.nvme.pci;
  exports io.gpunvme.nvme.spec;

  // For the modules of this project only.
  exports io.gpunvme.nvme.pci.host to
      io.gpunvme.gpu,
      io.gpunvme.tools;
  exports io.gpunvme.nvme.pci.kmod to
      io.gpunvme.gpu;
  exports io.gpunvme.nvme.pci.sysfs to
      io.gpunvme.gpu;
  exports io.gpunvme.nvme.pci.vfio to
      io.gpunvme.gpu;
  exports io.gpunvme.nvme.pci.vfiouser to
      io.gpunvme.gpu,
      io.gpunvme.tools;
  exports io.gpunvme.nvme.vfiouser to
      io.gpunvme.sim;
}
