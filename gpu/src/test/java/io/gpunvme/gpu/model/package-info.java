/**
 * The protocols of the shared queue and of the page cache as models, and a checker that visits
 * every state that they can reach.
 *
 * <p>{@link io.gpunvme.gpu.model.Checker} knows nothing of NVMe; {@link
 * io.gpunvme.gpu.model.SharedQueueModel} is the protocol of {@code docs/shared-queue.md}, which the
 * device code translates, with callers, a controller that reorders, loses and doubles completions,
 * and a host that recovers the queue. Start reading at {@link io.gpunvme.gpu.model.Submission},
 * {@link io.gpunvme.gpu.model.Service} and {@link io.gpunvme.gpu.model.Waiting}: these are the
 * protocol. {@link io.gpunvme.gpu.model.Flaw} lists what happens without each of its rules.
 *
 * <p>{@link io.gpunvme.gpu.model.PageCacheModel} is the protocol of {@code docs/page-cache.md},
 * with a controller that fails commands, loses them or is late. Start reading at {@link
 * io.gpunvme.gpu.model.CacheChoice}, {@link io.gpunvme.gpu.model.CacheTransfer} and {@link
 * io.gpunvme.gpu.model.CacheCalls}; {@link io.gpunvme.gpu.model.CacheFlaw} lists its flaws.
 *
 * <p>Only models belong here: nothing of the product is called, nothing has a real thread or a
 * clock.
 */
@NullMarked
package io.gpunvme.gpu.model;

import org.jspecify.annotations.NullMarked;
