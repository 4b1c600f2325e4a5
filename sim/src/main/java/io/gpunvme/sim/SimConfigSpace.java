package io.gpunvme.sim;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.nvme.pci.Bar;
import io.gpunvme.nvme.pci.ConfigSpace;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.jspecify.annotations.Nullable;

/**
 * PCI configuration space: a type 0 header with class 010802h and the capabilities power
 * management, MSI-X and PCI Express (with function level reset). Safe for all threads.
 *
 * <p>After power-on memory space is enabled, as firmware leaves it, and bus mastering is not: a
 * host that forgets to enable it sees its controller unable to fetch anything.
 */
final class SimConfigSpace implements ConfigSpace {
  static final int VENDOR = 0x6770;
  static final int DEVICE = 0x0001;

  private static final int SIZE = 256;
  private static final int STATUS = 0x06;
  private static final int STATUS_INTERRUPT = 1 << 3;
  private static final int STATUS_CAPABILITIES = 1 << 4;
  private static final int REVISION_CLASS = 0x08;
  private static final int CLASS_NVME = 0x010802;
  private static final int BARS = 0x10;
  private static final int BAR_COUNT = 6;
  private static final int BAR_64BIT = 0x4;
  private static final int SUBSYSTEM = 0x2C;
  private static final int CAPABILITIES = 0x34;
  private static final int INTERRUPT_LINE = 0x3C;
  private static final int INTERRUPT_PIN = 0x3D;

  private static final int PM = 0x40;
  private static final int PM_ID = 0x01;
  private static final int PM_VERSION = 3;
  private static final int PM_CONTROL = PM + 4;

  private static final int MSIX = 0x50;
  private static final int MSIX_ID = 0x11;
  private static final int MSIX_CONTROL = MSIX + 2;
  private static final int MSIX_ENABLE = 1 << 15;
  private static final int MSIX_FUNCTION_MASK = 1 << 14;

  private static final int EXPRESS = 0x60;
  private static final int EXPRESS_ID = 0x10;
  private static final int EXPRESS_VERSION = 2;
  private static final int EXPRESS_DEVICE_CAPABILITIES = EXPRESS + 4;
  private static final int EXPRESS_DEVICE_CONTROL = EXPRESS + 8;
  private static final int EXPRESS_LINK_CAPABILITIES = EXPRESS + 12;
  private static final int EXPRESS_LINK_STATUS = EXPRESS + 18;
  private static final int EXPRESS_FLR_CAPABLE = 1 << 28;
  private static final int EXPRESS_INITIATE_FLR = 1 << 15;
  private static final int EXPRESS_GEN5_X4 = 0x45;

  private static final int COMMAND_BITS =
      COMMAND_MEMORY | COMMAND_BUS_MASTER | COMMAND_INTX_DISABLE | 1 << 6 | 1 << 8;

  private final Runnable reset;
  private final ControllerStatus status;
  private final Interrupts interrupts;
  private final DmaSpace dma;
  private final ByteBuffer values = ByteBuffer.allocate(SIZE).order(ByteOrder.LITTLE_ENDIAN);
  private final ByteBuffer writable = ByteBuffer.allocate(SIZE).order(ByteOrder.LITTLE_ENDIAN);

  // Written under the monitor, read by every register access of any host thread.
  private volatile boolean memoryEnabled;

  /**
   * @param bars the BARs by index; a 64-bit BAR's upper half is null
   */
  SimConfigSpace(
      ControllerStatus status,
      DmaSpace dma,
      Interrupts interrupts,
      MsixTable msix,
      @Nullable Bar[] bars,
      Runnable reset) {
    this.reset = reset;
    this.status = status;
    this.interrupts = interrupts;
    this.dma = dma;
    fillHeader(bars);
    fillCapabilities(msix);
    memoryEnabled = true;
  }

  private void fillHeader(@Nullable Bar[] bars) {
    values.putInt(0, VENDOR | DEVICE << 16);
    values.putShort(COMMAND, (short) COMMAND_MEMORY);
    writable.putShort(COMMAND, (short) COMMAND_BITS);
    values.putShort(STATUS, (short) STATUS_CAPABILITIES);
    values.putInt(REVISION_CLASS, CLASS_NVME << 8);
    for (int i = 0; i < BAR_COUNT; i++) {
      Bar bar = bars[i];
      if (bar != null) {
        int at = BARS + i * Integer.BYTES;
        values.putInt(at, BAR_64BIT);
        writable.putLong(at, -bar.size());
      }
    }
    values.putInt(SUBSYSTEM, VENDOR | DEVICE << 16);
    values.put(CAPABILITIES, (byte) PM);
    writable.put(INTERRUPT_LINE, (byte) 0xFF);
    values.put(INTERRUPT_PIN, (byte) 1);
  }

