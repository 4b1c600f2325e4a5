/**
 * NVMe in Java: the specification's layouts, bus memory, PCI functions, driver, and a simulator.
 */
module io.gpunvme.nvme {
  requires static org.jspecify;
  requires io.gpunvme.ffi;
  requires com.google.gson;

  exports io.gpunvme.nvme;
  exports io.gpunvme.nvme.driver;
  exports io.gpunvme.nvme.memory;
  exports io.gpunvme.nvme.pci;
  exports io.gpunvme.nvme.pci.kmod;
  exports io.gpunvme.nvme.pci.sysfs;
  exports io.gpunvme.nvme.pci.vfio;
  exports io.gpunvme.nvme.pci.vfiouser;
  exports io.gpunvme.nvme.sim;
  exports io.gpunvme.nvme.sim.media;
  exports io.gpunvme.nvme.sim.serve;
  exports io.gpunvme.nvme.spec;
  exports io.gpunvme.nvme.vfiouser;
}
