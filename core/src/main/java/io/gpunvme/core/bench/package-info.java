/**
 * Benchmarks of what a GPU does with storage: queues against a responder that moves nothing, random
 * and streaming reads from an embedded controller, and the limits beside them.
 *
 * <p>In: benchmarks that check what they count or move, and what they need: queues without a
 * controller, the responders, the kernels' arguments. Out: which of them make a report, and files
 * of results ({@code io.gpunvme.bench}); printing ({@code io.gpunvme.cli}).
 */
@NullMarked
package io.gpunvme.core.bench;

import org.jspecify.annotations.NullMarked;
