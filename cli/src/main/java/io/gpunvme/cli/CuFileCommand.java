package io.gpunvme.cli;

import io.gpunvme.cli.output.OutputStreams;
import java.util.List;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/**
 * {@code gpunvme cufile}, for its help and the completion of its words. What it does is in {@code
 * scripts/cufile}, which the launchers call: a program should not wait for a virtual machine that
 * it does not need.
 */
@Command(
    name = "cufile",
    description = {
      "Run a program for NVIDIA's cuFile (GPUDirect Storage), unchanged, on gpunvme.",
      "The program finds gpunvme's libcufile.so.0 where it looks for NVIDIA's, and so do the"
          + " programs",
      "that it starts. It takes the place of this command: signals and the exit code are its own."
    },
    footer = {
      "",
      "A library that a program opens by the whole path of its file is that file, also here.",
      "gpunvme explain FILE says what a file becomes.",
      "",
      "Examples:",
      "  gpunvme cufile -- python train.py",
      "  gpunvme cufile --map /mnt/data=vfio:0000:01:00.0#1 -- ./reader /mnt/data/model.bin",
      "  gpunvme cufile --log /tmp/cufile.log --log-level info -- fio job.fio",
      "  gpunvme cufile --print > gpunvme.env     for EnvironmentFile= of a service, or --env-file"
    })
final class CuFileCommand extends BaseCommand {
  @SuppressWarnings("UnusedVariable")
  @Option(
      names = "--map",
      paramLabel = "MOUNT=ADDRESS",
      description =
          "Files below MOUNT are on a namespace of an SSD of ours, as in"
              + " /mnt/data=vfio:0000:01:00.0#1. Their extents are read from the SSD, not through"
              + " the kernel; with :rw at the end they are written, too. May be repeated.")
  private List<String> map = List.of();

  @SuppressWarnings("UnusedVariable")
  @Option(
      names = "--log",
      paramLabel = "FILE",
      description = "Write a log in cuFile's form to FILE (none).")
  private String log = "";

  @SuppressWarnings("UnusedVariable")
  @Option(
      names = "--log-level",
      paramLabel = "LEVEL",
      description = "error, warn, notice, info, debug or trace (warn).")
  private String level = "";

  @SuppressWarnings("UnusedVariable")
  @Option(
      names = "--print",
      description =
          "Print the variables that it sets, one NAME=VALUE a line, and start nothing. --json does"
              + " it as an object.")
  private boolean printed;

  @SuppressWarnings("UnusedVariable")
  @Parameters(
      arity = "0..*",
      paramLabel = "-- PROGRAM [ARG...]",
      description = "The program and what it is called with.")
  private List<String> words = List.of();

  CuFileCommand(OutputStreams streams) {
    super(streams);
  }

  @Override
  int run() {
    throw new UsageException(
        "this command runs without Java: call gpunvme by its script (./gpunvme, or bin/gpunvme of"
            + " a package)");
  }
}
