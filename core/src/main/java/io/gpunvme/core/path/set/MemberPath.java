package io.gpunvme.core.path.set;

import java.util.List;

/** A path over several members. */
public interface MemberPath {
  /** What each of them has done so far. */
  List<MemberStats> members();
}
