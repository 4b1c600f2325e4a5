package io.gpunvme.gpu.queue;

import io.gpunvme.nvme.spec.Status;

/**
 * The outcome of a command, as the device library reports it ({@code gpunvme::Status}): 0, a status
 * field of the controller, or one of these.
 */
public final class DeviceStatus {
  /** Set in every status that no controller gave. */
  private static final int MADE = 0x8000;

  /**
   * Command Aborted By Host: it was in flight when the host recovered its queue. It may or may not
   * have been carried out; its data moves no more, and it may be submitted again.
   */
  public static final int ABORTED_BY_HOST = 0x371;

  /** Not over yet. */
  public static final int PENDING = 0x8000;

  /** No completion before the deadline; the data may still move. */
  public static final int TIMEOUT = 0x8001;

  /** The host told the kernel to stop; the data may still move if the command was submitted. */
  public static final int STOPPED = 0x8002;

  /** No slot, or frame of a page cache, became free before the deadline; nothing was submitted. */
  public static final int BUSY = 0x8003;

  /** Outside the namespace or the buffer, misaligned, or too long; nothing was submitted. */
  public static final int ARGUMENT = 0x8004;

  /**
   * A page cache that verifies ({@link PageCacheOptions#withVerify}) got a page with other bytes
   * than it had before.
   */
  public static final int CORRUPT = 0x8005;

  private DeviceStatus() {}

  /** Whether the controller gave this status. */
  public static boolean fromController(int status) {
    return (status & MADE) == 0;
  }

  /** Whether it is a failure. A success may come with bits beside SC and SCT. */
  static boolean failed(int status) {
    return (status & (MADE | 0x7FF)) != 0;
  }

  /** The status in words. */
  public static String describe(int status) {
    return switch (status) {
      case PENDING -> "not over yet";
      case TIMEOUT -> "no completion before the deadline";
      case STOPPED -> "stopped by the host";
      case BUSY ->
          "no slot, or frame of a page cache, became free before the deadline, or all slots are"
              + " quarantined";
      case ARGUMENT -> "outside the namespace or the buffer, misaligned, or too long";
      case CORRUPT -> "a page has other bytes than it had before";
      default -> fromController(status) ? Status.describe(status) : "status %Xh".formatted(status);
    };
  }
}
