package io.gpunvme.nvme.vfiouser;

import java.util.Locale;

/**
 * What a message asks for; numbers of the vfio-user specification, "Commands". {@code DMA_READ} and
 * {@code DMA_WRITE} go from the server to the client, all others the other way.
 */
public final class Command {
  public static final int VERSION = 1;
  public static final int DMA_MAP = 2;
  public static final int DMA_UNMAP = 3;
  public static final int DEVICE_GET_INFO = 4;
  public static final int DEVICE_GET_REGION_INFO = 5;
  public static final int DEVICE_GET_REGION_IO_FDS = 6;
  public static final int DEVICE_GET_IRQ_INFO = 7;
  public static final int DEVICE_SET_IRQS = 8;
  public static final int REGION_READ = 9;
  public static final int REGION_WRITE = 10;
  public static final int DMA_READ = 11;
  public static final int DMA_WRITE = 12;
  public static final int DEVICE_RESET = 13;

  private static final String[] NAMES = {
    "VERSION",
    "DMA_MAP",
    "DMA_UNMAP",
    "DEVICE_GET_INFO",
    "DEVICE_GET_REGION_INFO",
    "DEVICE_GET_REGION_IO_FDS",
    "DEVICE_GET_IRQ_INFO",
    "DEVICE_SET_IRQS",
    "REGION_READ",
    "REGION_WRITE",
    "DMA_READ",
    "DMA_WRITE",
    "DEVICE_RESET"
  };

  private Command() {}

  /** The name in the specification, for messages. */
  public static String name(int command) {
    return command >= 1 && command <= NAMES.length
        ? NAMES[command - 1]
        : String.format(Locale.ROOT, "command %d", command);
  }
}
