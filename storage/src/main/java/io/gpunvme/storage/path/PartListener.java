package io.gpunvme.storage.path;

/** Is told what one of several members does for a transfer. Called by several threads. */
public interface PartListener {
  /** An operation (a system call, a cuFile call, an NVMe command) has succeeded in so many ns. */
  void operation(long nanos);

  /** Operations were repeated after a failure that may pass. */
  void retried(long times);
}
