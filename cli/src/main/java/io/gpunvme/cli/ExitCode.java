package io.gpunvme.cli;

/** What the process ends with. */
final class ExitCode {
  static final int OK = 0;
  static final int FAILURE = 1;
  static final int USAGE = 2;

  private ExitCode() {}
}
