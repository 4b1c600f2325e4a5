/** Storage for accelerators: paths, file systems, sets, layers by ranges. */
module io.gpunvme.storage {
  requires static transitive org.jspecify;
  requires transitive io.gpunvme.gpu;
  requires transitive com.google.gson;
  requires transitive HdrHistogram;

  exports io.gpunvme.storage;
  exports io.gpunvme.storage.fs;
  exports io.gpunvme.storage.fs.partition;
  exports io.gpunvme.storage.kind;
  exports io.gpunvme.storage.layer;
  exports io.gpunvme.storage.path;
  exports io.gpunvme.storage.plan;

  // For the modules of this project only.
  exports io.gpunvme.storage.path.cufile to
      io.gpunvme.tools;
  exports io.gpunvme.storage.path.file to
      io.gpunvme.tools;
}
