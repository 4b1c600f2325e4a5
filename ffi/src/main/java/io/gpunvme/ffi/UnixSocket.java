package io.gpunvme.ffi;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static java.lang.foreign.ValueLayout.JAVA_SHORT;

import io.gpunvme.base.CloseAll;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;

/**
 * A connected UNIX stream socket that carries file descriptors with its bytes (unix(7)).
 *
 * <p>One thread may send while another receives; {@link #shutdown} by any thread ends both. {@link
 * #close} only when neither is under way: the descriptor number may be somebody else's afterwards.
 */
public final class UnixSocket implements AutoCloseable {
  /** Most descriptors that one {@link #receive} can bring; more are closed by the kernel. */
  public static final int MAX_DESCRIPTORS = 253;

  private static final int AF_UNIX = 1;
  private static final int SOCK_STREAM = 1;
  private static final int SOCK_CLOEXEC = Posix.O_CLOEXEC;
  private static final int SOL_SOCKET = 1;
  private static final int SO_RCVTIMEO = 20;
  private static final int SO_SNDTIMEO = 21;
  private static final int SCM_RIGHTS = 1;
  private static final int SHUT_RD = 0;
  private static final int SHUT_WR = 1;
  private static final int SHUT_RDWR = 2;
  private static final int MSG_CTRUNC = 0x8;
  private static final int MSG_NOSIGNAL = 0x4000;
  private static final int MSG_CMSG_CLOEXEC = 0x40000000;

  private static final long SOCKADDR_BYTES = 110;
  private static final int PATH_AT = 2;

  /** The path and its terminator have to fit. */
  private static final int MAX_PATH = 107;

  // struct msghdr and struct cmsghdr of 64-bit Linux.
  private static final long MSGHDR_BYTES = 56;
  private static final long MSGHDR_IOV = 16;
  private static final long MSGHDR_IOVLEN = 24;
  private static final long MSGHDR_CONTROL = 32;
  private static final long MSGHDR_CONTROLLEN = 40;
  private static final long MSGHDR_FLAGS = 48;
  private static final long CMSG_HEADER = 16;
  private static final long CMSG_LEVEL = 8;
  private static final long CMSG_TYPE = 12;

  private static final CFunction SOCKET = CFunction.ofInt("socket");
  private static final CFunction SOCKETPAIR = CFunction.ofInt("socketpair");
  private static final CFunction CONNECT = CFunction.ofInt("connect");
  private static final CFunction SETSOCKOPT = CFunction.ofInt("setsockopt");
  private static final CFunction SHUTDOWN = CFunction.ofInt("shutdown");
  private static final CFunction SENDMSG = CFunction.ofLong("sendmsg");
  private static final CFunction RECVMSG = CFunction.ofLong("recvmsg");

  private final int fd;
  private final String name;
  private boolean closed;

  UnixSocket(int fd, String name) {
    this.fd = fd;
    this.name = name;
  }

