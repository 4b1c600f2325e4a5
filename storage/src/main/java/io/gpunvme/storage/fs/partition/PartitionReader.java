package io.gpunvme.storage.fs.partition;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.storage.fs.BlockReader;
import java.lang.foreign.MemorySegment;

/** One partition of a device. Closing it leaves the device open. */
public final class PartitionReader implements BlockReader {
  private final BlockReader device;
  private final Partition partition;

  /**
   * A view of a part.
   *
   * @throws InvalidRequestException if it is not inside the device
   */
  public PartitionReader(BlockReader device, Partition partition) {
    this.device = device;
    this.partition = partition;
    long first = partition.firstByte();
    if (first < 0 || partition.bytes() < 0 || partition.bytes() > device.size() - first) {
      throw new InvalidRequestException(
          "partition %s is not inside %s, which has %d bytes"
              .formatted(partition, device.name(), device.size()));
    }
  }

  @Override
  public String name() {
    return device.name() + "#" + partition.number();
  }

  @Override
  public long size() {
    return partition.bytes();
  }

  @Override
  public void read(long offset, MemorySegment target) {
    requireInside(offset, target.byteSize());
    device.read(partition.firstByte() + offset, target);
  }
}
