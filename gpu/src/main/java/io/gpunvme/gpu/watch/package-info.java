/**
 * Watching controllers at work, from another process: {@code gpunvme top} and exporters.
 *
 * <p>In: which controllers this process has open or serves, their counters as text in Prometheus'
 * exposition format, the socket at which each process gives this text away, and reading the text of
 * all processes. Out: counting ({@code nvme.driver}, {@code sim}), rates and their display ({@code
 * tools.top}, {@code cli}).
 */
@NullMarked
package io.gpunvme.gpu.watch;

import org.jspecify.annotations.NullMarked;
