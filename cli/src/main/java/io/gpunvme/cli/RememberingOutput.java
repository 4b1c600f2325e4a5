package io.gpunvme.cli;

import io.gpunvme.base.Reason;
import java.io.FilterOutputStream;
import java.io.IOException;
import java.io.OutputStream;

/** Remembers why a stream could not be written, which a print stream forgets. */
final class RememberingOutput extends FilterOutputStream {
  private volatile String failure = "";

  RememberingOutput(OutputStream to) {
    super(to);
  }

  @Override
  public void write(byte[] bytes, int offset, int length) throws IOException {
    try {
      out.write(bytes, offset, length);
    } catch (IOException e) {
      failure = Reason.of(e);
      throw e;
    }
  }

  /** The last failure; empty if there was none. */
  String failure() {
    return failure;
  }
}
