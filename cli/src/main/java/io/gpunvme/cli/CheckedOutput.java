package io.gpunvme.cli;

import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;

/** A print stream for data. It throws the errors that it would swallow. Closing only flushes. */
final class CheckedOutput extends OutputStream {
  private final PrintStream out;

  CheckedOutput(PrintStream out) {
    this.out = out;
  }

  @Override
  public void write(int b) throws IOException {
    out.write(b);
    check();
  }

  @Override
  public void write(byte[] bytes, int offset, int length) throws IOException {
    out.write(bytes, offset, length);
    check();
  }

  @Override
  public void close() throws IOException {
    check();
  }

  private void check() throws IOException {
    if (out.checkError()) {
      throw new IOException("standard output was closed before all data was written");
    }
  }
}
