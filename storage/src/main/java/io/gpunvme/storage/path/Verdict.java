package io.gpunvme.storage.path;

/**
 * Whether a path is possible for a source on this machine, judged without opening it.
 *
 * @param kind the path
 * @param possible whether it can be opened
 * @param automatic whether it may be chosen without being requested: it can be better than the
 *     others here
 * @param reason why, or why not, e.g. {@code tmpfs has no block device}
 * @param fix what to do to make it possible; empty if it is, or nothing helps
 */
public record Verdict(
    PathKind kind, boolean possible, boolean automatic, String reason, String fix) {
  /** A path that can be opened. */
  public static Verdict yes(PathKind kind, String reason) {
    return new Verdict(kind, true, true, reason, "");
  }

  /** A path that can be opened, but only if it is requested by name. */
  public static Verdict yesIfAsked(PathKind kind, String reason, String fix) {
    return new Verdict(kind, true, false, reason, fix);
  }

  /** A path that cannot be opened. */
  public static Verdict no(PathKind kind, String reason, String fix) {
    return new Verdict(kind, false, false, reason, fix);
  }
}
