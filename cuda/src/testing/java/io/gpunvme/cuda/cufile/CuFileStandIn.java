package io.gpunvme.cuda.cufile;

import java.nio.file.Path;

/** Opens a library that stands in for libcufile; only this package can. */
public final class CuFileStandIn {
  private CuFileStandIn() {}

  /** The library in a file. */
  public static CuFile load(Path library) {
    return CuFile.load(library);
  }
}
