package io.gpunvme.sim;

/**
 * A copy of data under way between a medium and remote memory.
 *
 * @param ticket what the port calls it
 * @param command whose data it is
 * @param position where in the medium the data lies, bytes
 * @param bounce where in the channel's {@link BounceRing} it is meanwhile, or {@link
 *     BounceRing#NONE} if it moves from or to the medium's own memory
 * @param bytes how much
 */
record RemoteCopy(long ticket, SimCommand command, long position, long bounce, long bytes) {}
