package io.gpunvme.nvme.driver;

import io.gpunvme.base.DmaBuf;
import io.gpunvme.ffi.Mapping;
import io.gpunvme.ffi.Posix;
import io.gpunvme.nvme.memory.RemotePort;
import io.gpunvme.nvme.pci.host.DeviceFile;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;

/**
 * Part of another function's BAR, which the module bar_exporter shares as a GPU's driver shares the
 * GPU's memory. Its contents are seen through the BAR's file in sysfs.
 */
final class BarBuffer implements SharedBuffer {
  /** How the exporter gives its addresses away. */
  enum Addresses {
    /** Mapped for whoever imports it, as it should be. */
    MAPPED(0xA800),
    /** Physical ones, whatever the importer's IOMMU makes of them. */
    RAW(0xA801);

    private final long request;

    Addresses(long request) {
      this.request = request;
    }
  }

  private final DeviceFile exporter;
  private final Addresses addresses;
  private final Mapping mapping;
  private final long base;
  private final long offset;
  private final long size;

  /**
   * Takes part of the BAR.
   *
   * @param bar its file in sysfs
   * @param base where the buffer begins in the BAR, a multiple of 4096, as the others
   * @param whole the buffer's bytes
   * @param offset where in the buffer the memory begins
   * @param size of the memory
   */
  BarBuffer(
      Path exporter, Addresses addresses, Path bar, long base, long whole, long offset, long size) {
    this.exporter = DeviceFile.open(exporter);
    this.addresses = addresses;
    this.base = base;
    this.offset = offset;
    this.size = size;
    try (DeviceFile file = DeviceFile.open(bar)) {
      this.mapping = file.map(base, whole);
    }
  }

  @Override
  public MemorySegment whole() {
    return mapping.segment();
  }

  @Override
  public MemorySegment memory() {
    return whole().asSlice(offset, size);
  }

  @Override
  public String name() {
    return "%d bytes of a BAR, from %Xh on".formatted(size, base + offset);
  }

  @Override
  public long size() {
    return size;
  }

  @Override
  public DmaBuf exportDmaBuf() {
    return new DmaBuf(
        Posix.ioctl(exporter.fd(), addresses.request, MemorySegment.NULL), base + offset, size);
  }

  @Override
  public RemotePort openPort(RemotePort.Use use) {
    throw new UnsupportedOperationException("the mapping is there for that");
  }

  @Override
  public void close() {
    mapping.close();
    exporter.close();
  }
}
