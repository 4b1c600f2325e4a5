package io.gpunvme.storage;

import io.gpunvme.base.CloseAll;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.queue.DeviceExtent;
import io.gpunvme.gpu.queue.StripeSet;
import io.gpunvme.storage.path.DataPath;
import io.gpunvme.storage.path.PathKind;
import io.gpunvme.storage.path.Range;
import io.gpunvme.storage.path.StorageFailures;
import io.gpunvme.storage.path.Verdict;
import io.gpunvme.storage.path.set.Member;
import io.gpunvme.storage.path.set.ReplicatedPath;
import io.gpunvme.storage.path.set.StripedPath;
import io.gpunvme.storage.plan.Stripes;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** Several sources as one, all of them by the same path. */
final class SetSource implements Source {
  private final List<Source> members;
  private final SetShape shape;

  SetSource(List<Source> members, SetShape shape) {
    this.members = List.copyOf(members);
    this.shape = shape;
  }

  @Override
  public String name() {
    return shape.text(members.stream().map(Source::name).toList());
  }

  @Override
  public long size() {
    long[] sizes = members.stream().mapToLong(Source::size).toArray();
    return shape.isStriped()
        ? StripedPath.size(sizes, shape.unit())
        : Arrays.stream(sizes).min().orElse(0);
  }

  @Override
  public Map<String, String> homes() {
    Map<String, String> all = new TreeMap<>();
    members.forEach(m -> all.putAll(m.homes()));
    return all;
  }

  /** The largest of the members', for all of them are whole multiples of the smaller ones. */
  @Override
  public int blockSize() {
    return members.stream().mapToInt(Source::blockSize).max().orElseThrow();
  }

  /** Bytes that follow each other in a striped set do so on each of its members. */
  @Override
  public List<BlockRun> blocks(long offset, long length) {
    List<BlockRun> all = new ArrayList<>();
    Stripes stripes = shape.isStriped() ? new Stripes(members.size(), shape.unit()) : Stripes.NONE;
    for (int m = 0; m < members.size(); m++) {
      int turn = shape.isStriped() ? m : 0;
      long from = stripes.memberSize(turn, offset);
      long end = stripes.memberSize(turn, offset + length);
      all.addAll(members.get(m).blocks(from, end - from));
    }
    return all;
  }

  @Override
  public StripeSet set() {
    if (!shape.isStriped()) {
      throw unsupported("has its data several times: open one of its members for kernels");
    }
    return new StripeSet(members.stream().map(SetSource::member).toList(), shape.unit(), size());
  }

  private static StripeSet.Member member(Source source) {
    StripeSet on = source.set();
    List<DeviceExtent> extents = source.extents();
    if (on.members().size() > 1) {
      throw source.unsupported("is a set in a set: kernels take sets of SSDs");
    }
    if (extents.isEmpty() || extents.getFirst().bytes() != source.size()) {
      throw source.unsupported(
          "is a member of a set and in %d pieces: kernels take members in one piece"
              .formatted(extents.size()));
    }
    StripeSet.Member all = on.members().getFirst();
    long slba = all.slba() + extents.getFirst().block();
    return new StripeSet.Member(all.controller(), all.namespace(), slba);
  }

  @Override
  public List<DeviceExtent> extents() {
    return List.of(new DeviceExtent(0, size(), 0));
  }

  @Override
  public List<Verdict> verdicts() {
    List<List<Verdict>> all = members.stream().map(Source::verdicts).toList();
    return Arrays.stream(PathKind.values()).map(kind -> verdict(kind, all)).toList();
  }

  /** Possible for all, or not at all, for the first one's reason. */
  private Verdict verdict(PathKind kind, List<List<Verdict>> all) {
    Verdict worst = null;
    for (int m = 0; m < all.size(); m++) {
      for (Verdict v : all.get(m)) {
        if (v.kind() == kind && (worst == null || rank(v) < rank(worst))) {
          String reason = v.possible() ? v.reason() : members.get(m).name() + ": " + v.reason();
          worst = new Verdict(kind, v.possible(), v.automatic(), reason, v.fix());
        }
      }
    }
    return worst == null ? Verdict.no(kind, "no member has this path", "") : worst;
  }

  private static int rank(Verdict v) {
    return v.automatic() ? 2 : v.possible() ? 1 : 0;
  }

  @Override
  public DataPath open(PathKind kind) {
    List<Member> open = new ArrayList<>();
    try {
      for (Source s : members) {
        open.add(new Member(s.name(), s.open(kind), s.home()));
      }
      return shape.isStriped() ? new StripedPath(open, shape.unit()) : new ReplicatedPath(open);
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, open, m -> m.path().close());
      throw e;
    }
  }

  /** Of the first member, which stands for the others: about the same part of each is read. */
  @Override
  public double resident(List<Range> ranges) {
    int parts = shape.isStriped() ? members.size() : 1;
    return members
        .getFirst()
        .resident(
            ranges.stream()
                .map(
                    r ->
                        new Range(
                            r.offset() / parts, r.buffer(), r.bufferOffset(), r.length() / parts))
                .toList());
  }

  /** Of all members, also behind one that fails. */
  @Override
  public void flush() {
    CloseAll.each(members, SetSource::flush);
  }

  private static void flush(Source member) {
    try {
      member.flush();
    } catch (RuntimeException e) {
      // Which one of them is what whoever mends it wants to know.
      throw StorageFailures.of(e, member.name(), -1, -1);
    }
  }

  @Override
  public SetSource on(Accelerator other) {
    List<Source> theirs = new ArrayList<>();
    try {
      members.forEach(m -> theirs.add(m.on(other)));
      return new SetSource(theirs, shape);
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, theirs, Source::close);
      throw e;
    }
  }

  @Override
  public void close() {
    CloseAll.each(members, Source::close);
  }
}
