package io.gpunvme.storage.path.set;

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
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;

/**
 * Members that all hold the same. Reads are shared out piece by piece, so that a slow member takes
 * less of them; one that fails is left out from then on, named by {@link #mode}, and what it did
 * not bring the others do. Writes go to all members, and fail if one does.
 */
public final class ReplicatedPath extends SetPath {
  /** What a member takes at a time. */
  private static final long SHARE = 32 << 20;

  /** Longest range that is given to one member whole. */
  private static final long PIECE = 8 << 20;

  private final AtomicInteger turn = new AtomicInteger();

  /** What writing all copies but the first takes; nobody asks. */
  private final PathCounters copies = new PathCounters();

  private final long size;

  /** A set. */
  public ReplicatedPath(List<Member> members) {
    super(members);
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
    Queue<List<Range>> shares = new ConcurrentLinkedQueue<>(shares(ranges));
    while (!shares.isEmpty()) {
      List<Integer> good = members.good();
      if (good.isEmpty()) {
        throw allFailed();
      }
      List<RuntimeException> failed =
          members.run(some(good, shares.size()), call, m -> work(m, shares, call));
      for (RuntimeException e : failed) {
        if (!isMembersOwn(e)) {
          throw e;
        }
      }
    }
  }

  /** As many as there is work for, another one first each time. */
  private List<Integer> some(List<Integer> good, int shares) {
    int first = Math.floorMod(turn.getAndIncrement(), good.size());
    List<Integer> some = new ArrayList<>();
    for (int i = 0; i < Math.min(shares, good.size()); i++) {
      some.add(good.get((first + i) % good.size()));
    }
    return some;
  }

  /** A member's thread: takes shares until there are none. */
  private void work(int member, Queue<List<Range>> shares, PathCall call) {
    for (List<Range> share = shares.poll(); share != null; share = shares.poll()) {
      try {
        members.transfer(member, Direction.READ, share, members.part(call, member));
      } catch (RuntimeException | Error e) {
        if (e instanceof StorageException own && isMembersOwn(own)) {
          shares.add(share);
          members.fail(member, own);
          call.counters().retried(1);
        } else {
          shares.clear();
        }
        throw e;
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

  private static List<List<Range>> shares(List<Range> ranges) {
    List<List<Range>> shares = new ArrayList<>();
    ArrayDeque<Range> share = new ArrayDeque<>();
    long bytes = 0;
    for (Range r : ranges) {
      for (long done = 0; done < r.length(); ) {
        // Pieces end where the source has a round offset: the next one begins aligned then.
        long at = r.offset() + done;
        long n = Math.min(r.length() - done, PIECE - at % PIECE);
        if (bytes + n > SHARE && !share.isEmpty()) {
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