  /**
   * Connects to who listens at a path.
   *
   * @param patience how long to wait for room in the listener's queue, and later for the peer to
   *     take what is sent
   * @throws PosixException {@code ENOENT} or {@code ECONNREFUSED} if nobody listens, {@code EAGAIN}
   *     if the listener takes nobody
   */
  public static UnixSocket connect(Path path, Duration patience) {
    UnixSocket socket = new UnixSocket(stream(), path.toString());
    try (Arena arena = Arena.ofConfined()) {
      socket.sendTimeout(patience);
      MemorySegment address = address(arena, path);
      Native.restarting(
          "connect", path::toString, s -> CONNECT.call(s, socket.fd, address, address.byteSize()));
      return socket;
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, socket::close);
      throw e;
    }
  }

  /** Two sockets connected to each other. */
  public static List<UnixSocket> pair() {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment fds = arena.allocate(JAVA_INT, 2);
      Native.once(
          "socketpair",
          () -> "",
          s -> SOCKETPAIR.call(s, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds, 0));
      return List.of(
          new UnixSocket(fds.getAtIndex(JAVA_INT, 0), "socket pair"),
          new UnixSocket(fds.getAtIndex(JAVA_INT, 1), "socket pair"));
    }
  }

  static int stream() {
    return (int)
        Native.once(
            "socket", () -> "AF_UNIX", s -> SOCKET.call(s, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  }

  /** A {@code struct sockaddr_un}. */
  static MemorySegment address(Arena arena, Path path) {
    byte[] bytes = path.toString().getBytes(StandardCharsets.UTF_8);
    if (bytes.length == 0 || bytes.length > MAX_PATH) {
      throw new IllegalArgumentException(
          "the path of a socket has 1 to " + MAX_PATH + " bytes, this one " + bytes.length);
    }
    MemorySegment address = arena.allocate(SOCKADDR_BYTES, Long.BYTES);
    address.set(JAVA_SHORT, 0, (short) AF_UNIX);
    MemorySegment.copy(bytes, 0, address, JAVA_BYTE, PATH_AT, bytes.length);
    return address;
  }

  /** How long a {@link #send} waits for the peer to take something; it fails then with EAGAIN. */
  public void sendTimeout(Duration patience) {
    timeout(SO_SNDTIMEO, patience);
  }

  /**
   * How long a {@link #receive} waits for the peer to send something; it fails then with EAGAIN.
   */
  public void receiveTimeout(Duration patience) {
    timeout(SO_RCVTIMEO, patience);
  }

  private void timeout(int option, Duration patience) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment time = arena.allocate(JAVA_LONG, 2);
      time.setAtIndex(JAVA_LONG, 0, patience.toSeconds());
      time.setAtIndex(JAVA_LONG, 1, patience.toNanosPart() / 1000);
      int open = open();
      Native.once(
          "setsockopt",
          () -> name,
          s -> SETSOCKOPT.call(s, open, SOL_SOCKET, option, time, time.byteSize()));
    }
  }

  /**
   * Sends all bytes, the descriptors with the first of them. They stay the caller's.
   *
   * @param bytes native, at least 1
   * @param descriptors at most {@link #MAX_DESCRIPTORS}
   * @throws PosixException EPIPE or ECONNRESET if the peer is gone, EAGAIN if it took nothing for
   *     the time of {@link #sendTimeout}; some bytes may have been sent then
   */
  public void send(MemorySegment bytes, int... descriptors) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment header = header(arena, descriptors.length);
      if (descriptors.length > 0) {
        MemorySegment control = control(header);
        control.set(JAVA_LONG, 0, CMSG_HEADER + (long) Integer.BYTES * descriptors.length);
        control.set(JAVA_INT, CMSG_LEVEL, SOL_SOCKET);
        control.set(JAVA_INT, CMSG_TYPE, SCM_RIGHTS);
        MemorySegment.copy(descriptors, 0, control, JAVA_INT, CMSG_HEADER, descriptors.length);
      }
      for (long done = 0; done < bytes.byteSize(); ) {
        point(header, bytes.asSlice(done));
        int open = open();
        done +=
            Native.restarting(
                "sendmsg", () -> name, s -> SENDMSG.call(s, open, header, MSG_NOSIGNAL));
        header.set(ADDRESS, MSGHDR_CONTROL, MemorySegment.NULL);
        header.set(JAVA_LONG, MSGHDR_CONTROLLEN, 0);
      }
    }
  }

  /**
   * Waits for bytes and takes what is there.
   *
   * @param into native, at least 1 byte
   * @param descriptors those that came with the bytes are added; they are the caller's to close
   * @return how many bytes, 0 if the peer or {@link #shutdown} has ended the connection
   * @throws PosixException ECONNRESET if the peer is gone; EMFILE if descriptors were lost because
   *     there were too many; EAGAIN if nothing came for the time of {@link #receiveTimeout}
   */
  public int receive(MemorySegment into, List<Integer> descriptors) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment header = header(arena, MAX_DESCRIPTORS);
      point(header, into);
      int open = open();
      long count =
          Native.restarting(
              "recvmsg", () -> name, s -> RECVMSG.call(s, open, header, MSG_CMSG_CLOEXEC));
      collect(header, descriptors);
      if ((header.get(JAVA_INT, MSGHDR_FLAGS) & MSG_CTRUNC) != 0) {
        throw new PosixException("recvmsg", name + ", descriptors", Errno.EMFILE);
      }
      return (int) count;
    }
  }

  /** A {@code struct msghdr} with room for one vector and so many descriptors. */
  @SuppressWarnings("restricted")
  private static MemorySegment header(Arena arena, int descriptors) {
    MemorySegment header = arena.allocate(MSGHDR_BYTES, Long.BYTES);
    header.set(ADDRESS, MSGHDR_IOV, arena.allocate(ADDRESS.byteSize() * 2, Long.BYTES));
    header.set(JAVA_LONG, MSGHDR_IOVLEN, 1);
    if (descriptors > 0) {
      long bytes = CMSG_HEADER + Math.ceilDiv(descriptors, 2) * (long) Long.BYTES;
      header.set(ADDRESS, MSGHDR_CONTROL, arena.allocate(bytes, Long.BYTES));
      header.set(JAVA_LONG, MSGHDR_CONTROLLEN, bytes);
    }
    return header;
  }

  @SuppressWarnings("restricted")
  private static void point(MemorySegment header, MemorySegment bytes) {
    MemorySegment vector = header.get(ADDRESS, MSGHDR_IOV).reinterpret(2L * Long.BYTES);
    vector.set(ADDRESS, 0, bytes);
    vector.set(JAVA_LONG, Long.BYTES, bytes.byteSize());
  }

  @SuppressWarnings("restricted")
  private static MemorySegment control(MemorySegment header) {
    return header
        .get(ADDRESS, MSGHDR_CONTROL)
        .reinterpret(header.get(JAVA_LONG, MSGHDR_CONTROLLEN));
  }

  private static void collect(MemorySegment header, List<Integer> descriptors) {
    MemorySegment control = control(header);
    long at = 0;
    while (at + CMSG_HEADER <= control.byteSize()) {
      long length = control.get(JAVA_LONG, at);
      if (length < CMSG_HEADER || length > control.byteSize() - at) {
        return;
      }
      if (control.get(JAVA_INT, at + CMSG_LEVEL) == SOL_SOCKET
          && control.get(JAVA_INT, at + CMSG_TYPE) == SCM_RIGHTS) {
        for (long i = CMSG_HEADER; i + Integer.BYTES <= length; i += Integer.BYTES) {
          descriptors.add(control.get(JAVA_INT, at + i));
        }
      }
      at += Math.ceilDiv(length, Long.BYTES) * Long.BYTES;
    }
  }

  private synchronized int open() {
    if (closed) {
      throw new IllegalStateException("the socket of " + name + " is closed");
    }
    return fd;
  }

  /** Sends no more: who waits in {@link #receive} at the peer finds the connection's end. */
  public void endSending() {
    shutdown(SHUT_WR);
  }

  /** Receives no more: who waits in {@link #receive} here finds the connection's end. */
  public void endReceiving() {
    shutdown(SHUT_RD);
  }

  /** Ends the connection: who waits in {@link #receive}, here or at the peer, finds its end. */
  public void shutdown() {
    shutdown(SHUT_RDWR);
  }

  private synchronized void shutdown(int how) {
    if (!closed) {
      try {
        Native.giveBack("shutdown", () -> name, s -> SHUTDOWN.call(s, fd, how));
      } catch (PosixException e) {
        // The peer was first.
      }
    }
  }

  /** Closes the descriptor. Idempotent. */
  @Override
  public synchronized void close() {
    if (!closed) {
      closed = true;
      Posix.close(fd);
    }
  }
}
