/**
 * The data structures of the NVM Express specifications as typed views over memory: registers,
 * queue entries, identify data, log pages, features, statuses, data pointers.
 *
 * <p>In here: layouts, names and decoding, nothing else. Not in here: anything that talks to a
 * controller, waits, allocates bus addresses or decides. Numbers are those of the NVM Express Base
 * Specification 2.0 ("Base 2.0") and the NVM Command Set Specification 1.0 ("NVM 1.0"); everything
 * on the wire is little endian. Entries of the hot path ({@link io.gpunvme.nvme.spec.Sqe}, {@link
 * io.gpunvme.nvme.spec.Cqe}) are static accessors on a segment and an offset, large pages are views
 * wrapping their segment.
 */
@NullMarked
package io.gpunvme.nvme.spec;

import org.jspecify.annotations.NullMarked;
