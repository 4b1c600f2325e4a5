package io.gpunvme.storage.path.set;

import io.gpunvme.base.CloseAll;
import io.gpunvme.base.WorkScope;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.transfer.Direction;
import io.gpunvme.nvme.pci.NumaHome;
import io.gpunvme.storage.path.MemberStats;
import io.gpunvme.storage.path.PathCall;
import io.gpunvme.storage.path.Range;
import io.gpunvme.storage.path.StorageException;
import io.gpunvme.storage.path.StorageException.Kind;
import java.lang.System.Logger.Level;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.function.LongSupplier;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * The members of a set: runs them side by side, keeps account of each, and tells which have become
 * slow. Safe for all threads.
 */
final class Members implements AutoCloseable {
  private static final System.Logger LOG = System.getLogger("io.gpunvme.storage.path.set");
  private static final double MICRO = 1e3;

  private final List<Member> members;
  private final MemberCounts[] counts;
  private final SlowMembers slow;
  private final LongSupplier clock;
  private final AtomicReferenceArray<@Nullable StorageException> failures;

  /** What was told of slow members last; empty for others. */
  private final AtomicReferenceArray<String> told;

  /** Grows with every verdict and every failure. */
  private final AtomicInteger changes = new AtomicInteger();

  private final ExecutorService threads =
      Executors.newCachedThreadPool(
          NumaHome.movable(Thread.ofPlatform().daemon().name("gpunvme-member-", 1).factory()));

  /** Work for one member. */
  interface Work {
    /** Done by a thread of its own. */
    void run(int member);
  }

  /**
   * @param clock ns, as {@link System#nanoTime}
   * @param slowNanos how long a member must take too much before it is told slow
   */
  Members(List<Member> members, LongSupplier clock, long slowNanos) {
    this.members = List.copyOf(members);
    this.clock = clock;
    long now = clock.getAsLong();
    counts =
        members.stream().map(m -> new MemberCounts(m.name(), now)).toArray(MemberCounts[]::new);
    slow = new SlowMembers(members.size(), slowNanos, this::changed);
    failures = new AtomicReferenceArray<>(members.size());
    String[] nothing = new String[members.size()];
    Arrays.fill(nothing, "");
    told = new AtomicReferenceArray<>(nothing);
  }

  private void changed(int member, boolean isSlow, double times, long nanos, long others) {
    String text =
        "%.1f times as long as the other members of the set take for such a request (%.0f us, not %.0f)"
            .formatted(times, nanos / MICRO, others / MICRO);
    told.set(member, slow.isSlow(member) ? text : "");
    changes.incrementAndGet();
    String name = members.get(member).name();
    if (isSlow) {
      LOG.log(Level.WARNING, name + " has become slow: it takes " + text);
    } else {
      LOG.log(Level.INFO, name + " is no longer slow: it takes " + text);
    }
  }

  int size() {
    return members.size();
  }

  List<Member> all() {
    return members;
  }

  /** Moves ranges of one member, and counts them for it. */
  void transfer(int member, Direction direction, List<Range> ranges, PathCall call) {
    long bytes = 0;
    for (Range r : ranges) {
      bytes += r.length();
    }
    long start = begin(member, bytes);
    try {
      members.get(member).path().transfer(direction, ranges, call);
    } catch (RuntimeException | Error e) {
      failed(member, bytes, start, e);
      throw e;
    }
    succeeded(member, direction, bytes, start);
  }

  /** The same for one range. */
  void transfer(
      int member,
      Direction direction,
      long offset,
      DeviceBuffer buffer,
      long bufferOffset,
      long length,
      PathCall call) {
    long start = begin(member, length);
    try {
      members.get(member).path().transfer(direction, offset, buffer, bufferOffset, length, call);
    } catch (RuntimeException | Error e) {
      failed(member, length, start, e);
      throw e;
    }
    succeeded(member, direction, length, start);
  }

  private long begin(int member, long bytes) {
    counts[member].begun(bytes);
    return clock.getAsLong();
  }

