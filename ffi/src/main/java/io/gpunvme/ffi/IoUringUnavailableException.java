package io.gpunvme.ffi;

/** This process gets no io_uring here; why, and what would change that. */
public final class IoUringUnavailableException extends RuntimeException {
  private static final long serialVersionUID = 1;

  /** Why. */
  public enum Reason {
    /** The kernel was built without it, or a sandbox pretends so (ENOSYS). */
    NOT_IN_KERNEL,
    /** Forbidden: by a seccomp filter, as in containers, or by kernel.io_uring_disabled (EPERM). */
    FORBIDDEN,
    /** Its rings exceed the limit of locked memory (ENOMEM; Linux before 5.12). */
    NO_MEMORY,
    /** Linux before 5.6, which lacks plain reads and writes. */
    TOO_OLD
  }

  private final Reason reason;

  IoUringUnavailableException(Reason reason, String advice, PosixException cause) {
    super("no io_uring: " + cause.getMessage() + "; " + advice, cause);
    this.reason = reason;
  }

  IoUringUnavailableException(Reason reason, String advice) {
    super("no io_uring: " + advice);
    this.reason = reason;
  }

  /** What an error of io_uring_setup(2) means; one that says nothing about io_uring as it is. */
  static RuntimeException of(PosixException e) {
    return switch (e.errno()) {
      case Errno.ENOSYS ->
          new IoUringUnavailableException(
              Reason.NOT_IN_KERNEL, "this kernel, or the sandbox around this process, lacks it", e);
      case Errno.EPERM, Errno.EACCES ->
          new IoUringUnavailableException(
              Reason.FORBIDDEN,
              "allow it in the container's seccomp profile, and set kernel.io_uring_disabled to 0",
              e);
      case Errno.ENOMEM ->
          new IoUringUnavailableException(
              Reason.NO_MEMORY, "raise the limit of locked memory (ulimit -l)", e);
      default -> e;
    };
  }

  /** Why. */
  public Reason reason() {
    return reason;
  }
}
