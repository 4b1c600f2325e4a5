package io.gpunvme.tools.top;

import org.jspecify.annotations.Nullable;

/**
 * A queue pair, or several that kernels drive together.
 *
 * @param queue identifiers: {@code 3}, {@code 1-4}
 * @param initiator {@code cpu} or {@code gpu}; null where the controller counts, which does not
 *     know
 * @param rates what it did
 */
public record TopQueue(String queue, @Nullable String initiator, TopRates rates) {}