  private void failed(int member, long bytes, long start, Throwable why) {
    counts[member].over(bytes, clock.getAsLong() - start);
    if (!isCancelled(why)) {
      counts[member].failed();
    }
  }

  private void succeeded(int member, Direction direction, long bytes, long start) {
    long now = clock.getAsLong();
    counts[member].over(bytes, now - start);
    counts[member].moved(direction, bytes, now - start, now);
    slow.ended(member, direction, bytes, now - start, now);
  }

  /** A call of one member's, which ends with the whole one. */
  PathCall part(PathCall call, int member) {
    return call.part(members.get(member).name(), counts[member]);
  }

  /** Which members are slow, and what requests take. */
  SlowMembers slow() {
    return slow;
  }

  /** Another member is given what this one might have had. */
  void avoid(int member) {
    counts[member].avoided();
  }

  /** Bytes of requests that have begun and are not over. */
  long outstandingBytes(int member) {
    return counts[member].outstandingBytes();
  }

  /**
   * Does the work of several members side by side and returns when all of it is over.
   *
   * @param call asked while this waits: its thread may be the only one that can tell its end
   * @return failures in the order in which they were noticed
   */
  List<RuntimeException> run(List<Integer> which, PathCall call, Work work) {
    List<Runnable> parts =
        which.stream().<Runnable>map(member -> () -> runAtHome(member, work)).toList();
    List<RuntimeException> failed = new ArrayList<>();
    for (Throwable e : WorkScope.all(threads, parts, call::isCancelled)) {
      switch (e) {
        case RuntimeException own -> failed.add(own);
        case Error error -> throw error;
        default -> throw new IllegalStateException(e);
      }
    }
    return failed;
  }

  private void runAtHome(int member, Work work) {
    try (var _ = members.get(member).home().thread()) {
      work.run(member);
    }
  }

  /** The failure that the caller hears of: the first that is not only another one's consequence. */
  static RuntimeException first(List<RuntimeException> failed) {
    RuntimeException first =
        failed.stream().filter(e -> !isCancelled(e)).findFirst().orElse(failed.getFirst());
    failed.stream().filter(e -> e != first && !isCancelled(e)).forEach(first::addSuppressed);
    return first;
  }

  static boolean isCancelled(Throwable e) {
    return e instanceof StorageException s && s.kind() == Kind.CANCELLED;
  }

  /** Takes a member out of use. */
  void fail(int member, StorageException why) {
    if (failures.compareAndSet(member, null, why)) {
      changes.incrementAndGet();
      LOG.log(
          Level.WARNING, "a copy is out of use, the others are read instead: " + why.getMessage());
    }
  }

  @Nullable StorageException failure(int member) {
    return failures.get(member);
  }

  /** Those that have not failed. */
  List<Integer> good() {
    return IntStream.range(0, members.size()).filter(i -> failures.get(i) == null).boxed().toList();
  }

  List<MemberStats> stats() {
    return IntStream.range(0, members.size()).mapToObj(this::stats).toList();
  }

  private MemberStats stats(int member) {
    return counts[member].stats(clock.getAsLong(), told.get(member), why(member));
  }

  private String why(int member) {
    StorageException failure = failures.get(member);
    return failure == null ? "" : String.valueOf(failure.getMessage());
  }

  /** A number that changes with what {@link #remarks} says. */
  int changes() {
    return changes.get();
  }

  /** What is to be said of single members: those that failed, and those that are slow. */
  String remarks() {
    StringBuilder text = new StringBuilder();
    for (int m = 0; m < members.size(); m++) {
      String failure = why(m);
      String isSlow = told.get(m);
      if (!failure.isEmpty()) {
        text.append("; out of use: ").append(failure);
      } else if (!isSlow.isEmpty()) {
        text.append("; slow: ").append(members.get(m).name()).append(", ").append(isSlow);
      }
    }
    return text.toString();
  }

  @Override
  public void close() {
    threads.close();
    CloseAll.each(members, m -> m.path().close());
  }
}
