package io.gpunvme.storage.path.set;

import io.gpunvme.base.CloseAll;
import io.gpunvme.base.WorkScope;
import io.gpunvme.gpu.transfer.Direction;
import io.gpunvme.storage.path.MemberStats;
import io.gpunvme.storage.path.PathCall;
import io.gpunvme.storage.path.Range;
import io.gpunvme.storage.path.StorageException;
import io.gpunvme.storage.path.StorageException.Kind;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.concurrent.atomic.LongAdder;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/** The members of a set: runs them side by side and keeps account of each. Safe for all threads. */
final class Members implements AutoCloseable {
  /** One that reaches less than this share of what the others do is called slow. */
  private static final double SLOW = 0.5;

  /** Before so much was moved nobody is called slow. */
  private static final long ENOUGH = 64 << 20;

  private final List<Member> members;
  private final LongAdder[] bytes;
  private final LongAdder[] nanos;
  private final AtomicReferenceArray<@Nullable StorageException> failures;
  private final ExecutorService threads =
      Executors.newCachedThreadPool(
          Thread.ofPlatform().daemon().name("gpunvme-member-", 1).factory());

  /** Work for one member. */
  interface Work {
    /** Done by a thread of its own. */
    void run(int member);
  }

  Members(List<Member> members) {
    this.members = List.copyOf(members);
    bytes = adders();
    nanos = adders();
    failures = new AtomicReferenceArray<>(members.size());
  }

  private LongAdder[] adders() {
    return IntStream.range(0, members.size())
        .mapToObj(_ -> new LongAdder())
        .toArray(LongAdder[]::new);
  }

  int size() {
    return members.size();
  }

  List<Member> all() {
    return members;
  }

  /** Moves ranges of one member, and counts them for it. */
  void transfer(int member, Direction direction, List<Range> ranges, PathCall call) {
    long start = System.nanoTime();
    members.get(member).path().transfer(direction, ranges, call);
    nanos[member].add(System.nanoTime() - start);
    bytes[member].add(ranges.stream().mapToLong(Range::length).sum());
  }

  /** A call of one member's, which ends with the whole one. */
  PathCall part(PathCall call, int member) {
    return call.part(members.get(member).name());
  }

  /**
   * Does the work of several members side by side and returns when all of it is over.
   *
   * @param call asked while this waits: its thread may be the only one that can tell its end
   * @return failures in the order in which they were noticed
   */
  List<RuntimeException> run(List<Integer> which, PathCall call, Work work) {
    List<Runnable> parts = which.stream().<Runnable>map(member -> () -> work.run(member)).toList();
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

  /** The failure that the caller hears of: the first that is not only another one's consequence. */
  static RuntimeException first(List<RuntimeException> failed) {
    RuntimeException first =
        failed.stream().filter(e -> !isCancelled(e)).findFirst().orElse(failed.getFirst());
    failed.stream().filter(e -> e != first && !isCancelled(e)).forEach(first::addSuppressed);
    return first;
  }

  static boolean isCancelled(RuntimeException e) {
    return e instanceof StorageException s && s.kind() == Kind.CANCELLED;
  }

  /** Takes a member out of use. */
  void fail(int member, StorageException why) {
    failures.compareAndSet(member, null, why);
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
    StorageException failure = failures.get(member);
    return new MemberStats(
        members.get(member).name(),
        bytes[member].sum(),
        nanos[member].sum(),
        failure == null ? "" : String.valueOf(failure.getMessage()));
  }

  /** What is to be said of single members: those that failed, and those that are slow. */
  String remarks() {
    List<MemberStats> all = stats();
    double[] rates =
        all.stream()
            .filter(m -> m.failure().isEmpty() && m.bytes() >= ENOUGH)
            .mapToDouble(MemberStats::gigabytesPerSecond)
            .sorted()
            .toArray();
    double median = rates.length < 2 ? 0 : rates[rates.length / 2];
    return all.stream()
        .map(m -> remark(m, median))
        .filter(r -> !r.isEmpty())
        .collect(Collectors.joining());
  }

  private static String remark(MemberStats m, double median) {
    if (!m.failure().isEmpty()) {
      return "; out of use: " + m.failure();
    }
    boolean slow = m.bytes() >= ENOUGH && m.gigabytesPerSecond() < SLOW * median;
    return slow
        ? "; slow: %s, %.2f GB/s where the median is %.2f"
            .formatted(m.name(), m.gigabytesPerSecond(), median)
        : "";
  }

  @Override
  public void close() {
    threads.close();
    CloseAll.each(members, m -> m.path().close());
  }
}
