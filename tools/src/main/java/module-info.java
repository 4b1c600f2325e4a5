/** What people start: benchmarks, the report, the doctor, the machine, the demo, examples. */
module io.gpunvme.tools {
  requires static transitive org.jspecify;
  requires transitive io.gpunvme.models;
  requires com.google.gson;
  requires HdrHistogram;
  requires jdk.httpserver;

  // For the modules of this project only.
  exports io.gpunvme.tools.bench to
      io.gpunvme.cli;
  exports io.gpunvme.tools.demo to
      io.gpunvme.cli;
  exports io.gpunvme.tools.doctor to
      io.gpunvme.cli;
  exports io.gpunvme.tools.example to
      io.gpunvme.cli;
  exports io.gpunvme.tools.fleet to
      io.gpunvme.cli;
  exports io.gpunvme.tools.graph to
      io.gpunvme.cli;
  exports io.gpunvme.tools.machine to
      io.gpunvme.cli;
  exports io.gpunvme.tools.report to
      io.gpunvme.cli;
  exports io.gpunvme.tools.rows to
      io.gpunvme.cli;
  exports io.gpunvme.tools.ssd to
      io.gpunvme.cli;
  exports io.gpunvme.tools.top to
      io.gpunvme.cli;
  exports io.gpunvme.tools.topology to
      io.gpunvme.cli;
}
