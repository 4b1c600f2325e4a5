package io.gpunvme.gpu.queue;

import io.gpunvme.gpu.queue.DeviceLayout.Extent;
import io.gpunvme.gpu.queue.DeviceLayout.File;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;

/** What kernels of a {@link FakeGpu} see of a file. */
public final class DeviceFileTables {
  private DeviceFileTables() {}

  /** Its extents, holes included. */
  public static List<DeviceExtent> read(DeviceFile file) {
    return read(file.deviceAddress());
  }

  /** The same of {@code struct DeviceFile} at an address. */
  public static List<DeviceExtent> read(long address) {
    MemorySegment head = at(address, File.SIZE);
    int count = DeviceLayout.getInt(head, File.EXTENT_COUNT);
    MemorySegment table = at(DeviceLayout.getLong(head, File.EXTENTS), count * Extent.SIZE);
    List<DeviceExtent> extents = new ArrayList<>();
    long end = DeviceLayout.getLong(head, File.BYTES);
    for (int i = count - 1; i >= 0; i--) {
      long offset = DeviceLayout.getLong(table, i * Extent.SIZE + Extent.OFFSET);
      long block = DeviceLayout.getLong(table, i * Extent.SIZE + Extent.BLOCK);
      extents.addFirst(new DeviceExtent(offset, end - offset, block));
      end = offset;
    }
    return extents;
  }

  @SuppressWarnings("restricted")
  private static MemorySegment at(long address, long bytes) {
    return MemorySegment.ofAddress(address).reinterpret(bytes);
  }
}
