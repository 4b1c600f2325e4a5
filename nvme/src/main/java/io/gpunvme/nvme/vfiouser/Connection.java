package io.gpunvme.nvme.vfiouser;

import io.gpunvme.base.CloseAll;
import io.gpunvme.ffi.Errno;
import io.gpunvme.ffi.Posix;
import io.gpunvme.ffi.PosixException;
import io.gpunvme.ffi.UnixSocket;
import io.gpunvme.nvme.ProtocolException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.locks.LockSupport;

/**
 * Messages over one socket. Any thread may send; one receives. {@link #shutdown} by any thread ends
 * the receiving, and only then is {@link #close} due.
 */
public final class Connection implements AutoCloseable {
  private static final ValueLayout.OfShort SHORT =
      ValueLayout.JAVA_SHORT_UNALIGNED.withOrder(ByteOrder.nativeOrder());
  private static final ValueLayout.OfInt INT =
      ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.nativeOrder());
  private static final int FIRST_BUFFER = 4096;
  private static final long SOON = Duration.ofMillis(1).toNanos();

  private final UnixSocket socket;
  private final int largest;
  private final int mostDescriptors;
  private final Arena memory = Arena.ofShared();
  private final MemorySegment header;
  private MemorySegment body;
  private MemorySegment outgoing;
  private final Object sending = new Object();

  /**
   * Owns a socket, unless this fails.
   *
   * @param largest payload in bytes that is received; what is larger ends the connection
   * @param mostDescriptors with one message
   */
  public Connection(UnixSocket socket, int largest, int mostDescriptors) {
    this.socket = socket;
    this.largest = largest;
    this.mostDescriptors = mostDescriptors;
    try {
      header = memory.allocate(Protocol.HEADER, Long.BYTES);
      body = memory.allocate(FIRST_BUFFER, Long.BYTES);
      outgoing = memory.allocate(FIRST_BUFFER, Long.BYTES);
    } catch (RuntimeException | Error e) {
      memory.close();
      throw e;
    }
  }

  /**
   * Waits for the next message.
   *
   * @return empty if the connection is over
   * @throws ProtocolException if what came is not a message; the connection cannot go on then
   */
  public Optional<Message> receive() {
    List<Integer> descriptors = new ArrayList<>();
    boolean whole = false;
    try {
      if (!fill(header, descriptors)) {
        return Optional.empty();
      }
      int payload = payloadBytes();
      if (body.byteSize() < payload) {
        body = memory.allocate(Math.max(payload, 2 * body.byteSize()), Long.BYTES);
      }
      if (!fill(body.asSlice(0, payload), descriptors)) {
        return Optional.empty();
      }
      ByteBuffer copy = Protocol.payload(payload);
      MemorySegment.ofBuffer(copy).copyFrom(body.asSlice(0, payload));
      checkDescriptors(descriptors.size());
      whole = true;
      return Optional.of(
          new Message(
              Short.toUnsignedInt(header.get(SHORT, 0)),
              Short.toUnsignedInt(header.get(SHORT, 2)),
              header.get(INT, 8),
              header.get(INT, 12),
              copy,
              descriptors));
    } catch (PosixException e) {
      // The peer is gone, or the kernel had to drop descriptors.
      return Optional.empty();
    } finally {
      if (!whole) {
        descriptors.forEach(Posix::close);
      }
    }
  }

  private int payloadBytes() {
    long size = Integer.toUnsignedLong(header.get(INT, 4));
    if (size < Protocol.HEADER || size - Protocol.HEADER > largest) {
      throw new ProtocolException(
          "a message of %d bytes (%s); there are %d to %d"
              .formatted(
                  size,
                  Command.name(Short.toUnsignedInt(header.get(SHORT, 2))),
                  Protocol.HEADER,
                  Protocol.HEADER + (long) largest));
    }
    return (int) (size - Protocol.HEADER);
  }

  private void checkDescriptors(int count) {
    if (count > mostDescriptors) {
      throw new ProtocolException(
          "%d descriptors with one message (%s); at most %d were agreed upon"
              .formatted(
                  count, Command.name(Short.toUnsignedInt(header.get(SHORT, 2))), mostDescriptors));
    }
  }

  /** Receives all of it; false if the connection ends before. */
  private boolean fill(MemorySegment into, List<Integer> descriptors) {
    long done = 0;
    while (done < into.byteSize()) {
      int count = socket.receive(into.asSlice(done), descriptors);
      if (count == 0) {
        return false;
      }
      done += count;
    }
    return true;
  }

  /**
   * Sends a command.
   *
   * @param flags {@link Protocol#NO_REPLY} or 0
   * @param payload its bytes from position to limit, which stay as they are
   * @throws PosixException if the peer is gone, or takes nothing
   */
  public void command(int id, int command, int flags, ByteBuffer payload, int... descriptors) {
    send(id, command, flags | Protocol.TYPE_COMMAND, 0, payload, descriptors);
  }

  /** Answers a command. */
  public void reply(Message to, ByteBuffer payload, int... descriptors) {
    send(to.id(), to.command(), Protocol.TYPE_REPLY, 0, payload, descriptors);
  }

  /** Answers a command with an error: the header alone. */
  public void refuse(Message to, int errno) {
    int flags = Protocol.TYPE_REPLY | Protocol.ERROR;
    send(to.id(), to.command(), flags, errno, Protocol.payload(0));
  }

  private void send(
      int id, int command, int flags, int errno, ByteBuffer payload, int... descriptors) {
    synchronized (sending) {
      int bytes = Protocol.HEADER + payload.remaining();
      if (outgoing.byteSize() < bytes) {
        outgoing = memory.allocate(Math.max(bytes, 2 * outgoing.byteSize()), Long.BYTES);
      }
      outgoing.set(SHORT, 0, (short) id);
      outgoing.set(SHORT, 2, (short) command);
      outgoing.set(INT, 4, bytes);
      outgoing.set(INT, 8, flags);
      outgoing.set(INT, 12, errno);
      MemorySegment.copy(
          MemorySegment.ofBuffer(payload), 0, outgoing, Protocol.HEADER, payload.remaining());
      socket.send(outgoing.asSlice(0, bytes), descriptors);
    }
  }

  /** Sends nothing any more: the peer finds the end of the connection. */
  public void endSending() {
    socket.endSending();
  }

  /** Receives nothing any more; the peer finds the end only when this is closed. */
  public void endReceiving() {
    socket.endReceiving();
  }

  /**
   * Receives and drops what still comes; returns when the peer, or {@link #shutdown}, ended it,
   * whatever this host is short of meanwhile.
   */
  public void drain() {
    List<Integer> descriptors = new ArrayList<>();
    boolean more = true;
    while (more) {
      try {
        more = socket.receive(header, descriptors) > 0;
        CloseAll.each(descriptors, Posix::close);
      } catch (PosixException e) {
        more = e.errno() != Errno.ECONNRESET;
        LockSupport.parkNanos(SOON);
      } catch (Error e) {
        // There may be memory later. That the peer has ended is never said without a proof.
        LockSupport.parkNanos(SOON);
      }
      descriptors.clear();
    }
  }

  /** Ends the connection; what is received from now on is its end. */
  public void shutdown() {
    socket.shutdown();
  }

  /** Frees everything. Nobody receives any more. Idempotent. */
  @Override
  public void close() {
    try {
      socket.shutdown();
    } finally {
      synchronized (sending) {
        try {
          socket.close();
        } finally {
          if (memory.scope().isAlive()) {
            memory.close();
          }
        }
      }
    }
  }
}
