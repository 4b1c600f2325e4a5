package io.gpunvme.storage.path.extents;

import io.gpunvme.gpu.transfer.Direction;
import io.gpunvme.storage.path.DataPath;
import io.gpunvme.storage.path.MemberStats;
import io.gpunvme.storage.path.PathCall;
import io.gpunvme.storage.path.Range;
import io.gpunvme.storage.path.set.MemberPath;
import java.util.List;

/** A contiguous part of a device, such as a partition, by way of a path of the device. */
public final class PartPath extends DevicePath implements MemberPath {
  private final long first;

  /**
   * A part.
   *
   * @param device stays the caller's
   * @param first its first byte on the device
   * @param size in bytes; the part does not leave the device
   */
  public PartPath(DataPath device, long first, long size) {
    super(device, size);
    this.first = first;
  }

  @Override
  public String mode() {
    return device.mode();
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
}
