package io.gpunvme.nvme.pci.kmod;

/**
 * Numbers and layouts of {@code kmod/gpunvme_uapi.h}: of each structure its size, and the offset of
 * each field that is used. A test compares them with the header.
 */
final class KmodAbi {
  static final int VERSION = 2;

  private static final int TYPE = 0xA7;
  private static final long WRITE = 1;
  private static final long READ = 2;

  static final long GET_INFO = request(READ, 0, DeviceInfo.SIZE);
  static final long PIN = request(READ | WRITE, 1, Pin.SIZE);
  static final long IMPORT = request(READ | WRITE, 2, Import.SIZE);
  static final long RELEASE = request(WRITE, 3, Release.SIZE);
  static final long RESET = request(0, 4, 0);

  private KmodAbi() {}

  /** As {@code _IOC} of {@code <asm-generic/ioctl.h>}. */
  private static long request(long direction, int number, long bytes) {
    return direction << 30 | bytes << 16 | TYPE << 8 | number;
  }

  /** {@code gpunvme_info}. */
  static final class DeviceInfo {
    static final int TRANSLATED = 1;
    static final int RESET = 1 << 1;
    static final int ISOLATED = 1 << 2;
    static final long SIZE = 64;
    static final long ABI_VERSION = 0;
    static final long FLAGS = 4;
    static final long BAR0_BYTES = 8;
    static final long ADDRESS_BITS = 16;
    static final long PAGE_BYTES = 20;
    static final long MOST_BYTES = 24;
    static final long BYTES = 32;
    static final long MOST_RANGES = 40;
    static final long RANGES = 44;
    static final long PCI_DOMAIN = 48;
    static final long PCI_FUNCTION = 52;

    private DeviceInfo() {}
  }

  /** {@code gpunvme_run}. */
  static final class Run {
    static final long SIZE = 16;
    static final long BUS_ADDRESS = 0;
    static final long BYTES = 8;

    private Run() {}
  }

  /** {@code gpunvme_pin}. */
  static final class Pin {
    static final long SIZE = 48;
    static final long ADDRESS = 0;
    static final long BYTES = 8;
    static final long RUNS = 16;
    static final long MOST_RUNS = 24;
    static final long FLAGS = 28;
    static final long RUN_COUNT = 32;
    static final long HANDLE = 40;

    private Pin() {}
  }

  /** {@code gpunvme_import}. */
  static final class Import {
    /** Some of it is memory of this machine, not of a device. */
    static final int RAM = 1;

    /** The module mapped what the exporter gave as physical addresses. */
    static final int REMAPPED = 1 << 1;

    static final long SIZE = 40;
    static final long FD = 0;
    static final long FLAGS = 4;
    static final long RUNS = 8;
    static final long MOST_RUNS = 16;
    static final long RUN_COUNT = 20;
    static final long BYTES = 24;
    static final long HANDLE = 32;

    private Import() {}
  }

  /** {@code gpunvme_release}. */
  static final class Release {
    static final long SIZE = 8;
    static final long HANDLE = 0;

    private Release() {}
  }
}
