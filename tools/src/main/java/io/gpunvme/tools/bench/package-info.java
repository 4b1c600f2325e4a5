/**
 * Benchmarks of a GPU with storage: queues against a responder that moves nothing, random and
 * streaming reads from an embedded controller or from SSDs that are there, the same file by every
 * path, and the limits of each.
 *
 * <p>In: benchmarks that check what they count or move, and what they need: queues without a
 * controller, the responders, the kernels' arguments; files of results. Out: which of them make a
 * report ({@code io.gpunvme.bench}); printing ({@code io.gpunvme.cli}).
 */
@NullMarked
package io.gpunvme.tools.bench;

import org.jspecify.annotations.NullMarked;
