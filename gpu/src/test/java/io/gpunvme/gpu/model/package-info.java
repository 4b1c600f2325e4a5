/**
 * The protocol of the shared queue as a model, and a checker that visits every state it can reach.
 *
 * <p>{@link io.gpunvme.gpu.model.Checker} knows nothing of NVMe; {@link
 * io.gpunvme.gpu.model.SharedQueueModel} is the protocol of {@code docs/shared-queue.md}, which the
 * device code translates, with callers, a controller that reorders, loses and doubles completions,
 * and a host that recovers the queue. Start reading at {@link io.gpunvme.gpu.model.Submission},
 * {@link io.gpunvme.gpu.model.Service} and {@link io.gpunvme.gpu.model.Waiting}: these are the
 * protocol. {@link io.gpunvme.gpu.model.Flaw} lists what happens without each of its rules.
 *
 * <p>Only models belong here: nothing of the product is called, nothing has a real thread or a
 * clock.
 */
@NullMarked
package io.gpunvme.gpu.model;

import org.jspecify.annotations.NullMarked;
