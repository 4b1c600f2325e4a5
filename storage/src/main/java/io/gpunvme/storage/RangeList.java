package io.gpunvme.storage;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.storage.path.Range;
import io.gpunvme.storage.plan.Ranges;
import java.util.AbstractList;
import java.util.List;
import java.util.RandomAccess;

/** Ranges as paths take them: a view, which makes each when it is asked for. */
final class RangeList extends AbstractList<Range> implements RandomAccess {
  private final Ranges ranges;
  private final List<DeviceBuffer> targets;

  /**
   * @param targets a buffer for each target
   * @throws InvalidRequestException if a range goes to a target that has none
   */
  RangeList(Ranges ranges, List<DeviceBuffer> targets) {
    this.ranges = ranges;
    this.targets = List.copyOf(targets);
    for (int i = 0; i < ranges.size(); i++) {
      if (ranges.target(i) >= targets.size()) {
        throw new InvalidRequestException(
            "range %d goes to target %d, but the request has %d buffers"
                .formatted(i, ranges.target(i), targets.size()));
      }
    }
  }

  @Override
  public Range get(int i) {
    return new Range(
        ranges.offset(i), targets.get(ranges.target(i)), ranges.targetOffset(i), ranges.length(i));
  }

  @Override
  public int size() {
    return ranges.size();
  }
}
