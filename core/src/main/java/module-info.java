/** Storage for accelerators: devices, paths, file formats. */
module io.gpunvme.core {
  requires static org.jspecify;
  requires io.gpunvme.ffi;
  requires transitive io.gpunvme.cuda;
  requires transitive io.gpunvme.nvme;
  requires com.google.gson;
  requires HdrHistogram;

  exports io.gpunvme.core.accel;
  exports io.gpunvme.core.bar;
  exports io.gpunvme.core.bench;
  exports io.gpunvme.core.demo;
  exports io.gpunvme.core.device;
  exports io.gpunvme.core.doctor;
  exports io.gpunvme.core.example;
  exports io.gpunvme.core.fs;
  exports io.gpunvme.core.fs.ext4;
  exports io.gpunvme.core.fs.fat;
  exports io.gpunvme.core.fs.partition;
  exports io.gpunvme.core.gpu;
  exports io.gpunvme.core.kind;
  exports io.gpunvme.core.layer;
  exports io.gpunvme.core.machine;
  exports io.gpunvme.core.path.cufile;
  exports io.gpunvme.core.path.direct;
  exports io.gpunvme.core.path.extents;
  exports io.gpunvme.core.path.file;
  exports io.gpunvme.core.path.mmap;
  exports io.gpunvme.core.path.pinned;
  exports io.gpunvme.core.path.set;
  exports io.gpunvme.core.path;
  exports io.gpunvme.core.plan;
  exports io.gpunvme.core.report;
  exports io.gpunvme.core.sample;
  exports io.gpunvme.core.storage;
  exports io.gpunvme.core.tensor;
  exports io.gpunvme.core.transfer;
  exports io.gpunvme.core.weights.format;
  exports io.gpunvme.core.weights.raw;
  exports io.gpunvme.core.weights;
  exports io.gpunvme.core;
}
