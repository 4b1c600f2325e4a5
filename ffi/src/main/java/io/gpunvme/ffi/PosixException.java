package io.gpunvme.ffi;

/**
 * A system call failed. The message has the call, what it was about, the error's name and its text:
 * {@code open /dev/vfio/7: EACCES (Permission denied)}.
 */
public final class PosixException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  private final int errno;
  private final String call;
  private final String subject;

  /**
   * An error of {@code call} about {@code subject}.
   *
   * @param call name of the system call
   * @param subject path, file descriptor or range it was about
   * @param errno the positive error number it left behind
   */
  public PosixException(String call, String subject, int errno) {
    super(call + " " + subject + ": " + Errno.name(errno) + " (" + Errno.text(errno) + ")");
    this.errno = errno;
    this.call = call;
    this.subject = subject;
  }

  /** The positive error number; {@link Errno} has those that callers tell apart. */
  public int errno() {
    return errno;
  }

  /** The symbolic name, as in {@code ENOENT}. */
  public String errnoName() {
    return Errno.name(errno);
  }

  /** The system call that failed. */
  public String call() {
    return call;
  }

  /** What the call was about. */
  public String subject() {
    return subject;
  }
}
