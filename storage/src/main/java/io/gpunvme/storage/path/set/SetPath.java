package io.gpunvme.storage.path.set;

import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.storage.path.DataPath;
import io.gpunvme.storage.path.MemberStats;
import io.gpunvme.storage.path.PathKind;
import io.gpunvme.storage.path.RequestShape;
import java.util.List;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/** What sets have in common. */
abstract class SetPath implements DataPath, MemberPath {
  final Members members;

  /** The last mode, which every short read asks for. */
  private volatile @Nullable Mode mode;

  /**
   * @param all of one kind, at least one
   * @param clock ns, as {@link System#nanoTime}
   * @param slowNanos how long a member must take too much before it is told slow
   */
  SetPath(List<Member> all, LongSupplier clock, long slowNanos) {
    members = new Members(all, clock, slowNanos);
  }

  /** A text, and what it was made of. */
  private record Mode(String first, int changes, String text) {}

  @Override
  public PathKind kind() {
    return members.all().getFirst().path().kind();
  }

  @Override
  public boolean plansReads() {
    return members.all().getFirst().path().plansReads();
  }

  /** How the members are put together, in a few words. */
  abstract String shape();

  @Override
  public String mode() {
    String first = members.all().getFirst().path().mode();
    int changes = members.changes();
    Mode known = mode;
    if (known == null || known.changes != changes || !known.first.equals(first)) {
      known = new Mode(first, changes, shape() + ": " + first + members.remarks());
      mode = known;
    }
    return known.text;
  }

  @Override
  public int alignment() {
    return members.all().stream().mapToInt(m -> m.path().alignment()).max().orElse(1);
  }

  @Override
  public long gpuBytes() {
    return members.all().stream().mapToLong(m -> m.path().gpuBytes()).sum();
  }

  @Override
  public double expected(RequestShape request) {
    return members.all().stream().mapToDouble(m -> m.path().expected(request)).sum();
  }

  @Override
  public List<MemberStats> members() {
    return members.stats();
  }

  @Override
  public void takeStaging() {
    members.all().forEach(m -> m.path().takeStaging());
  }

  @Override
  public void register(DeviceBuffer buffer) {
    members.all().forEach(m -> m.path().register(buffer));
  }

  @Override
  public void deregister(DeviceBuffer buffer) {
    members.all().forEach(m -> m.path().deregister(buffer));
  }

  @Override
  public void close() {
    members.close();
  }
}
