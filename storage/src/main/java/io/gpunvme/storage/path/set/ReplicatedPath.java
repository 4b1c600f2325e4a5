package io.gpunvme.storage.path.set;

import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.transfer.Direction;
import io.gpunvme.storage.path.PathCall;
import io.gpunvme.storage.path.PathCounters;
import io.gpunvme.storage.path.Range;
import io.gpunvme.storage.path.StorageException;
import io.gpunvme.storage.path.StorageException.Kind;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * Members that all hold the same. A short read goes to the one that is expected to be done first,
 * long ones are shared out piece by piece: a slow member takes less, and hardly anything once it is
 * told slow. One that fails is left out from then on, named by {@link #mode}, and what it did not
 * bring the others do. Writes go to all members, and fail if one does.
 */
public final class ReplicatedPath extends SetPath {
  /** The most that a member takes at a time. */
  private static final long SHARE = 32 << 20;

  /** Shares of a long read for each member, if it is not too short for that. */
  private static final int SHARES = 4;

  /** Longest range that is given to one member whole. */
  private static final long PIECE = 8 << 20;

  private final ReplicaChoice choice;

  /** What writing all copies but the first takes; nobody asks. */
  private final PathCounters copies = new PathCounters();

  private final long size;

  /** A set. */
  public ReplicatedPath(List<Member> members) {
    this(members, System::nanoTime, SlowMembers.CONFIRMED_NANOS);
  }

  /** The same with another clock. */
  ReplicatedPath(List<Member> members, LongSupplier clock, long slowNanos) {
    super(members, clock, slowNanos);
    choice = new ReplicaChoice(this.members);
    size = members.stream().mapToLong(m -> m.path().size()).min().orElse(0);
  }

  @Override
  String shape() {
    return members.size() + " copies";
  }

  @Override
  public long size() {
    return size;
  }

  @Override
  public void transfer(Direction direction, List<Range> ranges, PathCall call) {
    if (direction == Direction.WRITE) {
      write(ranges, call);
    } else {
      read(ranges, call);
    }
  }

  private void write(List<Range> ranges, PathCall call) {
    List<Integer> all = IntStream.range(0, members.size()).boxed().toList();
    for (int m : all) {
      StorageException failure = members.failure(m);
      if (failure != null) {
        throw new StorageException(
            Kind.IO,
            call.source(),
            -1,
            -1,
            "nothing was written: a copy is out of use and would differ: " + failure.getMessage(),
            failure);
      }
    }
    List<RuntimeException> failed =
        members.run(
            all,
            call,
            m -> {
              PathCall part = members.part(call, m);
              if (m > 0) {
                // What is asked for counts once, not once a copy.
                part.countIn(copies);
              }
              members.transfer(m, Direction.WRITE, ranges, part);
            });
    if (!failed.isEmpty()) {
      throw Members.first(failed);
    }
  }

  private void read(List<Range> ranges, PathCall call) {
    long bytes = ranges.stream().mapToLong(Range::length).sum();
    long most = Math.clamp(bytes / ((long) SHARES * members.size()), PIECE, SHARE);
    Shares shares = new Shares(shares(ranges, most));
    while (!shares.queue.isEmpty()) {
      if (members.good().isEmpty()) {
        throw allFailed();
      }
      int count = shares.queue.size();
      ReplicaChoice.Several several = choice.several(count, Math.min(most, bytes));
      List<Integer> all = new ArrayList<>(several.which());
      List<Range> probe = null;
      if (several.probe() != ReplicaChoice.NONE) {
        // Put by, because the others may be done before its thread has begun.
        probe = shares.take();
        all.add(several.probe());
      }
      List<Range> putBy = probe;
      List<RuntimeException> failed =
          members.run(
              all,
              call,
              m -> {
                if (m != several.probe()) {
                  work(m, several.which(), shares, call);
                } else if (putBy != null) {
                  read(m, putBy, shares, call);
                }
              });
      for (RuntimeException e : failed) {
        if (!isMembersOwn(e)) {
          throw e;
        }
      }
    }
  }

  /** What is left of a read. */
  private static final class Shares {
    private final Queue<List<Range>> queue;
    private final AtomicLong left;

    Shares(List<List<Range>> all) {
      queue = new ConcurrentLinkedQueue<>(all);
      left = new AtomicLong(all.stream().mapToLong(ReplicatedPath::bytes).sum());
    }

    @Nullable List<Range> take() {
      List<Range> share = queue.poll();
      if (share != null) {
        left.addAndGet(-bytes(share));
      }
      return share;
    }

    void giveBack(List<Range> share) {
      left.addAndGet(bytes(share));
      queue.add(share);
    }
  }

  private static long bytes(List<Range> ranges) {
    return ranges.stream().mapToLong(Range::length).sum();
  }

  /** A member's thread: takes shares while there are any that it is the right one for. */
  private void work(int member, List<Integer> all, Shares shares, PathCall call) {
    while (true) {
      List<Range> next = shares.queue.peek();
      boolean good =
          next != null && choice.isWorthwhile(member, all, bytes(next), shares.left.get());
      List<Range> share = good ? shares.take() : null;
      if (share == null) {
        return;
      }
      read(member, share, shares, call);
    }
  }

  private void read(int member, List<Range> share, Shares shares, PathCall call) {
    try {
      members.transfer(member, Direction.READ, share, members.part(call, member));
    } catch (RuntimeException | Error e) {
      if (e instanceof StorageException own && isMembersOwn(own)) {
        shares.giveBack(share);
        members.fail(member, own);
        call.retried(1);
      } else {
        shares.queue.clear();
      }
      throw e;
    }
  }

  /** A short read is one member's, and this thread carries it out, without a list. */
  @Override
  public void transfer(
      Direction direction,
      long offset,
      DeviceBuffer buffer,
      long bufferOffset,
      long length,
      PathCall call) {
    if (direction == Direction.WRITE || length > PIECE) {
      transfer(direction, List.of(new Range(offset, buffer, bufferOffset, length)), call);
      return;
    }
    while (true) {
      int member = choice.one(length);
      if (member == ReplicaChoice.NONE) {
        throw allFailed();
      }
      try {
        PathCall part = members.part(call, member);
        members.transfer(member, direction, offset, buffer, bufferOffset, length, part);
        return;
      } catch (StorageException e) {
        if (!isMembersOwn(e)) {
          throw e;
        }
        members.fail(member, e);
        call.retried(1);
      }
    }
  }

  /** Whether another member may do better. */
  private static boolean isMembersOwn(RuntimeException e) {
    return e instanceof StorageException s
        && switch (s.kind()) {
          case IO, GONE, SHORT_READ, PERMISSION -> true;
          case NO_SPACE, CANCELLED, ACCELERATOR_MEMORY, ACCELERATOR, UNSUPPORTED -> false;
        };
  }

  private StorageException allFailed() {
    List<StorageException> all = new ArrayList<>();
    for (int m = 0; m < members.size(); m++) {
      StorageException failure = members.failure(m);
      if (failure != null) {
        all.add(failure);
      }
    }
    StorageException last = all.getLast();
    StorageException failure =
        new StorageException(
            last.kind(),
            last.source(),
            last.offset(),
            last.length(),
            "every copy has failed; the last: " + last.getMessage(),
            last);
    all.stream().filter(e -> e != last).forEach(failure::addSuppressed);
    return failure;
  }

  /** In shares of up to {@code most} bytes; a piece is never longer. */
  private static List<List<Range>> shares(List<Range> ranges, long most) {
    List<List<Range>> shares = new ArrayList<>();
    ArrayDeque<Range> share = new ArrayDeque<>();
    long bytes = 0;
    for (Range r : ranges) {
      for (long done = 0; done < r.length(); ) {
        // Pieces end where the source has a round offset: the next one begins aligned then.
        long at = r.offset() + done;
        long n = Math.min(r.length() - done, PIECE - at % PIECE);
        if (bytes + n > most && !share.isEmpty()) {
          shares.add(List.copyOf(share));
          share.clear();
          bytes = 0;
        }
        share.add(new Range(at, r.buffer(), r.bufferOffset() + done, n));
        bytes += n;
        done += n;
      }
    }
    if (!share.isEmpty()) {
      shares.add(List.copyOf(share));
    }
    return shares;
  }
}
