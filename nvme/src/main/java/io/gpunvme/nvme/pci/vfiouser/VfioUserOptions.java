package io.gpunvme.nvme.pci.vfiouser;

import io.gpunvme.base.InvalidRequestException;
import java.time.Duration;

/**
 * How a function behind a socket is used.
 *
 * @param timeout how long to wait for the answer to a message; the server counts as gone then
 * @param messages whether no memory is shared: the server has to ask for every byte. Slow; SPDK's
 *     target cannot do that. Otherwise only memory that has a descriptor can be mapped
 */
public record VfioUserOptions(Duration timeout, boolean messages) {
  private static final Duration DEFAULT_TIMEOUT = Duration.ofSeconds(10);

  /** Checks the timeout. */
  public VfioUserOptions {
    if (timeout.isNegative() || timeout.isZero()) {
      throw new InvalidRequestException("timeout=" + timeout + ": above 0");
    }
  }

  /** 10 s, shared memory. */
  public static VfioUserOptions defaults() {
    return new VfioUserOptions(DEFAULT_TIMEOUT, false);
  }

  /** The same with another timeout. */
  public VfioUserOptions withTimeout(Duration other) {
    return new VfioUserOptions(other, messages);
  }

  /** The same with or without shared memory. */
  public VfioUserOptions withMessages(boolean other) {
    return new VfioUserOptions(timeout, other);
  }
}
