package io.gpunvme.storage.path.set;

import io.gpunvme.base.CloseAll;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.transfer.Direction;
import io.gpunvme.storage.path.PathCall;
import io.gpunvme.storage.path.Range;
import io.gpunvme.storage.plan.Stripes;
import java.util.ArrayList;
import java.util.List;
import java.util.function.LongSupplier;
import java.util.stream.IntStream;

/**
 * Members in turns, as RAID 0: unit 0 on the first, unit 1 on the second, and around again. A
 * member that fails is named by the failure, which ends the others' work too.
 */
public final class StripedPath extends SetPath {
  private final Stripes stripes;
  private final long size;

  /**
   * A set.
   *
   * @param unit bytes on one member before the next one's turn, a power of two of at least every
   *     member's alignment
   * @throws InvalidRequestException if it is not that, or a member holds less than one unit
   */
  public StripedPath(List<Member> members, long unit) {
    this(members, unit, System::nanoTime, SlowMembers.CONFIRMED_NANOS);
  }

  /** The same with another clock. */
  StripedPath(List<Member> members, long unit, LongSupplier clock, long slowNanos) {
    super(members, clock, slowNanos);
    int alignment = alignment();
    if (Long.bitCount(unit) != 1 || unit < alignment) {
      throw new InvalidRequestException(
          "a stripe unit of %d bytes is not a power of two of at least %d"
              .formatted(unit, alignment));
    }
    stripes = new Stripes(members.size(), unit);
    size = size(members.stream().mapToLong(m -> m.path().size()).toArray(), unit);
  }

  /** Bytes of a set: what all members hold in whole units. */
  public static long size(long[] members, long unit) {
    long least = Long.MAX_VALUE;
    for (long member : members) {
      least = Math.min(least, member / unit * unit);
    }
    if (least == 0) {
      throw new InvalidRequestException(
          "a member is smaller than a stripe unit of " + unit + " bytes");
    }
    return Math.multiplyExact(least, members.length);
  }

  @Override
  String shape() {
    return "%d stripes of %d KiB".formatted(stripes.members(), stripes.unit() >> 10);
  }

  @Override
  public long size() {
    return size;
  }

  @Override
  public void transfer(Direction direction, List<Range> ranges, PathCall call) {
    List<List<Range>> parts = split(ranges);
    List<Integer> busy =
        IntStream.range(0, parts.size()).filter(m -> !parts.get(m).isEmpty()).boxed().toList();
    if (busy.isEmpty()) {
      return;
    }
    List<PathCall> calls =
        IntStream.range(0, parts.size()).mapToObj(m -> members.part(call, m)).toList();
    List<RuntimeException> failed =
        members.run(
            busy,
            call,
            m -> {
              try {
                members.transfer(m, direction, parts.get(m), calls.get(m));
              } catch (RuntimeException | Error e) {
                // What the others bring is of no use any more.
                CloseAll.after(e, calls, PathCall::cancel);
                throw e;
              }
            });
    if (!failed.isEmpty()) {
      throw Members.first(failed);
    }
  }

  /** What lies on one member is carried out by this thread, without a list. */
  @Override
  public void transfer(
      Direction direction,
      long offset,
      DeviceBuffer buffer,
      long bufferOffset,
      long length,
      PathCall call) {
    if (length > stripes.unit() - (offset & (stripes.unit() - 1))) {
      transfer(direction, List.of(new Range(offset, buffer, bufferOffset, length)), call);
      return;
    }
    int member = stripes.member(offset);
    PathCall part = members.part(call, member);
    long there = stripes.memberOffset(offset);
    members.transfer(member, direction, there, buffer, bufferOffset, length, part);
  }

  /** Each member's share, in its own offsets. */
  private List<List<Range>> split(List<Range> ranges) {
    List<List<Range>> parts = new ArrayList<>();
    for (int m = 0; m < stripes.members(); m++) {
      parts.add(new ArrayList<>());
    }
    for (Range r : ranges) {
      long done = 0;
      while (done < r.length()) {
        long at = r.offset() + done;
        long n = Math.min(r.length() - done, stripes.unit() - at % stripes.unit());
        parts
            .get(stripes.member(at))
            .add(new Range(stripes.memberOffset(at), r.buffer(), r.bufferOffset() + done, n));
        done += n;
      }
    }
    return parts;
  }
}
