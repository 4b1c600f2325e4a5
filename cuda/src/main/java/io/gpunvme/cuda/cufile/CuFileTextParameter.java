package io.gpunvme.cuda.cufile;

/** Parameters of cuFile that are text, named as in its header, in its order. */
public enum CuFileTextParameter {
  /** For example {@code ERROR}. */
  LOGGING_LEVEL,
  /** The log file. */
  ENV_LOGFILE_PATH,
  /** The folder of {@code cufile.log}. */
  LOG_DIR;

  /** Its number in {@code cuFileGetParameter...}. */
  int number() {
    return ordinal();
  }
}
