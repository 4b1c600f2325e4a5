/** Models: what files of weights say, loading, checksums, raw devices. */
module io.gpunvme.models {
  requires static transitive org.jspecify;
  requires transitive io.gpunvme.storage;
  requires transitive com.google.gson;

  exports io.gpunvme.models;
  exports io.gpunvme.models.format;
  exports io.gpunvme.models.tensor;

  // For the modules of this project only.
  exports io.gpunvme.models.raw to
      io.gpunvme.cli;
}
