package io.gpunvme.storage.path.extents;

import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.transfer.Direction;
import io.gpunvme.storage.path.DataPath;
import io.gpunvme.storage.path.MemberStats;
import io.gpunvme.storage.path.PathCall;
import io.gpunvme.storage.path.PathKind;
import io.gpunvme.storage.path.Range;
import io.gpunvme.storage.path.RequestShape;
import io.gpunvme.storage.path.set.MemberPath;
import java.util.List;

/** A contiguous part of a device, such as a partition, by way of a path of the device. */
public final class PartPath implements DataPath, MemberPath {
  private final DataPath device;
  private final long first;
  private final long size;

  /**
   * A part.
   *
   * @param device stays the caller's
   * @param first its first byte on the device
   * @param size in bytes; the part does not leave the device
   */
  public PartPath(DataPath device, long first, long size) {
    this.device = device;
    this.first = first;
    this.size = size;
  }

  @Override
  public PathKind kind() {
    return device.kind();
  }

  @Override
  public boolean plansReads() {
    return device.plansReads();
  }

  @Override
  public String mode() {
    return device.mode();
  }

  @Override
  public long size() {
    return size;
  }

  @Override
  public int alignment() {
    return device.alignment();
  }

  @Override
  public double expected(RequestShape shape) {
    return device.expected(shape);
  }

  @Override
  public void transfer(Direction direction, List<Range> ranges, PathCall call) {
    List<Range> moved =
        ranges.stream()
            .map(r -> new Range(first + r.offset(), r.buffer(), r.bufferOffset(), r.length()))
            .toList();
    device.transfer(direction, moved, call);
  }

  @Override
  public List<MemberStats> members() {
    return device instanceof MemberPath set ? set.members() : List.of();
  }

  @Override
  public void register(DeviceBuffer buffer) {
    device.register(buffer);
  }

  @Override
  public void deregister(DeviceBuffer buffer) {
    device.deregister(buffer);
  }

  /** The device's path stays open. */
  @Override
  public void close() {}
}
