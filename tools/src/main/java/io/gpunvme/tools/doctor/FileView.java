package io.gpunvme.tools.doctor;

import io.gpunvme.ffi.IoUring;
import io.gpunvme.ffi.IoUringUnavailableException;
import io.gpunvme.ffi.PosixException;
import io.gpunvme.storage.path.cufile.CuFileHost;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;

/**
 * The means of this process to read files.
 *
 * @param ringProblem why it gets no io_uring, empty if it does
 * @param ringFix what would change that, empty if nothing
 * @param cuFile where cuFile is looked for
 * @param ownCuFile the folder for gpunvme's own libcufile; null: unknown
 */
public record FileView(
    String ringProblem, String ringFix, CuFileHost cuFile, @Nullable Path ownCuFile) {
  private static final String ADVICE = "; ";

  /**
   * Asks the kernel for a ring, and gives it back.
   *
   * @param ownCuFile the folder for gpunvme's own libcufile; null: unknown
   */
  public static FileView look(@Nullable Path ownCuFile) {
    CuFileHost host = CuFileHost.here();
    try {
      IoUring.open(1).close();
      return new FileView("", "", host, ownCuFile);
    } catch (IoUringUnavailableException | PosixException e) {
      String text = String.valueOf(e.getMessage());
      int advice = text.lastIndexOf(ADVICE);
      return advice < 0
          ? new FileView(text, "", host, ownCuFile)
          : new FileView(
              text.substring(0, advice), text.substring(advice + ADVICE.length()), host, ownCuFile);
    }
  }
}
