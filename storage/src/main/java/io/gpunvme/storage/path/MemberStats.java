package io.gpunvme.storage.path;

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;

/**
 * The counts of a member of a set so far.
 *
 * @param name in messages
 * @param readBytes that it was asked for and has read
 * @param writtenBytes that it was given and has written
 * @param requests transfers of the set that it had a part in, failed ones included
 * @param operations its NVMe commands, system calls or cuFile calls that succeeded
 * @param latencyP50Nanos median of its operations
 * @param latencyP99Nanos 99th percentile of its operations
 * @param nanos time of its requests; simultaneous ones add up
 * @param recentGigabytesPerSecond 10^9 bytes a second of wall-clock time, over about the last
 *     second
 * @param retries operations repeated
 * @param failures requests that failed
 * @param avoided reads that another copy was given because this member is slow or has failed
 * @param slow how much slower than the others it is, or empty if it is not
 * @param failure why it is not used any more, or empty
 */
public record MemberStats(
    String name,
    long readBytes,
    long writtenBytes,
    long requests,
    long operations,
    long latencyP50Nanos,
    long latencyP99Nanos,
    long nanos,
    double recentGigabytesPerSecond,
    long retries,
    long failures,
    long avoided,
    String slow,
    String failure) {
  /** Bytes moved. */
  public long bytes() {
    return readBytes + writtenBytes;
  }

  /** 10^9 bytes a second while it was at work. */
  public double gigabytesPerSecond() {
    return nanos == 0 ? 0 : (double) bytes() / nanos;
  }

  /**
   * The slowest of those in use: one that is told slow, else the one that moved the fewest bytes a
   * second while it was at work. Empty if fewer than two have moved any.
   */
  public static Optional<MemberStats> slowest(List<MemberStats> members) {
    List<MemberStats> used =
        members.stream().filter(m -> m.failure.isEmpty() && m.bytes() > 0).toList();
    return used.size() < 2
        ? Optional.empty()
        : used.stream()
            .min(
                Comparator.comparingInt((MemberStats m) -> m.slow.isEmpty() ? 1 : 0)
                    .thenComparingDouble(MemberStats::gigabytesPerSecond));
  }

  /** Why it is called {@link #slowest}. */
  public String why() {
    return slow.isEmpty()
        ? "%.2f GB/s while it was at work, the least of all".formatted(gigabytesPerSecond())
        : slow;
  }

  /**
   * Adds {@code members}, an object for each, and {@code slowest}, its name and why, or null.
   *
   * @param members none if it is not a set
   */
  public static void addTo(JsonObject json, List<MemberStats> members) {
    JsonArray list = new JsonArray();
    members.forEach(m -> list.add(m.json()));
    json.add("members", list);
    json.add("slowest", slowest(members).map(MemberStats::named).orElse(null));
  }

  private JsonObject named() {
    JsonObject one = new JsonObject();
    one.addProperty("name", name);
    one.addProperty("why", why());
    return one;
  }

  private JsonObject json() {
    JsonObject one = new JsonObject();
    one.addProperty("name", name);
    one.addProperty("bytes", bytes());
    one.addProperty("read_bytes", readBytes);
    one.addProperty("written_bytes", writtenBytes);
    one.addProperty("requests", requests);
    one.addProperty("operations", operations);
    one.addProperty("latency_p50_ns", latencyP50Nanos);
    one.addProperty("latency_p99_ns", latencyP99Nanos);
    one.addProperty("gigabytes_per_second", gigabytesPerSecond());
    one.addProperty("recent_gigabytes_per_second", recentGigabytesPerSecond);
    one.addProperty("retries", retries);
    one.addProperty("failures", failures);
    one.addProperty("avoided", avoided);
    one.addProperty("slow", slow.isEmpty() ? null : slow);
    one.addProperty("failure", failure.isEmpty() ? null : failure);
    return one;
  }
}
