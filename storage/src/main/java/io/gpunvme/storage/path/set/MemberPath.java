package io.gpunvme.storage.path.set;

import io.gpunvme.storage.path.MemberStats;
import java.util.List;

/** A path over several members. */
public interface MemberPath {
  /** What each of them has done so far. */
  List<MemberStats> members();
}
