package io.gpunvme.nvme.vfiouser;

import io.gpunvme.base.CloseAll;
import io.gpunvme.ffi.Posix;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/**
 * A message as it arrived. Owns the descriptors that came with it until they are taken. One thread.
 *
 * <p>Nothing in it has been checked but its size.
 */
public final class Message implements AutoCloseable {
  private final int id;
  private final int command;
  private final int flags;
  private final int errno;
  private final ByteBuffer payload;
  private final List<Integer> descriptors;

  Message(
      int id, int command, int flags, int errno, ByteBuffer payload, List<Integer> descriptors) {
    this.id = id;
    this.command = command;
    this.flags = flags;
    this.errno = errno;
    this.payload = payload;
    this.descriptors = new ArrayList<>(descriptors);
  }

  /** Tells requests under way apart; a reply has its request's. */
  public int id() {
    return id;
  }

  /** A number of {@link Command}, or any other. */
  public int command() {
    return command;
  }

  /** Bits of {@link Protocol}. */
  public int flags() {
    return flags;
  }

  /** Whether it is a command; otherwise it is a reply, or nothing that there is. */
  public boolean isCommand() {
    return (flags & Protocol.TYPE_MASK) == Protocol.TYPE_COMMAND;
  }

  /** Whether it is a reply. */
  public boolean isReply() {
    return (flags & Protocol.TYPE_MASK) == Protocol.TYPE_REPLY;
  }

  /** Whether it says that its sender wants no reply, even to an error. */
  public boolean wantsNoReply() {
    return (flags & Protocol.NO_REPLY) != 0;
  }

  /** The error number of a reply that tells of an error, else 0; never negative. */
  public int error() {
    return (flags & Protocol.ERROR) == 0 ? 0 : Math.max(1, errno);
  }

  /** What follows the header, in the host's byte order. */
  public ByteBuffer payload() {
    return payload;
  }

  /** The descriptors not taken yet. */
  public List<Integer> descriptors() {
    return Collections.unmodifiableList(descriptors);
  }

  /** Takes a descriptor: it is the caller's to close from now on. */
  public int take(int index) {
    int taken = descriptors.get(index);
    descriptors.subList(index, index + 1).clear();
    return taken;
  }

  /** Closes the descriptors that nobody has taken. */
  @Override
  public void close() {
    List<Integer> left = List.copyOf(descriptors);
    descriptors.clear();
    CloseAll.each(left, Posix::close);
  }
}