  private void fillCapabilities(MsixTable msix) {
    values.putInt(PM, PM_ID | MSIX << 8 | PM_VERSION << 16);
    writable.putShort(PM_CONTROL, (short) 3);
    values.putInt(MSIX, MSIX_ID | EXPRESS << 8 | (msix.vectors() - 1) << 16);
    writable.putShort(MSIX_CONTROL, (short) (MSIX_ENABLE | MSIX_FUNCTION_MASK));
    values.putInt(MSIX + 4, MsixTable.BAR);
    values.putInt(MSIX + 8, msix.pendingOffset() | MsixTable.BAR);
    values.putInt(EXPRESS, EXPRESS_ID | EXPRESS_VERSION << 16);
    values.putInt(EXPRESS_DEVICE_CAPABILITIES, EXPRESS_FLR_CAPABLE | 1 << 15);
    writable.putShort(EXPRESS_DEVICE_CONTROL, (short) 0x78EF);
    values.putInt(EXPRESS_LINK_CAPABILITIES, EXPRESS_GEN5_X4);
    values.putShort(EXPRESS_LINK_STATUS, (short) EXPRESS_GEN5_X4);
  }

  /** Everything the host may write returns to its power-on value. */
  synchronized void reset() {
    for (int i = 0; i < SIZE; i++) {
      values.put(i, (byte) (values.get(i) & ~writable.get(i)));
    }
    values.putShort(COMMAND, (short) COMMAND_MEMORY);
    apply();
  }

  /** Whether registers answer: Memory Space Enable of the Command register. */
  boolean memoryEnabled() {
    return memoryEnabled;
  }

  @Override
  public int size() {
    return SIZE;
  }

  @Override
  public synchronized int read(int offset, int bytes) {
    check(offset, bytes);
    int ones = bytes == Integer.BYTES ? -1 : (1 << bytes * Byte.SIZE) - 1;
    if (status.isUnreachable()) {
      return ones;
    }
    int value = values.getInt(offset & -Integer.BYTES);
    if ((offset & -Integer.BYTES) == COMMAND && interrupts.isPending()) {
      value |= STATUS_INTERRUPT << 16;
    }
    return value >>> (offset & 3) * Byte.SIZE & ones;
  }

  @Override
  public void write(int offset, int bytes, int value) {
    check(offset, bytes);
    if (status.isUnreachable()) {
      return;
    }
    if (store(offset, bytes, value)) {
      // Not within the monitor: a reset takes the locks of the workers and resets this as well.
      reset.run();
    }
  }

  private synchronized boolean store(int offset, int bytes, int value) {
    for (int i = 0; i < bytes; i++) {
      int at = offset + i;
      int mask = writable.get(at);
      int fresh = value >>> i * Byte.SIZE;
      values.put(at, (byte) (values.get(at) & ~mask | fresh & mask));
    }
    apply();
    int control = Short.toUnsignedInt(valueAt(offset, bytes, value, EXPRESS_DEVICE_CONTROL));
    return (control & EXPRESS_INITIATE_FLR) != 0;
  }

  /** The 16 bits at {@code wanted} as far as an access writes them, other bits 0. */
  private static short valueAt(int offset, int bytes, int value, int wanted) {
    int result = 0;
    for (int i = 0; i < bytes; i++) {
      int at = offset + i - wanted;
      if (at == 0 || at == 1) {
        result |= (value >>> i * Byte.SIZE & 0xFF) << at * Byte.SIZE;
      }
    }
    return (short) result;
  }

  private void apply() {
    int command = values.getShort(COMMAND);
    int msixControl = values.getShort(MSIX_CONTROL);
    memoryEnabled = (command & COMMAND_MEMORY) != 0;
    dma.busMaster((command & COMMAND_BUS_MASTER) != 0);
    interrupts.control(
        (command & COMMAND_INTX_DISABLE) != 0,
        (msixControl & MSIX_ENABLE) != 0,
        (msixControl & MSIX_FUNCTION_MASK) != 0);
  }

  private static void check(int offset, int bytes) {
    boolean width = bytes == 1 || bytes == 2 || bytes == 4;
    if (!width || offset < 0 || offset > SIZE - bytes || offset % bytes != 0) {
      throw new InvalidRequestException(
          "access of %d bytes at offset %Xh of configuration space".formatted(bytes, offset));
    }
  }
}
