package io.gpunvme.gpu.queue;

import io.gpunvme.gpu.queue.DeviceLayout.Queue;
import java.lang.foreign.MemorySegment;
import java.util.List;

/**
 * The counters of a device queue since its creation; recovery does not clear them.
 *
 * @param submitted commands
 * @param completed commands whose completion was seen in time
 * @param sqDoorbells submission doorbell stores
 * @param cqDoorbells completion doorbell stores
 * @param failures completions with a status other than success
 * @param timeouts commands that were quarantined
 * @param late completions of quarantined commands
 * @param stale completions of commands that were over
 * @param unknown completions with a CID that no slot has
 * @param malformed completions with another queue's SQID
 * @param recovered quarantined slots that came back by a recovery while a kernel ran
 */
public record QueueCounters(
    long submitted,
    long completed,
    long sqDoorbells,
    long cqDoorbells,
    long failures,
    long timeouts,
    long late,
    long stale,
    long unknown,
    long malformed,
    long recovered) {
  /** All counters 0. */
  public static final QueueCounters NONE = new QueueCounters(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);

  static QueueCounters read(MemorySegment queue) {
    return new QueueCounters(
        DeviceLayout.getLong(queue, Queue.SUBMITTED),
        DeviceLayout.getLong(queue, Queue.COMPLETED),
        DeviceLayout.getLong(queue, Queue.SQ_DOORBELLS),
        DeviceLayout.getLong(queue, Queue.CQ_DOORBELLS),
        DeviceLayout.getLong(queue, Queue.FAILURES),
        DeviceLayout.getLong(queue, Queue.TIMEOUTS),
        DeviceLayout.getLong(queue, Queue.LATE),
        DeviceLayout.getLong(queue, Queue.STALE),
        DeviceLayout.getLong(queue, Queue.UNKNOWN),
        DeviceLayout.getLong(queue, Queue.MALFORMED),
        DeviceLayout.getLong(queue, Queue.RECOVERED_SLOTS));
  }

  /** The number of events that kernels write to the error log. */
  public long troubles() {
    return failures + timeouts + late + stale + unknown + malformed;
  }

  /** Both together. */
  public QueueCounters plus(QueueCounters other) {
    return combine(other, 1);
  }

  /** All together. */
  public static QueueCounters sum(List<QueueCounters> parts) {
    return parts.stream().reduce(NONE, QueueCounters::plus);
  }

  /** The difference since {@code earlier}. */
  public QueueCounters minus(QueueCounters earlier) {
    return combine(earlier, -1);
  }

  private QueueCounters combine(QueueCounters other, int sign) {
    return new QueueCounters(
        submitted + sign * other.submitted,
        completed + sign * other.completed,
        sqDoorbells + sign * other.sqDoorbells,
        cqDoorbells + sign * other.cqDoorbells,
        failures + sign * other.failures,
        timeouts + sign * other.timeouts,
        late + sign * other.late,
        stale + sign * other.stale,
        unknown + sign * other.unknown,
        malformed + sign * other.malformed,
        recovered + sign * other.recovered);
  }
}
