/**
 * The embedded NVMe controller: the same PciFunction as a real one, in this process or for others.
 */
module io.gpunvme.sim {
  requires static transitive org.jspecify;
  requires transitive io.gpunvme.nvme;

  exports io.gpunvme.sim;
  exports io.gpunvme.sim.serve;
}
