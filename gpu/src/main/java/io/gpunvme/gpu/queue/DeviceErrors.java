package io.gpunvme.gpu.queue;

import java.util.List;

/**
 * The errors that kernels reported for one or several queues.
 *
 * @param records the oldest ones first, per queue
 * @param total how many there were; more than {@code records} if a log was full
 */
public record DeviceErrors(List<DeviceError> records, long total) {
  /** Copies the list. */
  public DeviceErrors {
    records = List.copyOf(records);
  }
}
