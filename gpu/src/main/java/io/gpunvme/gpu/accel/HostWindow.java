package io.gpunvme.gpu.accel;

/** Host memory or registers of others, as an accelerator addresses them. Safe for all threads. */
public interface HostWindow extends AutoCloseable {
  /** Where the accelerator finds the first byte. */
  long deviceAddress();

  /**
   * Takes the window away; nothing on the accelerator may use it any more. Idempotent, also after
   * the accelerator's close.
   */
  @Override
  void close();
}
